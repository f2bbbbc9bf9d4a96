"""Epilogue functions: those of the library and one written by a user, exact on both machines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tests.gemm.test_gemm import MACHINES, integers
from tilewright import Float32, cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError
from tilewright.gemm import Bias, Chain, GemmUniversal, LinearCombination, Relu, gemm

KERNELS = {"tensorop_f16": np.float16, "simt_f32": np.float32}


@dataclass(frozen=True)
class ScaleRowsAndAdd:
    """A user's function: rows times a vector, plus C where it is positive."""

    scale: cute.Tensor

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: object) -> None:
        c = tile.source().to(acc.element_type)
        acc.store(acc.load() * tile.column(self.scale) + cute.where(c > 0, c, cute.zeros_like(c)))


def vector(array: np.ndarray, machine: str) -> object:
    if machine == "gpu":
        torch = pytest.importorskip("torch")
        return from_dlpack(torch.from_numpy(array).cuda()).mark_layout_dynamic()
    return from_dlpack(array).mark_layout_dynamic()


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("size", [(128, 128, 32), (130, 72, 40), (3, 5, 7)], ids=str)
def test_bias_and_relu(kernel: str, size: tuple[int, int, int], machine: str) -> None:
    m, n, k = size
    rng = np.random.default_rng(m)
    a, b = integers(rng, (m, k), KERNELS[kernel]), integers(rng, (k, n), KERNELS[kernel])
    bias = rng.integers(-9, 9, n).astype(np.float32)
    function = Chain((LinearCombination(Float32(2), Float32(0)), Bias(vector(bias, machine)), Relu()))
    d = gemm(a, b, kernel=kernel, epilogue=function, machine=machine).d
    np.testing.assert_array_equal(d, np.maximum(2 * (a.astype(np.float64) @ b.astype(np.float64)) + bias, 0))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("transposed", [False, True])
def test_user_defined_epilogue_function(kernel: str, transposed: bool, machine: str) -> None:
    m, n, k = 140, 264, 24
    rng = np.random.default_rng(1)
    a, b = integers(rng, (m, k), KERNELS[kernel]), integers(rng, (k, n), KERNELS[kernel])
    c = integers(rng, (m, n), KERNELS[kernel], transposed)
    scale = rng.integers(-3, 4, m).astype(np.float32)
    d = gemm(a, b, c, kernel=kernel, epilogue=ScaleRowsAndAdd(vector(scale, machine)), machine=machine).d
    expected = (a.astype(np.float64) @ b.astype(np.float64)) * scale[:, None] + np.maximum(c.astype(np.float64), 0)
    np.testing.assert_array_equal(d, expected)


def test_wrong_epilogues() -> None:
    a = np.ones((8, 8), np.float16)
    with pytest.raises(ArgumentError, match="put them into it"):
        gemm(a, a.copy(), alpha=2.0, epilogue=Relu())
    with pytest.raises(ArgumentError, match=r"Bias: a vector of 8 elements, one for each column of D, is wanted"):
        gemm(a, a.copy(), epilogue=Chain((Relu(), Bias(vector(np.zeros(7, np.float32), "cpu")))))
    with pytest.raises(ArgumentError, match="epilogue must be called"):
        gemm(a, a.copy(), epilogue="relu")


def test_a_kernel_without_c_has_no_code_for_it() -> None:
    a = np.ones((32, 32), np.float16)
    lengths = []
    for c in (None, a):
        handle = GemmUniversal("tensorop_f16")
        handle.initialize(GemmUniversal.Arguments(A=a, B=a.copy(), C=c, D=np.empty_like(a)))
        (kernel,) = handle._need_ready("test").handle.executor.kernels
        names = [parameter.hint for parameter in kernel.params]
        assert any(str(name).startswith("mC") for name in names) == (c is not None), names
        lengths.append(sum(1 for _ in kernel.walk()))
    assert lengths[0] < lengths[1]
