"""Shared memory: allocations at static offsets of the block's one dynamic allocation.

The running total is the attribute ``smem_bytes`` of the kernel's builder, so that several allocators in one kernel
follow each other. Memory is never given back. The allocation's base is aligned to 1024 bytes.
"""

from __future__ import annotations

import enum
import math
from typing import Any

from tilewright.errors import HOW_STATIC, ArgumentError, ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Location, Variable
from tilewright.ir.target import MOST_SMEM, architecture, assumed_architecture
from tilewright.lang.numbers.facts import Facts
from tilewright.lang.numbers.numeric import NumericMeta, Uint8, wrap
from tilewright.lang.tensors.pointer import Pointer, element_bits, element_bytes, storage
from tilewright.lang.tensors.recast import pointer_to, recast_ptr
from tilewright.lang.tensors.struct import Struct, StructType
from tilewright.lang.tensors.tensor import Tensor, make_tensor
from tilewright.layout.composed import ComposedLayout
from tilewright.layout.layout import Layout, make_layout
from tilewright.layout.tuples import is_static
from tilewright.location_keywords import takes_location

BASE_ALIGNMENT = 1024
"""The alignment of a block's shared memory; also the span of the widest swizzle."""
BOX_ALIGNMENT = 128
"""What TMA asks of a tile."""


@takes_location
def get_smem_capacity_in_bytes(compute_capability: str | None = None) -> int:
    """Bytes of shared memory that one block can use on a device of this compute capability (``"sm_90"`` or ``"90"``).
    Without a name it is that of ``CUTE_DSL_ARCH``, or 9.0.

    >>> get_smem_capacity_in_bytes("sm_90"), get_smem_capacity_in_bytes("80")
    (232448, 166912)
    """
    if not compute_capability:
        return assumed_architecture().smem
    return architecture(compute_capability, bare=True).smem


class SmemPartition(enum.Enum):
    """What an allocation is for: ``USER``, a tile, which begins behind all others; ``RESERVED``, a small object such as
    mbarriers, which begins in the first gap that alignments left, or behind all others where it fits in none.
    """

    USER = 0
    RESERVED = 1


class SmemAllocator:
    """Hands out the shared memory of the kernel being staged; launches reserve what it handed out.

    Layouts must be static. ``byte_alignment`` is a power of two up to 1024. A struct whose tiles are aligned to 128
    bytes, as TMA asks, lies so that they begin at multiples of 1024, as swizzles want them, where one place does.
    """

    capacity_in_bytes = staticmethod(get_smem_capacity_in_bytes)

    def __init__(self, *, loc: Any = None, ip: Any = None) -> None:
        Builder.current()

    def allocate(
        self,
        size_or_type: Any,
        byte_alignment: int | None = None,
        partition: SmemPartition = SmemPartition.USER,
        *,
        loc: Any = None,
        ip: Any = None,
    ) -> Any:
        """Bytes (an int: a Uint8 pointer), one number of a numeric type (a pointer) or a struct (an object of it)."""
        if isinstance(size_or_type, StructType):
            kind = size_or_type
            align, ahead = max(byte_alignment or 1, kind.align), _ahead(kind)
            room = get_smem_capacity_in_bytes() - Builder.current().smem_bytes - kind.size_in_bytes()
            if ahead is None or ahead % align or room < ahead + BASE_ALIGNMENT:
                return Struct(kind, _place, self._reserve(kind.size_in_bytes(), align, partition))
            # Tiles that are swizzled begin at whole blocks, and the small members before them lie ahead of one.
            offset = self._reserve(ahead + kind.size_in_bytes(), max(align, BASE_ALIGNMENT), partition)
            return Struct(kind, _place, offset + ahead)
        if isinstance(size_or_type, NumericMeta):
            return self.allocate_array(size_or_type, 1, byte_alignment, partition)
        if not isinstance(size_or_type, int) or size_or_type < 0:
            raise ArgumentError(
                f"allocate: a number of bytes, a numeric type or a struct is needed, not {size_or_type!r}"
            )
        offset = self._reserve(size_or_type, byte_alignment or 1, partition)
        return _place(offset, size_or_type, Uint8, "smem")

    def allocate_array(
        self,
        element_type: Any,
        num_elems: int = 1,
        byte_alignment: int | None = None,
        partition: SmemPartition = SmemPartition.USER,
        *,
        loc: Any = None,
        ip: Any = None,
    ) -> Pointer:
        """A pointer to ``num_elems`` fresh elements."""
        size = -(-element_bits(element_type) * num_elems // 8)
        offset = self._reserve(size, max(byte_alignment or 1, element_bytes(element_type)), partition)
        return _place(offset, size, element_type, "smem")

    def allocate_tensor(
        self,
        element_type: Any,
        layout: Any,
        byte_alignment: int = 1,
        swizzle: Any = None,
        partition: SmemPartition = SmemPartition.USER,
        *,
        loc: Any = None,
        ip: Any = None,
    ) -> Tensor:
        """A tensor of a static layout in shared memory.

        Of a shared-memory layout for TMA or wgmma both parts are given: ``layout=staged.outer, swizzle=staged.inner``.
        A swizzled tensor is aligned to the span of its swizzle, so that the swizzle permutes address bits.

        Args:
            element_type: a numeric class.
            layout: a static layout, or a shape; the swizzle in a composed layout permutes offsets in elements.
            byte_alignment: in bytes, at least, a power of two.
            swizzle: of byte addresses, or None.
            partition: the part of shared memory to take it from.
        """
        from tilewright.lang.tensors.algebra import size_in_bytes

        if isinstance(element_type, (Layout, ComposedLayout)):
            raise ConstraintError(
                f"allocate_tensor({element_type}, ...): the element type comes first: allocate_tensor(dtype, layout)"
            )
        if not isinstance(layout, (Layout, ComposedLayout)):
            layout = make_layout(layout)
        if not is_static(layout):
            raise ConstraintError(f"allocate_tensor: shared memory needs a static layout, not {layout}; {HOW_STATIC}")
        size = element_bytes(element_type)
        own = layout.inner if isinstance(layout, ComposedLayout) else None
        spans = [_span(swizzle), -(-_span(own, element_bits(element_type)) // 8)]
        align = max(byte_alignment, size, *spans)
        size = size_in_bytes(element_type, layout, swizzle)
        pointer = _place(self._reserve(size, min(align, BASE_ALIGNMENT), partition), size, element_type, "smem")
        return make_tensor(recast_ptr(pointer, swizzle) if swizzle is not None else pointer, layout)

    def _reserve(self, size: int, align: int, partition: SmemPartition) -> int:
        if align < 1 or align & (align - 1) or align > BASE_ALIGNMENT:
            raise ArgumentError(f"shared memory: an alignment is a power of two up to {BASE_ALIGNMENT}, not {align}")
        if not isinstance(partition, SmemPartition):
            raise ArgumentError(f"shared memory: partition= is a member of utils.SmemPartition, not {partition!r}")
        builder = Builder.current()
        if partition is SmemPartition.RESERVED:
            for i, (start, end) in enumerate(builder.smem_gaps):
                offset = _aligned(start, align)
                if offset + size <= end:
                    builder.smem_gaps[i : i + 1] = [(start, offset), (offset + size, end)]
                    return offset
        offset = _aligned(builder.smem_bytes, align)
        builder.smem_gaps.append((builder.smem_bytes, offset))
        builder.smem_bytes = offset + size
        return offset


def _aligned(offset: int, align: int) -> int:
    return -(-offset // align) * align


def _span(swizzle: Any, unit: int = 1) -> int:
    """The size of the blocks that ``swizzle`` permutes, when it counts units of this size."""
    bits = getattr(swizzle, "bits", 0)
    return unit << (bits + swizzle.base + abs(swizzle.shift)) if bits else 1


def _ahead(kind: StructType) -> int | None:
    """The bytes to leave free ahead of a struct so that its tiles begin at blocks of BASE_ALIGNMENT, though they ask
    for BOX_ALIGNMENT alone: tiles are members of whole blocks, and all must be as far from one. None: the
    struct has no tiles, or they are at different distances."""
    tiles = {
        -offset % BASE_ALIGNMENT
        for member, offset in kind.fields.values()
        if member.align >= BOX_ALIGNMENT and member.size_in_bytes % BASE_ALIGNMENT == 0
    }
    return tiles.pop() if len(tiles) == 1 else None


def _place(offset: int, size: int, dtype: Any, name: str) -> Pointer:
    """A pointer to a static place, with all the alignment that its offset has."""
    align = math.gcd(offset, BASE_ALIGNMENT) if offset else BASE_ALIGNMENT
    return pointer_to(dtype, Builder.current().smem_alloc(offset, size, align, storage(dtype), name))


def name_place(name: str, pointer: Pointer) -> None:
    """Name the shared memory at ``pointer`` in messages of the simulator."""
    builder = Builder.current()
    builder.variables.append(Variable(name, pointer, builder.loc or Location("", 0)))


def get_dyn_smem(element_type: Any, alignment: int = 1024, *, loc: Any = None, ip: Any = None) -> Pointer:
    """The start of the block's shared memory.

    >>> from tilewright import Int32
    >>> def keep(t):
    ...     buffer = arch.alloc_smem(Int32, 32)
    ...     arch.store(buffer + t, t * t)
    ...     return arch.load(arch.get_dyn_smem(Int32) + t)
    >>> per_thread(keep)[:4]
    [0, 1, 4, 9]
    """
    base = Builder.current().smem_alloc(0, 0, min(alignment, 1024), storage(element_type), "smem")
    return pointer_to(element_type, base)


def get_dyn_smem_size(*, loc: Any = None, ip: Any = None) -> int:
    """Bytes of shared memory that this kernel's allocators have handed out so far.

    >>> from tilewright import Int32
    >>> per_thread(lambda t: (arch.alloc_smem(Int32, 32), arch.get_dyn_smem_size())[1], 2)
    [128, 128]
    """
    return Builder.current().smem_bytes


def dynamic_smem_size(*, loc: Any = None, ip: Any = None) -> Any:
    """Bytes of dynamic shared memory that the launch gave each block, a run-time Int32 (PTX ``%dynamic_smem_size``).

    >>> from tilewright import Int32
    >>> per_thread(lambda t: (arch.alloc_smem(Int32, 32), arch.dynamic_smem_size())[1], 2)
    [128, 128]
    """
    return wrap(Builder.current().sreg("dynamic_smem_size"), Facts(True, 1, MOST_SMEM + 1))


def alloc_smem(
    element_type: Any, size_in_elems: int, alignment: int | None = None, *, loc: Any = None, ip: Any = None
) -> Pointer:
    """A pointer to ``size_in_elems`` fresh elements of shared memory.

    >>> from tilewright import Int32
    >>> def reverse(t):
    ...     buffer = arch.alloc_smem(Int32, 32)
    ...     arch.store(buffer + t, t)
    ...     arch.sync_threads()
    ...     return arch.load(buffer + (31 - t))
    >>> per_thread(reverse)[:3]
    [31, 30, 29]
    """
    return SmemAllocator().allocate_array(element_type, size_in_elems, alignment)
