"""``make_umma_smem_desc``: a matrix descriptor of ``tcgen05.mma``, for one MMA or as a number for PTX text."""

from __future__ import annotations

from typing import Any

from tilewright.atoms.matrix_descriptor import ABSOLUTE, ADDRESS_BITS, TCGEN05, matrix_descriptor
from tilewright.cute.nvgpu.common import OperandMajorMode
from tilewright.errors import ConstraintError
from tilewright.lang.numbers.numeric import Int32, Int64
from tilewright.lang.tensors.descriptors import Descriptors
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.layout import Layout, is_static, logical_divide, make_layout, rank, size


def make_umma_smem_desc(
    src: Any, layout: Any, major: Any, next_src: Any = None, *, loc: Any = None, ip: Any = None
) -> Descriptors:
    """The descriptor of the first tile of a buffer in shared memory that an MMA reads. Adding n to it names what begins
    16 * n bytes later.

    ``cute.make_tensor(descriptor, cute.make_layout(1, stride=0))`` is an operand of ``cute.mma_atom_call``;
    :func:`smem_descriptor_to_int` gives the 64 bits.

    Args:
        src: where the buffer begins, a pointer with the buffer's swizzle.
        layout: of its elements (MN, K), without the swizzle; more modes, those of further tiles, do not count.
        major: ``"k"`` or ``"mn"``.
        next_src: for K 96 (sm_103a), whose rows are 48 bytes: where the rows go on when they reach the end of the
            swizzle's span at ``src``: the first K block of the buffer that follows, with the same layout. Needed for
            every such MMA; where no row reaches the end, any buffer does, such as the same one.

    Raises ConstraintError where the layout is not one that ``tcgen05.mma`` reads.

    >>> from tilewright import Float16, Int32
    >>> from tilewright.cute.nvgpu import tcgen05
    >>> def high(t):
    ...     buffer = cute.arch.alloc_smem(Float16, 128 * 64, 1024)
    ...     atom = tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_SW128, Float16)
    ...     whole = cute.tile_to_shape(atom, (128, 64), (0, 1))
    ...     pointer = cute.recast_ptr(buffer, whole.inner)
    ...     descriptor = tcgen05.make_umma_smem_desc(pointer, whole.outer, "k")
    ...     return (tcgen05.smem_descriptor_to_int(descriptor) >> 32).to(Int32)
    >>> hex(per_thread(high, 1)[0])
    '0x40004040'
    """
    _check_place(src)
    if not isinstance(layout, Layout) or not is_static(layout):
        raise ConstraintError(
            f"make_umma_smem_desc: the layout of a buffer is static and has no swizzle (layout.outer), not {layout}"
        )
    name = "K" if major is OperandMajorMode.K else "MN" if major is OperandMajorMode.MN else str(major).upper()
    if name not in ("K", "MN"):
        raise ConstraintError(f"make_umma_smem_desc: major is 'k' or 'mn', not {major!r}")
    tile = layout if rank(layout) == 2 else layout[0]
    if rank(tile) != 2:
        raise ConstraintError(f"make_umma_smem_desc: a tile has the modes (MN, K), not {tile}")
    type_ = src.dtype.ir_type
    depth = 256 // type_.width
    if next_src is not None:
        tile = _of_whole_pieces(src, next_src, tile, name, depth)
    elif size(tile[1]) < depth:
        raise ConstraintError(
            f"make_umma_smem_desc: an MMA reads {depth} elements of {src.dtype} along K, the tile {tile} has "
            f"{size(tile[1])}; for K 96, which takes whole pieces of 16 bytes, give next_src"
        )
    elif size(tile[1]) > depth:
        tile = make_layout(tile[0], logical_divide(tile[1], depth)[0])
    whole = (size(layout[0]), size(layout[1])) if layout is not tile and rank(layout) > 1 else (size(tile[0]), depth)
    descriptor = matrix_descriptor(tile, src.swizzle, name, type_, whole=whole, format=TCGEN05)
    low, high = _start(src) | descriptor.low, descriptor.high
    if next_src is not None:
        low, high = _start(src) | _start(next_src) << 16, high | ABSOLUTE
    return Descriptors(low, high, src.dtype, tile=(name, size(tile[0])))


def _check_place(pointer: Any, name: str = "") -> None:
    if not isinstance(pointer, Pointer) or pointer.memspace is not AddressSpace.smem or pointer.base_align % 16:
        raise ConstraintError(
            f"make_umma_smem_desc needs a pointer to shared memory at a multiple of 16{name}, not {pointer}"
        )


def _start(pointer: Pointer) -> Any:
    """The field of a start address: units of 16 bytes, before the swizzle."""
    base, offset = pointer.unswizzled()
    return (Int32((base + offset).toint()) & ADDRESS_BITS) >> 4


def _of_whole_pieces(src: Pointer, next_src: Any, tile: Layout, major: str, depth: int) -> Layout:
    """The tile (MN, K) of an MMA with K 96, as the canonical layout that ``matrix_descriptor`` checks. Under a swizzle
    the pieces of a row are neighbours, so a tile of one piece of 16 bytes says as much as one of two."""
    _check_place(next_src, " as next_src")
    swizzle = src.swizzle
    if major != "K" or swizzle is None or not swizzle.bits:
        raise ConstraintError(
            "make_umma_smem_desc: next_src belongs to K 96 on sm_103a, whose operands are K-major and swizzled "
            "(SmemLayoutAtomKind.K_SW128 of Uint8); the place of its field is that of the distance which a layout "
            "without a swizzle needs"
        )
    if next_src.swizzle != swizzle:
        raise ConstraintError(f"make_umma_smem_desc: src has the swizzle {swizzle}, next_src {next_src.swizzle}")
    steps = logical_divide(tile[1], min(depth // 2, size(tile[1])))[0]
    if size(steps) != depth // 2 or steps.stride not in (1, (1,)):
        raise ConstraintError(
            f"make_umma_smem_desc: with next_src a tile has rows of whole pieces of 16 contiguous bytes, not {tile}"
        )
    return make_layout(tile[0], Layout(depth, 1))


def smem_descriptor_to_int(desc: Any, *, loc: Any = None, ip: Any = None) -> Int64:
    """The 64 bits of a descriptor of :func:`make_umma_smem_desc`; a number stays what it is.

    >>> smem_descriptor_to_int(5)
    Int64(5)
    """
    if not isinstance(desc, Descriptors):
        return Int64(desc)
    high = desc.high - (desc.high >> 31 << 32)  # the swizzle's upper bit is the sign
    return Int64(desc.low + desc.offset) | Int64(high << 32)
