"""The makers of tiled copies: from thread and value layouts, from a TiledMma's operand, from another tiled copy."""

from __future__ import annotations

from typing import Any

from tilewright.atoms.tensor_memory_copy import WARP
from tilewright.atoms.tensor_memory_move import TmemMove
from tilewright.errors import ConstraintError
from tilewright.layout import (
    Layout,
    composition,
    cosize,
    filter,
    format_tree,
    left_inverse,
    make_layout,
    make_layout_tv,
    offsets,
    product,
    product_each,
    recast_layout,
    size,
)
from tilewright.tiled.atom import CopyAtom
from tilewright.tiled.operands import checked_tiler, need, need_tv
from tilewright.tiled.tiled_copy import TiledCopy, shape_of_tiler
from tilewright.tiled.tiled_mma import TiledMma


def make_tiled_copy(atom: CopyAtom, layout_tv: Layout, tiler_mn: Any, *, loc: Any = None, ip: Any = None) -> TiledCopy:
    """A tiled copy from a layout (thread, value) -> coordinate in the tile, and the tile.

    Raises ConstraintError when a coordinate is outside the tile or the instruction does not fit.

    >>> from tilewright import Float32
    >>> atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32, num_bits_per_copy=128)
    >>> tiler, tv = cute.make_layout_tv(cute.make_layout((16, 8), stride=(8, 1)), cute.make_layout((1, 4)))
    >>> tiler, tv
    ((16, 32), ((8,16),4):((64,1),16))
    >>> tiled = cute.make_tiled_copy(atom, tv, tiler)  # thread 0 has row 0, columns 0 to 3; thread 1 columns 4 to 7
    >>> tiled.size, tiled.tiler_mn
    (128, (16:1, 32:1))
    """
    need("make_tiled_copy", atom, CopyAtom, "a copy atom")
    need_tv("make_tiled_copy", layout_tv)
    made = TiledCopy(atom, _by_registers(atom, layout_tv), checked_tiler(tiler_mn))
    inside = product(product_each(shape_of_tiler(made.tiler)))
    if cosize(layout_tv) > inside:
        raise ConstraintError(
            f"make_tiled_copy: the thread-value layout {layout_tv} reaches coordinate {cosize(layout_tv) - 1} of the "
            f"tile {format_tree(made.tiler)}, which has {inside}: coordinates count the tile's elements column by "
            "column"
        )
    return made


def make_tiled_copy_tv(
    atom: CopyAtom, thr_layout: Layout, val_layout: Layout, *, loc: Any = None, ip: Any = None
) -> TiledCopy:
    """A tiled copy from a layout of threads and a layout of each thread's values, both over coordinates.

    >>> from tilewright.atoms.universal import UniversalCopy
    >>> from tilewright.ir.types import F32
    >>> tiled = make_tiled_copy_tv(CopyAtom(UniversalCopy(128), F32), make_layout((32, 8)), make_layout((4, 1)))
    >>> tiled.layout_tv_tiled, tiled.tiler_mn
    ((256,4):(4,1), (128:1, 8:1))
    """
    need("make_tiled_copy_tv", atom, CopyAtom, "a copy atom")
    need("make_tiled_copy_tv", thr_layout, Layout, "a layout of threads")
    need("make_tiled_copy_tv", val_layout, Layout, "a layout of values")
    tiler_mn, layout_tv = make_layout_tv(thr_layout, val_layout)
    return TiledCopy(atom, layout_tv, tiler_mn)


def make_tiled_copy_A(atom: CopyAtom, tiled_mma: TiledMma, *, loc: Any = None, ip: Any = None) -> TiledCopy:
    """A tiled copy into (or out of) the registers that ``tiled_mma`` wants for A.

    >>> import tilewright as cutlass
    >>> op = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    >>> atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float16)
    >>> make_tiled_copy_A(atom, cute.make_tiled_mma(op)).size  # threads
    32
    """
    return _for_operand(atom, tiled_mma, "A")


def make_tiled_copy_B(atom: CopyAtom, tiled_mma: TiledMma, *, loc: Any = None, ip: Any = None) -> TiledCopy:
    """A tiled copy into (or out of) the registers that ``tiled_mma`` wants for B.

    >>> import tilewright as cutlass
    >>> op = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    >>> atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float16)
    >>> make_tiled_copy_B(atom, cute.make_tiled_mma(op)).size  # threads
    32
    """
    return _for_operand(atom, tiled_mma, "B")


def make_tiled_copy_C(atom: CopyAtom, tiled_mma: TiledMma, *, loc: Any = None, ip: Any = None) -> TiledCopy:
    """A tiled copy into (or out of) the accumulators of ``tiled_mma``.

    >>> import tilewright as cutlass
    >>> op = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    >>> atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float16)
    >>> make_tiled_copy_C(atom, cute.make_tiled_mma(op)).size  # threads
    32
    """
    return _for_operand(atom, tiled_mma, "C")


def _for_operand(atom: CopyAtom, mma: TiledMma, operand: str) -> TiledCopy:
    need(f"make_tiled_copy_{operand}", atom, CopyAtom, "a copy atom")
    need(f"make_tiled_copy_{operand}", mma, TiledMma, "a tiled MMA")
    tile = tuple(int(size(tiler)) for tiler in mma.operand_tile(operand))  # of a sparse A what is stored
    return TiledCopy(atom, mma.tv_layout_tiled(operand), tile, (mma, operand))


def make_tiled_copy_S(atom: CopyAtom, tiled_copy: TiledCopy, *, loc: Any = None, ip: Any = None) -> TiledCopy:
    """A tiled copy of ``atom`` whose threads hold what ``tiled_copy``'s source threads hold.

    >>> import tilewright as cutlass
    >>> atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float16)
    >>> copy = cute.make_tiled_copy_tv(atom, cute.make_layout((8, 4)), cute.make_layout((1, 2)))
    >>> make_tiled_copy_S(atom, copy).tiler_mn == copy.tiler_mn
    True
    """
    need("make_tiled_copy_S", atom, CopyAtom, "a copy atom")
    need("make_tiled_copy_S", tiled_copy, TiledCopy, "a tiled copy")
    return TiledCopy(atom, tiled_copy.layout_src_tv_tiled, tiled_copy.tiler)


def make_tiled_copy_D(atom: CopyAtom, tiled_copy: TiledCopy, *, loc: Any = None, ip: Any = None) -> TiledCopy:
    """A tiled copy of ``atom`` whose threads hold what ``tiled_copy``'s destination threads hold.

    >>> import tilewright as cutlass
    >>> atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float16)
    >>> copy = cute.make_tiled_copy_tv(atom, cute.make_layout((8, 4)), cute.make_layout((1, 2)))
    >>> make_tiled_copy_D(atom, copy).tiler_mn == copy.tiler_mn
    True
    """
    need("make_tiled_copy_D", atom, CopyAtom, "a copy atom")
    need("make_tiled_copy_D", tiled_copy, TiledCopy, "a tiled copy")
    return TiledCopy(atom, tiled_copy.layout_dst_tv_tiled, tiled_copy.tiler)


def make_tiled_copy_C_atom(atom: CopyAtom, mma: TiledMma, *, loc: Any = None, ip: Any = None) -> TiledCopy:
    """The smallest tiled copy that can retile the accumulators: for epilogues that store a part at a time.

    >>> from tilewright import Float16, Float32
    >>> mma = cute.make_tiled_mma(cute.nvgpu.warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16)), (2, 2, 1), (32, 32, 16))
    >>> atom = cute.make_copy_atom(cute.nvgpu.warp.StMatrix8x8x16bOp(num_matrices=2), Float16)
    >>> cute.make_tiled_copy_C_atom(atom, mma).size  # threads
    128
    """
    need("make_tiled_copy_C_atom", atom, CopyAtom, "a copy atom")
    need("make_tiled_copy_C_atom", mma, TiledMma, "a tiled MMA")
    layout_tv = mma.tv_layout_C_tiled
    values = atom.num_val_src
    if values > size(layout_tv[1]):
        raise ConstraintError(
            f"{atom.instruction} takes {values} values of a thread, but {mma.instruction} gives it {size(layout_tv[1])}"
        )
    active = composition(layout_tv, make_layout((size(layout_tv[0]), values)))
    return _restrided(atom, (mma.get_tile_size(0), mma.get_tile_size(1)), active)


def make_cotiled_copy(
    atom: CopyAtom, atom_layout_tv: Layout, data_layout: Layout, *, loc: Any = None, ip: Any = None
) -> TiledCopy:
    """A tiled copy from a layout (thread, value) -> *address* in ``data_layout``.

    For copies that care about vector widths and address distances, not about coordinates. Raises ConstraintError when
    an address does not occur in ``data_layout``.

    >>> from tilewright import Float32
    >>> atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32, num_bits_per_copy=128)
    >>> rows = cute.make_layout((8, 16), stride=(16, 1))
    >>> threads = cute.make_layout((32, 4), stride=(4, 1))  # thread t has the words at 4t to 4t + 3
    >>> tiled = cute.make_cotiled_copy(atom, threads, rows)
    >>> tiled.size, tiled.tiler_mn
    (32, (8:1, (4,4):(4,1)))
    """
    need("make_cotiled_copy", atom, CopyAtom, "a copy atom")
    need("make_cotiled_copy", data_layout, Layout, "a data layout")
    need_tv("make_cotiled_copy", atom_layout_tv)
    # Addresses off the end get the coordinate of a stride-0 mode.
    inverse = make_layout(left_inverse(data_layout), Layout(1, 0))
    to_coordinates = composition(inverse, atom_layout_tv)
    coordinates = offsets(to_coordinates)  # (threads * values)
    element_offsets = data_layout(abs(coordinates)) * (1 - 2 * (coordinates < 0))  # layouts are odd functions
    wrong = (element_offsets != offsets(atom_layout_tv)).nonzero()[0]
    if wrong.size:
        i = int(wrong[0])
        thread, value = i % size(atom_layout_tv[0]), i // size(atom_layout_tv[0])
        raise ConstraintError(
            f"make_cotiled_copy: address {atom_layout_tv(i)} of thread T{thread}, value V{value} in "
            f"{atom_layout_tv} does not occur in the data layout {data_layout}"
        )
    return _restrided(atom, product_each(data_layout.shape), to_coordinates)


def _restrided(atom: CopyAtom, extents: tuple[int, ...], active: Layout) -> TiledCopy:
    """The tiled copy of the coordinates that ``active`` (thread, value) -> 1-D coordinate in ``extents`` touches."""

    def touched(mode: int) -> Layout:
        only = make_layout(extents, stride=tuple(1 if i == mode else 0 for i in range(len(extents))))
        result: Layout = filter(composition(only, active))
        return result

    tiler = tuple(touched(mode) for mode in range(len(extents)))
    to_whole = composition(make_layout(extents), tiler)
    return TiledCopy(atom, composition(left_inverse(to_whole), active), tiler)


def _by_registers(atom: CopyAtom, layout_tv: Layout) -> Layout:
    """The thread-value layout of the registers. A warp's threads all have its part of tensor memory; a layout that says
    so (lanes of stride 0, each with the values of all) becomes that of what each of them loads or stores."""
    instruction = atom.instruction
    if not isinstance(instruction, TmemMove):
        return layout_tv
    each = 32 * instruction.layouts.register_count // atom.scalar.width
    threads, values = layout_tv[0], layout_tv[1]
    if not isinstance(threads.shape, tuple) or threads[0] != Layout(WARP, 0) or int(size(values)) != WARP * each:
        return layout_tv
    one_warp = composition(values, recast_layout(atom.scalar.width, 1, instruction.layouts.registers))
    others = [threads[mode] for mode in range(1, len(threads))]
    return make_layout(make_layout(one_warp[0], *others), one_warp[1])
