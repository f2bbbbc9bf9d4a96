"""TiledCopy: a copy atom over many threads and a tile, the partitioning of source and destination, and retile.

A TiledCopy is an atom, a thread-value layout ``layout_tv_tiled`` (thread, value) -> coordinate in the tile, and the
tile ``tiler_mn`` (CuTe: include/cute/atom/copy_atom.hpp).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from tilewright.errors import ConstraintError, LayoutError
from tilewright.layout import (
    Layout,
    coalesce,
    composition,
    format_tree,
    logical_product,
    make_layout,
    product_each,
    rank,
    repeat,
    right_inverse,
    size,
    slice_,
    upcast,
    with_shape,
    zipped_divide,
)
from tilewright.location_keywords import takes_location
from tilewright.tiled.atom import CopyAtom
from tilewright.tiled.operands import need_thread
from tilewright.tiled.provenance import remember_partition
from tilewright.tiled.views import for_copies_with_predicates, layout_of, rearranged, sliced

if TYPE_CHECKING:
    from tilewright.lang.tensors.tensor import Tensor


def _shortest(mode: Any) -> Any:
    """An extent in place of a layout that counts from 0: one tile has one form."""
    whole = isinstance(mode, Layout) and isinstance(mode.shape, int) and mode.stride == 1
    return mode.shape if whole else mode


@takes_location
class TiledCopy(CopyAtom):
    """A copy atom laid over a tile. Made by the ``make_tiled_copy*`` functions.

    >>> from tilewright.atoms.names import copy_by_name
    >>> from tilewright.ir.types import F16
    >>> atom = CopyAtom(copy_by_name("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>"), F16)
    >>> tiled = TiledCopy(atom, Layout(((4, 32), 8), ((256, 1), 32)), (32, 32))
    >>> tiled.size, tiled.layout_src_tv_tiled
    (128, ((4,32),(8,1)):((256,1),(32,0)))
    """

    def __init__(
        self, atom: CopyAtom, layout_tv: Layout, tiler_mn: Any, operand_of: tuple[Any, str] | None = None
    ) -> None:
        """``operand_of`` is the tiled MMA, and "A", "B" or "C", whose registers the copy was made to fill or empty."""
        super().__init__(atom.instruction, atom.value_type)
        self.op = atom.op
        if atom.stage_copy is not None:  # cute.copy by the atom and by a tiled copy of it are staged alike
            self.stage_copy = atom.stage_copy
        self.layout_tv_tiled = layout_tv
        self.tiler = tiler_mn if isinstance(tiler_mn, tuple) else (tiler_mn,)
        self.operand_of = operand_of
        self._check()

    def _check(self) -> None:
        threads, values = size(self.layout_tv_tiled[0]), size(self.layout_tv_tiled[1])
        atom_threads, atom_values = size(self.layout_ref_tv[0]), size(self.layout_ref_tv[1])
        if threads % atom_threads:
            raise ConstraintError(
                f"a tiled copy of {self.instruction} needs a multiple of {atom_threads} threads, but its "
                "thread-value layout "
                f"{self.layout_tv_tiled} has {threads}"
            )
        if values % atom_values:
            raise ConstraintError(
                f"{self.instruction} moves {atom_values} x {self.scalar} for each thread, but the thread-value layout "
                f"{self.layout_tv_tiled} gives it {values}: enlarge the value layout or copy fewer bits "
                "(num_bits_per_copy)"
            )
        try:
            whole = size(zipped_divide(self.layout_tv_tiled, (atom_threads, atom_values))) == threads * values
        except LayoutError:
            whole = False
        if not whole:
            raise ConstraintError(
                f"{self.instruction} takes {atom_values} x {self.scalar} of {atom_threads} threads at a time, which do "
                f"not divide the modes of the thread-value layout {self.layout_tv_tiled}: begin the modes of the "
                "thread and of the value layout with multiples of them"
            )

    def _key(self) -> Any:
        return (self.instruction, self.scalar, self.layout_tv_tiled, tuple(map(_shortest, self.tiler)))

    def _lines(self) -> list[str]:
        head = [
            "Tiled Copy",
            f"  Tiler MN:        {format_tree(self.tiler)}",
            f"  TV Layout tiled: {self.layout_tv_tiled}",
        ]
        return head + super()._lines()

    @property
    def tiler_mn(self) -> tuple[Any, ...]:
        """The tile, a layout for each mode: those of the elements that it takes along the mode.

        >>> from tilewright import Float32
        >>> atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32)
        >>> copy = cute.make_tiled_copy_tv(atom, cute.make_layout((16, 8)), cute.make_layout((2, 1)))
        >>> copy.tiler_mn, copy.tiler_mn[0].shape
        ((32:1, 8:1), 32)
        """
        return tuple(t if isinstance(t, Layout) else make_layout(t) for t in self.tiler)

    @property
    def size(self) -> int:
        """The number of threads."""
        return int(size(self.layout_tv_tiled[0]))

    # -- dividing ------------------------------------------------------------------------------------------------

    @overload
    def tidfrg_S(self, x: Tensor) -> Tensor: ...
    @overload
    def tidfrg_S(self, x: Layout) -> Layout: ...
    @overload
    def tidfrg_S(self, x: Any) -> Any: ...
    def tidfrg_S(self, x: Any) -> Any:
        """(M, N, ...) of the source as (thread, (values of an atom, atoms), (RestM, RestN, ...))."""
        return rearranged(x, lambda layout: self._tidfrg("S", layout))

    @overload
    def tidfrg_D(self, x: Tensor) -> Tensor: ...
    @overload
    def tidfrg_D(self, x: Layout) -> Layout: ...
    @overload
    def tidfrg_D(self, x: Any) -> Any: ...
    def tidfrg_D(self, x: Any) -> Any:
        """(M, N, ...) of the destination as (thread, (values of an atom, atoms), (RestM, RestN, ...))."""
        return rearranged(x, lambda layout: self._tidfrg("D", layout))

    def _tidfrg(self, side: str, layout: Any) -> Any:
        if rank(layout) < len(self.tiler):
            raise ConstraintError(
                f"partition_{side}: the tensor {layout} has fewer modes than the tile {format_tree(self.tiler)}"
            )
        try:
            return self._tile_to_thrfrg(side, zipped_divide(layout, self.tiler))
        except LayoutError as error:
            raise ConstraintError(
                f"the tensor {layout} cannot be partitioned by a tiled copy of {self.instruction} with the tile "
                f"{format_tree(self.tiler)}: {error}"
            ) from None

    def _tile_to_thrfrg(self, side: str, tiled: Any) -> Any:
        """((TileM, TileN), (RestM, RestN)) as (thread, (values, atoms), (RestM, RestN))."""
        whole = composition(tiled, (self._tv_of(side), None))
        return slice_(whole, ((None, None), None))

    def _tv_of(self, side: str) -> Layout:
        """(thread, (values of an atom, atoms)) -> coordinate in the tile, as the source or the destination sees it."""
        atom = self.layout_src_tv if side == "S" else self.layout_dst_tv
        to_reference = composition(right_inverse(self.layout_ref_tv), atom)
        by_atom = zipped_divide(self.layout_tv_tiled, shape_of_atom(self.layout_ref_tv))
        seen = composition(by_atom, (to_reference, None))
        (threads, values), (rest_threads, rest_values) = seen[0], seen[1]
        zipped = make_layout(make_layout(threads, rest_threads), make_layout(values, rest_values))
        result: Layout = coalesce(zipped, target_profile=(1, (1, 1)))
        return result

    def tv_layout_tiled(self, side: str) -> Layout:
        reference = make_layout((shape_of_tiler(self.tiler), 1))
        result: Layout = slice_(self._tile_to_thrfrg(side, reference), (None, None, 0))
        return result

    @property
    def layout_src_tv_tiled(self) -> Layout:
        """(thread, value) -> coordinate in the tile, for the source."""
        return self.tv_layout_tiled("S")

    @property
    def layout_dst_tv_tiled(self) -> Layout:
        """(thread, value) -> coordinate in the tile, for the destination."""
        return self.tv_layout_tiled("D")

    # -- slices --------------------------------------------------------------------------------------------------

    def get_slice(self, thr_idx: Any, *, loc: Any = None, ip: Any = None) -> ThrCopy:
        """The view of one thread; ``thr_idx`` is an int or a run-time integer."""
        need_thread("a tiled copy", thr_idx, self.size)
        return ThrCopy(self, thr_idx)

    @overload
    def retile(self, x: Tensor, *, loc: Any = None, ip: Any = None) -> Tensor: ...
    @overload
    def retile(self, x: Layout, *, loc: Any = None, ip: Any = None) -> Layout: ...
    @overload
    def retile(self, x: Any, *, loc: Any = None, ip: Any = None) -> Any: ...
    def retile(self, x: Any, *, loc: Any = None, ip: Any = None) -> Any:
        """Registers of another partition (an MMA's fragment) seen as this copy's: ((values, atoms), RestM, RestN).

        The registers are the same; only the coordinates change. Written out, ``retile(rA)`` is the composition
        ``rA o (gA^-1 o gC)`` of the fragment's layout with the map from this copy's coordinates over the tile to the
        other partition's: see :func:`tilewright.tiled.retile.retile_through`.
        """
        return rearranged(x, self._retile)

    def _retile(self, layout: Layout) -> Layout:
        if not isinstance(layout, Layout) or rank(layout) <= len(self.tiler):
            raise ConstraintError(
                f"retile takes a whole fragment with a plain layout, (values, RestM, RestN, ...) for a tile of "
                f"{format_tree(self.tiler)}, not {layout}: retile first, then slice"
            )
        modes, values = rank(layout), size(layout[0])
        try:
            # (m, n) -> value index: the shape and order of the fragment's values inside the tile
            inverse = with_shape(right_inverse(self.layout_tv_tiled), shape_of_tiler(self.tiler))
            fragment_mn = upcast(inverse, self.size * values)
            # (values of an atom, atoms) -> (v, m, n)
            order = logical_product(make_layout(values), right_inverse(fragment_mn))
            by_atom = zipped_divide(order, make_layout(size(self.layout_ref_tv[1])))
            tiler = (values, *product_each(fragment_mn.shape))
            _need_whole_fragments(self, layout, tiler)
            tiled = zipped_divide(layout, tiler)
            seen = composition(tiled, (by_atom, None))
        except LayoutError as error:
            raise ConstraintError(
                f"the fragment {layout} cannot be retiled for {self.instruction} with the thread-value layout "
                f"{self.layout_tv_tiled}: {error}. Was it partitioned by the MMA that this copy was made for?"
            ) from error
        result: Layout = slice_(seen, (None, (0,) + (None,) * (modes - 1)))
        return result

    retile_S = retile_D = retile


def _need_whole_fragments(copy: TiledCopy, layout: Layout, tiler: tuple[int, ...]) -> None:
    for mode, step in enumerate(tiler):
        if size(layout[mode]) % step:
            raise ConstraintError(
                f"the fragment {layout} cannot be retiled for {copy.instruction}: its mode {mode} has "
                f"{size(layout[mode])} elements, and the copy's tile {format_tree(copy.tiler)} takes {step} at a "
                "time: was it partitioned by the MMA that this copy was made for?"
            )


def shape_of_tiler(tiler: Any) -> Any:
    """The extents of a tiler, whose modes are ints, shapes or layouts."""
    return tuple([m.shape if isinstance(m, Layout) else m for m in tiler])


def shape_of_atom(tv: Layout) -> Any:
    return (size(tv[0]), size(tv[1]))


@takes_location
class ThrCopy(TiledCopy):
    """One thread's view of a TiledCopy.

    >>> from tilewright import Float32
    >>> atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32, num_bits_per_copy=64)
    >>> tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((1, 2)))
    >>> coordinates = cute.make_identity_tensor((8, 32))  # two by two tiles of 4 x 16
    >>> part = tiled.get_slice(9).partition_S(coordinates)  # (CPY, CPY_M, CPY_N)
    >>> part.shape, part[0], part[1], part[0, 1, 1]
    (((2, 1), 2, 2), (1, 2), (1, 3), (5, 18))
    """

    def __init__(self, tiled: TiledCopy, thr_idx: Any) -> None:
        super().__init__(tiled, tiled.layout_tv_tiled, tiled.tiler, tiled.operand_of)
        self.thr_idx = thr_idx

    @overload
    def partition_S(self, x: Tensor, *, loc: Any = None, ip: Any = None) -> Tensor: ...
    @overload
    def partition_S(self, x: Layout, *, loc: Any = None, ip: Any = None) -> tuple[Layout, Any]: ...
    @overload
    def partition_S(self, x: Any, *, loc: Any = None, ip: Any = None) -> Any: ...
    def partition_S(self, x: Any, *, loc: Any = None, ip: Any = None) -> Any:
        """This thread's part ((values, atoms), RestM, RestN, ...) of a source; for a layout (layout, offset)."""
        x = self._whole(x, "S")
        part = sliced(self.tidfrg_S(x), (self.thr_idx, None, repeat(None, rank(layout_of(x)))))
        return remember_partition(part, self, "S", x)

    @overload
    def partition_D(self, x: Tensor, *, loc: Any = None, ip: Any = None) -> Tensor: ...
    @overload
    def partition_D(self, x: Layout, *, loc: Any = None, ip: Any = None) -> tuple[Layout, Any]: ...
    @overload
    def partition_D(self, x: Any, *, loc: Any = None, ip: Any = None) -> Any: ...
    def partition_D(self, x: Any, *, loc: Any = None, ip: Any = None) -> Any:
        """This thread's part ((values, atoms), RestM, RestN, ...) of a destination; for a layout (layout, offset)."""
        x = self._whole(x, "D")
        part = sliced(self.tidfrg_D(x), (self.thr_idx, None, repeat(None, rank(layout_of(x)))))
        return remember_partition(part, self, "D", x)

    def _whole(self, x: Any, side: str) -> Any:
        tile = tuple(size(t) for t in self.tiler)
        return for_copies_with_predicates(x, tile, f"partition_{side} of a tiled copy of {self.instruction}")
