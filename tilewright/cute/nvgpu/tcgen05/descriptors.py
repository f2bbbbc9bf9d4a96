"""``make_umma_smem_desc``: a matrix descriptor of ``tcgen05.mma`` as a number, for MMAs in PTX text."""

from __future__ import annotations

from typing import Any

from tilewright.atoms.matrix_descriptor import ADDRESS_BITS, TCGEN05, matrix_descriptor
from tilewright.cute.nvgpu.common import OperandMajorMode
from tilewright.errors import ConstraintError
from tilewright.lang.numbers.numeric import Int32, Int64
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.layout import Layout, is_static, logical_divide, make_layout, rank, size


def make_umma_smem_desc(
    src: Any, layout: Any, major: Any, next_src: Any = None, *, loc: Any = None, ip: Any = None
) -> Int64:
    """The descriptor of the first tile of a buffer in shared memory that an MMA reads, a number of 64 bits; further
    ones begin so many units of 16 bytes later, which are added to it.

    Args:
        src: where the buffer begins, a pointer with the buffer's swizzle.
        layout: of its elements (MN, K), without the swizzle; more modes, those of further tiles, do not count.
        major: ``"k"`` or ``"mn"``.
        next_src: of K = 96 on sm_103 only, which no operation here has; ConstraintError.

    Raises ConstraintError where the layout is not one that ``tcgen05.mma`` reads.

    >>> from tilewright import Float16, Int32
    >>> from tilewright.cute.nvgpu import tcgen05
    >>> def high(t):
    ...     buffer = cute.arch.alloc_smem(Float16, 128 * 64, 1024)
    ...     atom = tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_SW128, Float16)
    ...     whole = cute.tile_to_shape(atom, (128, 64), (0, 1))
    ...     pointer = cute.recast_ptr(buffer, whole.inner)
    ...     return (tcgen05.make_umma_smem_desc(pointer, whole.outer, "k") >> 32).to(Int32)
    >>> hex(per_thread(high, 1)[0])
    '0x40004040'
    """
    if next_src is not None:
        raise ConstraintError(
            "make_umma_smem_desc: next_src belongs to K = 96 on sm_103; "
            "experimental.primitives.Tcgen05SmemDesc.build has leading_dim_mode=1 for it"
        )
    if not isinstance(src, Pointer) or src.memspace is not AddressSpace.smem or src.base_align % 16:
        raise ConstraintError(f"make_umma_smem_desc needs a pointer to shared memory at a multiple of 16, not {src}")
    if not isinstance(layout, Layout) or not is_static(layout):
        raise ConstraintError(
            f"make_umma_smem_desc: the layout of a buffer is static and has no swizzle (layout.outer), not {layout}"
        )
    name = "K" if major is OperandMajorMode.K else "MN" if major is OperandMajorMode.MN else str(major).upper()
    if name not in ("K", "MN"):
        raise ConstraintError(f"make_umma_smem_desc: major is 'k' or 'mn', not {major!r}")
    tile = layout[0] if rank(layout) > 2 else layout
    if rank(tile) != 2:
        raise ConstraintError(f"make_umma_smem_desc: a tile has the modes (MN, K), not {tile}")
    type_ = src.dtype.ir_type
    depth = 256 // type_.width
    if size(tile[1]) > depth:
        tile = make_layout(tile[0], logical_divide(tile[1], depth)[0])
    whole = (size(layout[0]), size(layout[1])) if tile is not layout[0] else (size(tile[0]), size(tile[1]))
    descriptor = matrix_descriptor(tile, src.swizzle, name, type_, whole=whole, format=TCGEN05)
    base, offset = src.unswizzled()
    low = (Int32((base + offset).toint()) & ADDRESS_BITS) >> 4 | descriptor.low
    high = descriptor.high - (descriptor.high >> 31 << 32)  # the swizzle's upper bit is the sign
    return Int64(low) | Int64(high << 32)


def smem_descriptor_to_int(desc: Any, *, loc: Any = None, ip: Any = None) -> Int64:
    """A descriptor as a number: what :func:`make_umma_smem_desc` gives is one.

    >>> smem_descriptor_to_int(5)
    Int64(5)
    """
    return Int64(desc)
