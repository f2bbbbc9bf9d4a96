"""Memory spaces, and what an element of a numeric class takes in memory."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

from tilewright.ir.types import U8, MemSpace, ScalarType
from tilewright.layout.swizzle import Swizzle


class AddressSpace(Enum):
    """Where a pointer points to.

    >>> from tilewright import Float32
    >>> cute.make_ptr(Float32, 0x1000, cute.AddressSpace.gmem).memspace
    <AddressSpace.gmem: 'gmem'>
    """

    generic = "generic"
    gmem = "gmem"
    smem = "smem"
    dsmem = "dsmem"
    rmem = "rmem"
    tmem = "tmem"
    """Tensor memory, of sm_100: named by :class:`~tilewright.lang.tensors.tensor_memory.TensorMemory`."""

    def __str__(self) -> str:
        return self.value


class PointerType(NamedTuple):
    """The type of a pointer: ``pointer.type.swizzle_type``."""

    value_type: Any
    memspace: AddressSpace
    alignment: int
    swizzle_type: Swizzle


SPACES: dict[AddressSpace, MemSpace] = {
    space: MemSpace(space.value) for space in AddressSpace if space is not AddressSpace.tmem
}


def element_bytes(dtype: Any) -> int:
    return dtype.ir_type.bytes


def element_bits(dtype: Any) -> int:
    """The memory of an element."""
    return dtype.width if is_packed(dtype) else 8 * element_bytes(dtype)


def is_packed(dtype: Any) -> bool:
    """Whether elements share bytes: numbers of 4 and 6 bits."""
    return bool(dtype.ir_type.packed)


def storage(dtype: Any) -> ScalarType:
    """The IR type that pointers to elements of ``dtype`` point to."""
    return U8 if is_packed(dtype) else dtype.ir_type
