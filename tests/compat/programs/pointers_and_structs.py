"""Arguments without DLPack: raw pointers, a class of the user's that follows the protocol, functions from functions."""

import ctypes
from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
import cutlass.torch as cutlass_torch
import torch
from cutlass.base_dsl.typing import Numeric
from cutlass.cute.runtime import from_dlpack, make_ptr
from cutlass.cutlass_dsl import extract_mlir_values


class Matrix:
    """A pointer with extents: what the caller passes."""

    def __init__(self, ptr, shape):
        self.ptr, self.shape = ptr, shape

    def __c_pointers__(self):
        return [*self.ptr.__c_pointers__(), *[ctypes.c_int32(n) for n in self.shape]]

    def __get_mlir_types__(self):
        return [*self.ptr.__get_mlir_types__(), *[cutlass.Int32.mlir_type] * len(self.shape)]

    def __new_from_mlir_values__(self, values):
        return Matrix(self.ptr.__new_from_mlir_values__(values[:1]), tuple(map(cutlass.Int32, values[1:])))

    def __extract_mlir_values__(self):
        return [*extract_mlir_values(self.ptr), *[v for n in self.shape for v in extract_mlir_values(n)]]


@dataclass(frozen=True)
class Options:
    bits: int
    alpha: float


@cute.kernel
def scale_kernel(x: cute.Tensor, alpha: cutlass.Float32):
    tidx, _, _ = cute.arch.thread_idx()
    row = x[tidx, None]
    for j in cutlass.range(cute.size(row), unroll=1):
        row[j] = (row[j] * alpha).to(x.element_type)


@cute.jit
def scale(x: cute.Tensor, alpha: cutlass.Float32):
    scale_kernel(x, alpha).launch(grid=(1, 1, 1), block=(cute.size(x, mode=[0]), 1, 1))


@cute.jit
def from_pointer(p: cute.Pointer, m: cutlass.Int32, n: cutlass.Int32, options: cutlass.Constexpr):
    x = cute.make_tensor(p, layout=cute.make_ordered_layout((m, n), order=(1, 0)))
    print("pointer:", x.element_type, options.bits)
    scale(x, options.alpha)


@cute.jit
def from_matrix(matrix: Matrix):
    scale(cute.make_tensor(matrix.ptr, cute.make_layout(matrix.shape, stride=(matrix.shape[1], 1))), 0.5)


def main():
    dtype: type[Numeric] = cutlass.Float16
    x = torch.ones(8, 12, dtype=cutlass_torch.dtype(dtype)).cuda()
    p = make_ptr(dtype, x.data_ptr(), cute.AddressSpace.gmem, assumed_align=32)
    from_pointer(p, 8, 12, Options(32, 6.0))
    from_matrix(Matrix(p, (8, 12)))
    scale(from_dlpack(x, assumed_align=16), 2.0)
    compiled = cute.compile(from_pointer, p, 8, 12, Options(32, 0.25))
    compiled(p, 8, 12)
    torch.testing.assert_close(x.cpu(), torch.full((8, 12), 1.5, dtype=x.dtype))
    print("PASS")


if __name__ == "__main__":
    main()
