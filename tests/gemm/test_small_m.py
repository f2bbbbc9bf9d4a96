"""Products with few rows: exact for all extents, with epilogues and batches; taken where they should be."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gemm.test_gemm import MACHINES
from tilewright import sim
from tilewright.errors import ArgumentError
from tilewright.gemm import cross_compile, gemm, kernels, matmul

ENTRY = kernels()["small_m_f16"]
SIZES = [ENTRY.config, *ENTRY.small]


def integers(seed: int, *shape: int, dtype: Any = np.float16) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 16), st.integers(1, 70), st.integers(1, 300), st.sampled_from(SIZES))
def test_exact_for_any_extents(m: int, n: int, eighths: int, size: Any) -> None:
    a, b = integers(m, m, 8 * eighths), integers(n, n, 8 * eighths).T
    report = gemm(a, b, kernel=ENTRY.only(size))
    assert report.kernel == "small_m_f16" and report.grid == (-(-n // size.tile[1]), 1, 1)
    np.testing.assert_array_equal(report.d, (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_epilogues_batches_and_types(dtype: Any, machine: str) -> None:
    name = "small_m_f16" if dtype is np.float16 else "small_m_bf16"
    a, b, c = (integers(i, 2, *shape, dtype=dtype) for i, shape in enumerate(((5, 264), (23, 264), (5, 23))))
    report = gemm(a, b.swapaxes(1, 2), c, alpha=2.0, beta=-1.0, kernel=name, machine=machine)
    exact = 2 * np.matmul(a.astype(np.float64), b.swapaxes(1, 2).astype(np.float64)) - c.astype(np.float64)
    np.testing.assert_array_equal(report.d.astype(np.float64), exact.astype(dtype).astype(np.float64))
    turned = np.zeros((23, 5), np.float32).T  # D along M: element by element
    gemm(a[0], b[0].T, kernel=name, machine=machine, out=turned)
    np.testing.assert_array_equal(turned, a[0].astype(np.float64) @ b[0].T.astype(np.float64))


def test_small_m_runs_when_named() -> None:
    """On an H200 the Hopper kernels are faster for 1 to 16 rows."""
    weights = integers(0, 64, 256)
    with sim.options(sizes="gpu"):
        assert gemm(integers(1, 1, 256), weights.T).kernel == "hopper_f16"
    with pytest.raises(ArgumentError, match="reads Float16 along K only"):
        gemm(integers(1, 4, 256), np.ascontiguousarray(weights.T), kernel="small_m_f16")
    bias = np.arange(64, dtype=np.float16)
    found = matmul(integers(1, 1, 256)[0], weights.T, bias=bias, activation="relu")  # a vector
    sums = integers(1, 1, 256)[0].astype(np.float64) @ weights.T.astype(np.float64) + bias
    np.testing.assert_array_equal(found, np.maximum(sums, 0))


@pytest.mark.parametrize(
    ("a", "b", "words", "message"),
    [
        ((17, 64), (64, 8), {}, "at most 16 rows, not 17"),
        ((4, 0), (0, 8), {}, "K is 0"),
        ((4, 63), (63, 8), {}, "multiples of 16 bytes; a has strides"),
        ((4, 64), (64, 8), {"decomposition": "stream_k"}, "share nothing"),
    ],
)
def test_small_m_refuses_other_shapes_and_options(
    a: tuple[int, int], b: tuple[int, int], words: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        gemm(integers(0, *a), integers(1, *b[::-1]).T, kernel="small_m_f16", **words)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size.tile[1]))
def test_b_comes_in_loads_of_16_bytes_without_spills(size: Any) -> None:
    artifact = cross_compile(size, "sm_90a")
    assert artifact.spills == 0 and artifact.registers <= 128  # two blocks a multiprocessor
    assert len(re.findall(r"ld\.global\S*\.v4\.", artifact.ptx)) >= size.tile[1] // 8 * size.tile[2] // 32


@pytest.mark.gpu
def test_small_m_on_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    for m, n, k in ((1, 4096, 4096), (3, 6144, 4096), (4, 1000, 14336), (16, 4096, 4104), (8, 28672, 8192)):
        a, b = torch.randint(-2, 3, (m, k), device="cuda").half(), torch.randint(-2, 3, (n, k), device="cuda").half()
        for size in SIZES:
            found = matmul(a, b.T, kernel=ENTRY.only(size))
            assert torch.equal(found, (a.double() @ b.T.double()).half())
