"""Products of operands in any layout, by every kernel and every entry point, are right and change nothing else.

``TILEWRIGHT_SEARCH=2000`` runs as many drawn cases more; ``python -m tests.gemm.operand_search`` counts them.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.gemm.operand_search import ENTRY_POINTS, check
from tilewright.gemm import gemm_grouped, kernels, matmul

PAIRS = [(entry, kernel) for i, entry in enumerate(ENTRY_POINTS) for j, kernel in enumerate(kernels())
         if (i + 3 * j) % len(ENTRY_POINTS) == 0]  # fmt: skip
"""Each kernel once, each entry point at least once."""


@pytest.mark.parametrize(("entry", "kernel"), PAIRS)
def test_a_kernel_by_an_entry_point(entry: str, kernel: str) -> None:
    seeds = range(5, 60, 5)
    assert any(check(seed, entry, kernel) == "right" for seed in seeds)


@pytest.mark.parametrize("seed", range(int(os.environ.get("TILEWRIGHT_SEARCH", "12"))))
def test_a_drawn_case(seed: int) -> None:
    check(10_000 + seed)


def test_a_column_of_a_matrix() -> None:
    a, b = np.eye(16, dtype=np.float16), np.arange(256).reshape(16, 16).astype(np.float16)
    np.testing.assert_array_equal(matmul(a, b[:, 1]), b[:, 1])


def test_every_second_column_and_a_head_of_packed_heads() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.integers(-3, 4, (8, 32)).astype(np.float16)[:, ::2], rng.integers(-3, 4, (16, 8)).astype(np.float16)
    np.testing.assert_array_equal(matmul(x, w), x.astype(float) @ w.astype(float))
    heads = rng.integers(-3, 4, (16, 16, 3)).astype(np.float16)[:, :, 1]
    np.testing.assert_array_equal(matmul(heads, w), heads.astype(float) @ w.astype(float))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_group_writes_only_its_results(dtype: type) -> None:
    whole = np.full((16, 48), -7, np.float32 if dtype == np.float32 else dtype)
    gemm_grouped([(np.ones((16, 32), dtype), np.ones((32, 24), dtype))], [whole[:, ::2]])
    assert (whole[:, ::2] == 32).all() and (whole[:, 1::2] == -7).all()


def test_a_group_reads_c_in_another_major_than_d() -> None:
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(-3, 4, (128, 128)).astype(np.float16) for _ in range(3))
    (d,) = gemm_grouped([(a, b, c)], [np.zeros((128, 128), np.float16).T], beta=1)
    np.testing.assert_array_equal(d, a.astype(float) @ b.astype(float) + c)
