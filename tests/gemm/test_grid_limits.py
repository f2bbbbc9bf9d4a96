"""Batches and slices beyond what a grid's y and z hold: several launches, or a refusal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.errors import ArgumentError
from tilewright.gemm import GemmUniversal, SplitK, gemm, launcher, matmul
from tilewright.gemm.config import GemmConfig
from tilewright.gemm.kernel.reduce import ReduceSplitK

torch = pytest.importorskip("torch")
Arguments = GemmUniversal.Arguments


def stacks(batch: int, dtype: Any = np.float16) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(batch)
    a, b = rng.integers(-3, 4, (batch, 5, 9)).astype(dtype), rng.integers(-3, 4, (batch, 9, 6)).astype(dtype)
    return a, b, a.astype(float) @ b.astype(float)


@pytest.fixture
def three_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grid that holds three batches."""
    monkeypatch.setattr(GemmConfig, "most_batches", 3)


@pytest.mark.unchecked
@pytest.mark.parametrize("batch", [3, 4, 7])
def test_gemm_with_more_batches_than_a_grid_holds(three_batches: None, batch: int) -> None:
    a, b, expected = stacks(batch)
    for found in (gemm(a, b, kernel="tensorop_f16").d, matmul(a, b), gemm(a[:, :, ::-1], b[:, ::-1]).d):
        np.testing.assert_array_equal(found, expected)
    d = np.zeros((batch, 5, 6), np.float16)
    launcher(a, b, d)()
    np.testing.assert_array_equal(d, expected)
    for mode, arrays in (("batched", (a, b, np.zeros_like(d))), ("array", (list(a), list(b), list(np.zeros_like(d))))):
        handle, arguments = GemmUniversal(), Arguments(*arrays, mode=mode)
        assert handle.can_implement(arguments)
        handle(arguments)
        np.testing.assert_array_equal(np.stack(list(arguments.D)), expected)


def test_other_tensors_of_the_same_geometry(three_batches: None) -> None:
    """The second call goes by the addresses alone."""
    for seed in (1, 2):
        torch.manual_seed(seed)
        a, b = torch.randint(-3, 4, (7, 5, 8)).half(), torch.randint(-3, 4, (7, 8, 6)).half()
        assert torch.equal(matmul(a, b, kernel="tensorop_f16").double(), a.double() @ b.double())


@pytest.mark.gpu
def test_70_000_products_on_a_gpu() -> None:
    a, b = (torch.randint(-3, 4, shape, device="cuda").half() for shape in ((70_000, 5, 9), (70_000, 9, 6)))
    d = torch.empty(70_000, 5, 6, device="cuda", dtype=torch.float16)
    assert GemmUniversal().can_implement(Arguments(a, b, d, mode="batched"))
    assert torch.equal(matmul(a, b, d).double(), a.double() @ b.double())


def test_parallel_split_k_of_more_rows_than_its_second_kernel_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReduceSplitK, "MOST_ROWS", 4)
    a, b, _ = stacks(1)
    with pytest.raises(ArgumentError, match="parallel split-K of 5 rows"):
        gemm(a[0], b[0], kernel="tensorop_f16", decomposition=SplitK(2, "parallel"))
