"""Arrays of CuPy, as far as they can be seen without a GPU: ``__cuda_array_interface__`` and a device."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError
from tilewright.lang.arguments.arrays import array_of


class CudaArray:
    """What CuPy's arrays show; the address is of no memory."""

    def __init__(self, shape: tuple[int, ...], typestr: str, strides: Any = None, readonly: bool = False) -> None:
        self.shape, self.ndim, self.dtype = shape, len(shape), np.dtype(typestr)
        self.device = SimpleNamespace(id=1)
        self.strides, self.readonly = strides, readonly

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        data = (0x7F00_0000_0100, self.readonly)
        return {"shape": self.shape, "typestr": self.dtype.str, "data": data, "strides": self.strides, "version": 3}


@pytest.mark.parametrize("readonly", [True, False])
def test_cuda_array_interface_layout_and_device(readonly: bool) -> None:
    seen = array_of(CudaArray((4, 6), "<f2", readonly=readonly))
    assert (seen.device, seen.shape, seen.stride, seen.dtype) == ("cuda:1", (4, 6), (6, 1), cutlass.Float16)
    assert seen.readonly is readonly
    columns = from_dlpack(CudaArray((4, 6), "<f4", strides=(4, 16)), assumed_align=16)
    assert str(columns.layout) == "(4,6):(1,4)" and columns.device == "cuda:1"
    assert str(columns.mark_layout_dynamic().layout) == "(?,?):(1,?)"


def test_cuda_array_interface_in_compile_and_refusals() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        y[t] = x[t]

    @cute.jit
    def run(x: cute.Tensor, y: cute.Tensor) -> None:
        kernel(x, y).launch(grid=(1, 1, 1), block=(4, 1, 1))

    x, y = CudaArray((4,), "<f4"), CudaArray((4,), "<f4", readonly=True)
    compiled = cute.compile(run, x, y)
    assert "kernel" in repr(compiled)
    with pytest.raises(ArgumentError, match="argument 'y': the array is read-only"):
        compiled(x, y)
    with pytest.raises(ArgumentError, match="several devices"):
        compiled(x, np.zeros(4, np.float32))
    with pytest.raises(ArgumentError, match="argument 'x': expected"):
        compiled(CudaArray((4,), "<f8"), x)


@pytest.mark.gpu
def test_cupy_arrays_on_a_gpu() -> None:
    """Arrays of CuPy, strided views among them, in and out, on CuPy's own stream."""
    cupy = pytest.importorskip("cupy")

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        row, _, _ = cute.arch.block_idx()
        y[row, t] = 2.0 * x[row, t]

    @cute.jit
    def run(x: cute.Tensor, y: cute.Tensor) -> None:
        kernel(x, y).launch(grid=(x.shape[0], 1, 1), block=(x.shape[1], 1, 1))

    x = cupy.arange(32, dtype=cupy.float32).reshape(4, 8)
    for given in (x, x.T, x[:, ::2]):
        y = cupy.zeros(given.shape, cupy.float32)
        run(given, y)
        run(from_dlpack(given), from_dlpack(y))
        cupy.cuda.Device().synchronize()
        np.testing.assert_array_equal(cupy.asnumpy(y), 2 * cupy.asnumpy(given))
