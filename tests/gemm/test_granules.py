"""Rows of K that begin at any element: read in aligned 16 bytes and shifted into place."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gemm.test_gemm import MACHINES
from tilewright.gemm import gemm, kernels
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem

KERNEL = kernels()["tensorop_f16"]


def product(m: int, n: int, k: int, lead: int = 0, b_major: str = "k") -> tuple[np.ndarray, np.ndarray]:
    """(a, b) of small integers; ``lead`` elements lie before each row of A."""
    rng = np.random.default_rng(m * n + k)
    a = rng.integers(-3, 4, (m, k + lead)).astype(np.float16)[:, lead:]
    b = rng.integers(-3, 4, (k, n)).astype(np.float16)
    return a, np.asfortranarray(b) if b_major == "k" else b


def planned(a: np.ndarray, b: np.ndarray) -> Plan:
    return Plan.of(Problem.of(a, b, out_dtype=KERNEL.config.c.dtype), [KERNEL], "auto", "cpu")


def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("b_major", "kn")
@pytest.mark.parametrize("lead", [0, 3], ids="lead{}".format)
@pytest.mark.parametrize("mnk", [(1, 1, 1), (7, 9, 3), (33, 65, 129)], ids=str)
def test_products_are_exact(mnk, lead, b_major, machine):
    a, b = product(*mnk, lead, b_major)
    assert planned(a, b).config.granules
    report = gemm(a, b, kernel=KERNEL, machine=machine)
    np.testing.assert_array_equal(report.d, exact(a, b))


def test_elements_beside_a_row_are_not_multiplied():
    m, n, k = 40, 24, 67
    a, b = product(m, n, k, lead=6)
    a.base[:, :6] = np.nan
    np.testing.assert_array_equal(gemm(a, b, kernel=KERNEL, machine="cpu").d, exact(a, b))


def test_rows_that_go_backwards_are_read_element_by_element():
    a, b = product(20, 24, 37)
    a = a[::-1, ::-1]
    assert not planned(a, b).config.granules
    np.testing.assert_array_equal(gemm(a, b, kernel=KERNEL, machine="cpu").d, exact(a, b))


def test_blocks_share_tiles():
    a, b = product(40, 50, 1031)
    report = gemm(a, b, kernel=KERNEL, machine="cpu", decomposition="stream_k")
    assert report.decomposition == "stream_k"
    np.testing.assert_array_equal(report.d, exact(a, b))
