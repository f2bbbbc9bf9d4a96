"""Fragments: register tensors for the operands of an MMA."""

from __future__ import annotations

from typing import Any

from tilewright.lang.numbers.numeric import class_of
from tilewright.lang.tensors.algebra import make_rmem_tensor
from tilewright.lang.tensors.tensor import Tensor
from tilewright.tiled.provenance import remember_fragment
from tilewright.tiled.tiled_mma import TiledMma


def make_fragment(mma: TiledMma, which: str, x: Any) -> Tensor:
    """A register tensor of the operand's type for the partitioned tensor (or partition shape) ``x``; of an operand that
    the instruction reads from shared memory, the tensor of its descriptors."""
    instruction = mma.instruction
    if instruction.reads_shared(which):
        from tilewright.tiled.warpgroup import make_descriptors

        return make_descriptors(mma, which, x)
    type_ = {"A": instruction.type_a, "B": instruction.type_b, "C": instruction.type_d}[which]
    return remember_fragment(make_rmem_tensor(mma.fragment_layout(which, x), class_of(type_)), mma, which)
