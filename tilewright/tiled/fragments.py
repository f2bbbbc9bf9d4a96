"""Fragments: register tensors for the operands of an MMA."""

from __future__ import annotations

from typing import Any

from tilewright.lang.numbers.numeric import Int32, class_of
from tilewright.lang.tensors.algebra import make_rmem_tensor
from tilewright.lang.tensors.tensor import Tensor
from tilewright.lang.tensors.tensor_memory import TensorMemory
from tilewright.tiled.provenance import remember_fragment
from tilewright.tiled.tiled_mma import TiledMma


def make_fragment(mma: TiledMma, which: str, x: Any) -> Tensor:
    """A register tensor of the operand's type for the partitioned tensor (or partition shape) ``x``; of an operand that
    the instruction reads from shared memory, the tensor of its descriptors; of one in tensor memory, a tensor at its
    first lane and column, whose layout serves for a tensor at the place that was allocated. For accumulators in tensor
    memory the tile (M, N) of the product is taken too."""
    instruction = mma.instruction
    if instruction.reads_shared(which):
        from tilewright.tiled.asynchronous_mma import make_descriptors

        return make_descriptors(mma, which, x)
    type_ = instruction.type_d if which == "C" else instruction.stored_type(which)
    if instruction.in_tensor_memory(which):
        if which == "C" and isinstance(x, tuple) and len(x) == 2 and all(isinstance(extent, int) for extent in x):
            x = mma.partition_shape("C", x)
        layout = instruction.tensor_memory(which, x if isinstance(x, tuple) else x.shape)
        return Tensor(TensorMemory(Int32(0), class_of(type_)), layout)
    return remember_fragment(make_rmem_tensor(mma.fragment_layout(which, x), class_of(type_)), mma, which)
