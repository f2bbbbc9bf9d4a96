"""Matrices whose rows or batches do not follow each other at a stride: rows by index, batches by pointer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import Int64, const_expr, cute, range_constexpr
from tilewright.cute.typing import AddressSpace
from tilewright.errors import ConstraintError
from tilewright.layout import divisor_of


@dataclass(frozen=True)
class Addressing:
    """An argument of a kernel; what is None is addressed by strides.

    ``gather_A`` (M,), ``gather_B`` (N,) and ``scatter_D`` (M,) are Int32 tensors: row m of the product's A is row
    ``gather_A[m]`` of the tensor A, and so on (B's rows are its columns, as the kernel has it (N, K); C goes with D).
    ``pointers`` (4, L) of Int64 has the addresses of A, B, C and D of each batch, whose layout is that of the tensors'
    first batch.
    """

    gather_A: Any = None
    gather_B: Any = None
    scatter_D: Any = None
    pointers: Any = None

    def extent(self, mD: Any) -> tuple[Any, Any]:
        """(M, N) of the product."""
        rows = self.gather_A if self.gather_A is not None else self.scatter_D
        m = cute.size(mD, mode=[0]) if rows is None else cute.size(rows)
        n = cute.size(mD, mode=[1]) if self.gather_B is None else cute.size(self.gather_B)
        return m, n

    def batches(self, mD: Any) -> Any:
        return cute.size(mD, mode=[2]) if self.pointers is None else cute.size(self.pointers, mode=[1])

    def batch(self, tensor: Any, operand: int, number: Any, alignment: int) -> Any:
        """Matrix ``number`` of operand 0 (A) to 3 (D), whose rows begin at multiples of ``alignment`` bytes."""
        if self.pointers is None:
            return tensor[None, None, number]
        first = tensor[None, None, 0]
        address = self.pointers[operand, number]
        pointer = cute.make_ptr(tensor.element_type, address, AddressSpace.gmem, assumed_align=alignment)
        return cute.make_tensor(pointer, first.layout)


BY_STRIDES = Addressing()


@cute.jit
def shifts(indices: cute.Tensor, rows: cute.Tensor, extent: Any, stride: Any, count: Any = None) -> cute.Tensor:
    """How many elements further than at a stride the rows ``rows`` (their numbers) are; 0 beyond ``extent``. With a
    ``count``, indices beyond it are taken for the last one, and those below 0 for 0."""
    found = cute.make_rmem_tensor(cute.size(rows), Int64)
    found.fill(0)
    for i in range_constexpr(cute.size(rows)):
        if rows[i] < extent:
            index = indices[rows[i]]
            if const_expr(count is not None):
                index = cute.max(cute.min(index, count - 1), 0)
            found[i] = (Int64(index) - rows[i]) * stride
    return found


def moved(tensor: Any, shift: Any, stride: Any) -> Any:
    """``tensor`` moved by a number of elements, a multiple of ``stride``, that keeps its alignment."""
    pointer, divisor = tensor.iterator, divisor_of(stride)
    shift = cute.assume(shift, divby=divisor) if divisor else shift
    return cute.make_tensor(aligned_pointer(pointer + shift, pointer.alignment), tensor.layout)


def aligned_pointer(pointer: Any, multiple: int) -> Any:
    """``pointer``, which is known to be aligned to that many bytes. ``Pointer.align`` would round up what is not, and
    so read and write other elements without a word; this raises ConstraintError while the kernel is staged."""
    if pointer.alignment % multiple:
        raise ConstraintError(
            f"a pointer that is a multiple of {pointer.alignment} bytes as far as is known, where accesses of "
            f"{multiple} bytes are to be made: state the divisors of its offset (cute.assume)"
        )
    return pointer
