"""TiledMma: an MMA atom over many warps and a larger tile, and the partitioning of A, B and C that follows.

``thrfrg_X`` turns (M, K, ...) into ((ThrV, (ThrM, ThrK)), (FrgV, (RestM, RestK, ...))): permute the tile's modes,
divide by the atom's shape, put the atom's thread-value layout on it by composition, divide what rests among the atoms
side by side (CuTe: include/cute/atom/mma_atom.hpp).
"""

from __future__ import annotations

from typing import Any, overload

from tilewright.errors import ConstraintError, LayoutError
from tilewright.lang.numbers.numeric import Int32, class_of, unwrap
from tilewright.lang.tensors.algebra import make_rmem_tensor
from tilewright.lang.tensors.tensor import Tensor
from tilewright.lang.tensors.tensor_memory import TensorMemory
from tilewright.layout import (
    Layout,
    append,
    coalesce,
    composition,
    cosize,
    flatten_to_tuple,
    format_tree,
    is_static,
    logical_divide,
    make_fragment_like_layout,
    make_layout,
    product,
    rank,
    size,
    tiled_product,
)
from tilewright.location_keywords import takes_location
from tilewright.tiled.asynchronous_mma import make_descriptors
from tilewright.tiled.atom import MmaAtom, make_mma_atom
from tilewright.tiled.operands import check_mma_operands, need_thread
from tilewright.tiled.provenance import remember_fragment, remember_partition
from tilewright.tiled.thread_values import thrfrg
from tilewright.tiled.views import layout_of, need_whole_tiles, rearranged, sliced

_MODES = {"A": (0, 2), "B": (1, 2), "C": (0, 1), "SFA": (0, 2), "SFB": (1, 2)}
"""Rows and columns of the operands among M, N and K; SFA and SFB are scale factors, seen as one for each element."""


@takes_location
class TiledMma(MmaAtom):
    """``atom_layout_mnk`` is how many atoms are side by side along M, N, K and which warps they are;
    ``permutation_mnk`` the tile that they cover together (None: as large as the atoms), possibly permuted.

    >>> from tilewright.atoms.names import mma_by_name
    >>> mma = make_tiled_mma(mma_by_name("SM80_16x8x16_F32F16F16F32_TN"), make_layout((2, 2, 1)), (32, 32, 16))
    >>> mma.thr_layout_vmnk, mma.size, mma.tile_shape_mnk
    ((32,2,2,1):(1,32,64,0), 128, (32, 32, 16))
    >>> mma.tv_layout_A_tiled
    ((4,8,2,2),((2,2,2),(1,1))):((64,1,16,0),((32,8,256),(0,0)))
    """

    def __init__(self, op: Any, atom_layout_mnk: Layout, permutation_mnk: tuple[Any, Any, Any]) -> None:
        super().__init__(op)
        self.atom_layout_mnk = atom_layout_mnk
        self.permutation_mnk = permutation_mnk
        self.thr_layout_vmnk: Layout = tiled_product(self.thr_id, atom_layout_mnk)

    def _key(self) -> Any:
        return (self.instruction, self.atom_layout_mnk, self.permutation_mnk)

    def _lines(self) -> list[str]:
        shown = _shown(self.permutation_mnk)
        head = ["Tiled MMA", f"  Thr Layout VMNK: {self.thr_layout_vmnk}", f"  Permutation MNK: {shown}"]
        return head + super()._lines()

    # -- sizes ---------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The number of threads."""
        return int(size(self.thr_layout_vmnk))

    def permutation(self, mode: int) -> Any:
        """The tiler of mode 0 (M), 1 (N) or 2 (K)."""
        tiler = self.permutation_mnk[mode]
        return self.shape_mnk[mode] * size(self.thr_layout_vmnk[mode + 1]) if tiler is None else tiler

    def get_tile_size(self, mode_idx: int, *, loc: Any = None, ip: Any = None) -> int:
        """The extent of the tile along M (0), N (1) or K (2)."""
        return int(size(self.permutation(mode_idx)))

    def operand_tile(self, which: str) -> tuple[Any, Any]:
        """The tilers of the rows and columns of operand ``which``; of a sparse A those that are stored."""
        rows, columns = (self.permutation(mode) for mode in _MODES[which])
        stored = self.instruction.sparsity if which == "A" else 1
        return rows, columns if stored == 1 else columns // stored

    @property
    def tile_shape_mnk(self) -> tuple[int, int, int]:
        return (self.get_tile_size(0), self.get_tile_size(1), self.get_tile_size(2))

    # -- dividing ------------------------------------------------------------------------------------------------

    def thrfrg(self, which: str, x: Any) -> Any:
        """(M, K, ...) of operand ``which`` ("A", "B", "C") as ((ThrV, (ThrM, ThrK)), (FrgV, (RestM, RestK, ...)))."""
        return rearranged(x, lambda layout: self._thrfrg(which, layout))

    def _thrfrg(self, which: str, layout: Any) -> Any:
        rows, columns = _MODES[which]
        if rank(layout) < 2:
            raise ConstraintError(f"partition_{which} takes a tensor of at least two modes, not {layout}")
        shape, threads = self.shape_mnk, self.thr_layout_vmnk
        atom_columns = self.instruction.stored_k if which == "A" else shape[columns]
        atom_tv = self._table(which)
        try:
            permuted = logical_divide(layout, self.operand_tile(which))
            side_by_side = (size(threads[rows + 1]), size(threads[columns + 1]))
            return thrfrg(permuted, (shape[rows], atom_columns), atom_tv, side_by_side)
        except LayoutError as error:
            m, n, k = self.tile_shape_mnk
            raise ConstraintError(
                f"the tensor {layout} cannot be partitioned as {which} by a tiled MMA of {self.instruction} with "
                f"the tile ({m},{n},{k}): {error}"
            ) from error

    def _table(self, which: str) -> Layout:
        """The thread-value table of the instruction's operand."""
        if which in ("SFA", "SFB"):
            scales: Layout | None = self.instruction.layout_of_factors(which)
            if scales is None:
                raise ConstraintError(f"{self.instruction} reads no scale factors from registers")
            return scales
        layout: Layout = getattr(self, f"tv_layout_{which}")
        return layout

    @overload
    def thrfrg_A(self, x: Tensor) -> Tensor: ...
    @overload
    def thrfrg_A(self, x: Layout) -> Layout: ...
    @overload
    def thrfrg_A(self, x: Any) -> Any: ...
    def thrfrg_A(self, x: Any) -> Any:
        return self.thrfrg("A", x)

    @overload
    def thrfrg_B(self, x: Tensor) -> Tensor: ...
    @overload
    def thrfrg_B(self, x: Layout) -> Layout: ...
    @overload
    def thrfrg_B(self, x: Any) -> Any: ...
    def thrfrg_B(self, x: Any) -> Any:
        return self.thrfrg("B", x)

    @overload
    def thrfrg_C(self, x: Tensor) -> Tensor: ...
    @overload
    def thrfrg_C(self, x: Layout) -> Layout: ...
    @overload
    def thrfrg_C(self, x: Any) -> Any: ...
    def thrfrg_C(self, x: Any) -> Any:
        return self.thrfrg("C", x)

    # -- thread-value layouts ------------------------------------------------------------------------------------

    def tv_layout_tiled(self, which: str) -> Layout:
        """(thread, value) -> coordinate (row + rows * column) inside the tile of the operand."""
        rows, columns = _MODES[which]
        divided = self._thrfrg(which, make_layout(tuple(int(size(tiler)) for tiler in self.operand_tile(which))))
        threads = self.thr_layout_vmnk
        if which != "C":
            # The operand lacks a mode; threads along it hold the same elements: (ThrM, ThrN) with stride 0 in one.
            step = (1, 0) if rows == 0 else (0, 1)
            missing = make_layout((size(threads[1]), size(threads[2])), stride=step)
            divided = composition(divided, ((None, (missing, None)), None))
        result: Layout = composition(divided, (thread_inverse(threads), None))
        return result

    @property
    def tv_layout_A_tiled(self) -> Layout:
        return self.tv_layout_tiled("A")

    @property
    def tv_layout_B_tiled(self) -> Layout:
        return self.tv_layout_tiled("B")

    @property
    def tv_layout_C_tiled(self) -> Layout:
        return self.tv_layout_tiled("C")

    # -- slices --------------------------------------------------------------------------------------------------

    def get_slice(self, thr_idx: Any, *, loc: Any = None, ip: Any = None) -> ThrMma:
        """The view of one thread; ``thr_idx`` is an int or a run-time integer."""
        need_thread("a tiled MMA", thr_idx, int(cosize(self.thr_layout_vmnk)))
        return ThrMma(self, thr_idx)

    def partition_shape(self, which: str, shape: Any) -> Any:
        """The shape (V, RestM, RestK, ...) of one thread's part of a tile of ``shape``."""
        layout = make_layout(shape) if not isinstance(shape, Layout) else shape
        (whole, _) = sliced(self._thrfrg(which, layout), _first_thread(rank(layout)))
        return whole.shape

    def partition_shape_A(self, shape_mk: Any, *, loc: Any = None, ip: Any = None) -> Any:
        return self.partition_shape("A", shape_mk)

    def partition_shape_B(self, shape_nk: Any, *, loc: Any = None, ip: Any = None) -> Any:
        return self.partition_shape("B", shape_nk)

    def partition_shape_C(self, shape_mn: Any, *, loc: Any = None, ip: Any = None) -> Any:
        """(V, MMA_M, MMA_N). Where a permutation keeps apart what a thread has along a mode, the extents are joined:
        accumulators of this shape have no gaps, and published programs divide MMA_N by numbers."""
        value, *rest = self.partition_shape("C", shape_mn)
        return (value, *(product(mode) if is_static(mode) else mode for mode in rest))

    # -- fragments -----------------------------------------------------------------------------------------------

    def fragment_layout(self, which: str, partitioned: Any) -> Layout:
        """The register layout for a thread's part: C column-major, A and B in the order of the source's strides."""
        layout = layout_of(partitioned)
        tv = {"A": self.tv_layout_A, "B": self.tv_layout_B, "C": self.tv_layout_C}[which]
        if rank(layout) < 3 or size(layout[0]) != size(tv[1]):
            raise ConstraintError(
                f"make_fragment_{which} takes a partitioned tensor (V,Rest,Rest) with {size(tv[1])} values in V, not "
                f"{layout}: partition it first (partition_{which})"
            )
        if not is_static(layout.shape):
            raise ConstraintError(
                f"make_fragment_{which}: registers need a static shape, not {format_tree(layout.shape)}"
            )
        result: Layout = make_layout(layout.shape) if which == "C" else make_fragment_like_layout(layout)
        return result

    def make_fragment_A(self, x: Any, *, loc: Any = None, ip: Any = None) -> Tensor:
        """Registers for A: like a partitioned tensor (or of a partition shape)."""
        return self._fragment("A", x)

    def make_fragment_B(self, x: Any, *, loc: Any = None, ip: Any = None) -> Tensor:
        """Registers for B: like a partitioned tensor (or of a partition shape)."""
        return self._fragment("B", x)

    def make_fragment_C(self, x: Any, *, loc: Any = None, ip: Any = None) -> Tensor:
        """Accumulator registers with the shape of a partitioned tensor (or of a partition shape)."""
        return self._fragment("C", x)

    def _fragment(self, which: str, x: Any) -> Tensor:
        """A register tensor of the operand's type for the partitioned tensor (or partition shape) ``x``; of an operand
        that the instruction reads from shared memory, the tensor of its descriptors; of one in tensor memory, a tensor
        at its first lane and column, whose layout serves for a tensor at the place that was allocated. For accumulators
        in tensor memory the tile (M, N) of the product is taken too."""
        instruction = self.instruction
        if instruction.reads_shared(which):
            return make_descriptors(self, which, x)
        type_ = instruction.type_d if which == "C" else instruction.stored_type(which)
        if instruction.in_tensor_memory(which):
            if which == "C" and isinstance(x, tuple) and len(x) == 2 and all(isinstance(extent, int) for extent in x):
                x = self.partition_shape("C", x)
            layout = instruction.tensor_memory(which, x if isinstance(x, tuple) else x.shape)
            return Tensor(TensorMemory(Int32(0), class_of(type_)), layout)
        return remember_fragment(make_rmem_tensor(self.fragment_layout(which, x), class_of(type_)), self, which)


def thread_inverse(threads: Layout) -> Layout:
    """thread index -> 1-D coordinate of ``threads``; indices that no coordinate has (gaps) get coordinate 0's partner.

    >>> thread_inverse(Layout((32, 2, 2), (1, 64, 32))), thread_inverse(Layout((4, 2), (1, 16)))
    ((32,2,2):(1,64,32), (4,4,2):(1,0,4))
    """
    modes, position = [], 1
    for extent, step in zip(flatten_to_tuple(threads.shape), flatten_to_tuple(threads.stride), strict=True):
        if extent > 1 and step:
            modes.append((step, extent, position))
        position *= extent
    shape, stride, reached = [1], [0], 1
    for step, extent, position in sorted(modes):
        if step > reached:
            shape, stride = [*shape, step // reached], [*stride, 0]
        shape, stride = [*shape, extent], [*stride, position]
        reached = step * extent
    result: Layout = coalesce(Layout(tuple(shape), tuple(stride)))
    return result


def _first_thread(modes: int) -> Any:
    return (0, (0, 0)), (None, (None,) * modes)


def _rows_are_one(x: Any) -> bool:
    """Whether the first mode of a tensor repeats one element."""
    layout = layout_of(x)
    return isinstance(layout, Layout) and all(type(d) is int and d == 0 for d in flatten_to_tuple(layout[0].stride))


@takes_location
class ThrMma(TiledMma):
    """One thread's view of a TiledMma.

    >>> from tilewright import Float16, Float32
    >>> mma = cute.make_tiled_mma(cute.nvgpu.warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16)))
    >>> part = mma.get_slice(5).partition_C(cute.make_identity_tensor((32, 16)))  # (MMA, MMA_M, MMA_N)
    >>> part.shape
    ((2, 2), 2, 2)
    >>> [part[i] for i in range(4)]  # thread 5 of the warp: rows 1 and 9, columns 2 and 3
    [(1, 2), (1, 3), (9, 2), (9, 3)]
    """

    def __init__(self, tiled: TiledMma, thr_idx: Any) -> None:
        super().__init__(tiled.op, tiled.atom_layout_mnk, tiled.permutation_mnk)
        self._accumulates = tiled._accumulates
        self.thr_idx = thr_idx
        self.thr_vmnk = self.thr_layout_vmnk.get_flat_coord(thr_idx)

    def partition(self, which: str, x: Any) -> Any:
        """This thread's part (V, RestM, RestK, ...) of a tensor; for a layout the pair (layout, offset)."""
        rows, columns = _MODES[which]
        tile = tuple(int(size(tiler)) for tiler in self.operand_tile(which))
        thread = unwrap(self.thr_idx)
        # The first of a pair of blocks may have only its own rows, and either one where all rows are the same.
        if which == "C" and (type(thread) is int and thread == 0 or _rows_are_one(x)):
            tile = (tile[0] // self.instruction.ctas, *tile[1:])
        x = need_whole_tiles(x, tile, f"partition_{which} of a tiled MMA of {self.instruction}")
        v, *mnk = self.thr_vmnk
        coord = (v, (mnk[rows], mnk[columns])), (None, (None,) * rank(layout_of(x)))
        part = sliced(self.thrfrg(which, x), coord)
        return part if which.startswith("SF") else remember_partition(part, self, which, x)

    @overload
    def partition_A(self, x: Tensor, *, loc: Any = None, ip: Any = None) -> Tensor: ...
    @overload
    def partition_A(self, x: Layout, *, loc: Any = None, ip: Any = None) -> tuple[Layout, Any]: ...
    @overload
    def partition_A(self, x: Any, *, loc: Any = None, ip: Any = None) -> Any: ...
    def partition_A(self, x: Any, *, loc: Any = None, ip: Any = None) -> Any:
        return self.partition("A", x)

    @overload
    def partition_B(self, x: Tensor, *, loc: Any = None, ip: Any = None) -> Tensor: ...
    @overload
    def partition_B(self, x: Layout, *, loc: Any = None, ip: Any = None) -> tuple[Layout, Any]: ...
    @overload
    def partition_B(self, x: Any, *, loc: Any = None, ip: Any = None) -> Any: ...
    def partition_B(self, x: Any, *, loc: Any = None, ip: Any = None) -> Any:
        return self.partition("B", x)

    @overload
    def partition_C(self, x: Tensor, *, loc: Any = None, ip: Any = None) -> Tensor: ...
    @overload
    def partition_C(self, x: Layout, *, loc: Any = None, ip: Any = None) -> tuple[Layout, Any]: ...
    @overload
    def partition_C(self, x: Any, *, loc: Any = None, ip: Any = None) -> Any: ...
    def partition_C(self, x: Any, *, loc: Any = None, ip: Any = None) -> Any:
        return self.partition("C", x)

    def partition_fragment_A(self, x: Any) -> Tensor:
        """The fragment of this thread's part of ``x``, as CuTe C++ has it."""
        return self.make_fragment_A(self.partition_A(x))

    def partition_fragment_B(self, x: Any) -> Tensor:
        return self.make_fragment_B(self.partition_B(x))

    def partition_fragment_C(self, x: Any) -> Tensor:
        return self.make_fragment_C(self.partition_C(x))


def make_tiled_mma(
    op_or_atom: Any, atom_layout_mnk: Any = (1, 1, 1), permutation_mnk: Any = None, *, loc: Any = None, ip: Any = None
) -> TiledMma:
    """A TiledMma from an MMA operation (or atom), the layout of atoms, and the tile (ints, layouts, or None by mode).

    Raises ConstraintError when a permutation is not a multiple of what the atoms cover.

    >>> import tilewright as cutlass
    >>> op = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    >>> mma = make_tiled_mma(op, (2, 2, 1))
    >>> mma.size, mma.get_tile_size(0), mma.get_tile_size(1)
    (128, 32, 16)
    """
    atom = make_mma_atom(op_or_atom)
    layout = atom_layout_mnk if isinstance(atom_layout_mnk, Layout) else make_layout(atom_layout_mnk)
    if not isinstance(layout.shape, tuple):
        layout = make_layout(layout)
    tilers = permutation_mnk if isinstance(permutation_mnk, tuple) else (permutation_mnk,)
    check_mma_operands(layout, permutation_mnk, tilers)
    layout = append(layout, Layout(1, 0), 3)
    tilers = tilers + (None,) * (3 - len(tilers))
    made = TiledMma(atom.op, layout, tilers)
    for mode, name in enumerate("MNK"):
        covered = made.shape_mnk[mode] * size(layout[mode])
        if made.get_tile_size(mode) % covered:
            raise ConstraintError(
                f"permutation_mnk: {made.get_tile_size(mode)} along {name} is not a multiple of the {covered} that "
                f"{size(layout[mode])} atoms of {made.shape_mnk[mode]} cover: enlarge it or use fewer atoms along "
                f"{name} (atom layout {layout}, permutation {_shown(tilers)})"
            )
    if made.instruction.sparsity > 1 and not isinstance(made.permutation(2), int):
        raise ConstraintError(
            f"permutation_mnk: K of {made.instruction} is an extent or None, not {_shown(tilers)}: the stored elements "
            "of A and their metadata are in the order of K"
        )
    return made


def _shown(permutation: tuple[Any, ...]) -> str:
    return f"({','.join('_' if p is None else format_tree(p) for p in permutation)})"


def partition_shape_A(tiled_mma: TiledMma, shape_mk: Any, *, loc: Any = None, ip: Any = None) -> Any:
    return tiled_mma.partition_shape_A(shape_mk)


def partition_shape_B(tiled_mma: TiledMma, shape_nk: Any, *, loc: Any = None, ip: Any = None) -> Any:
    return tiled_mma.partition_shape_B(shape_nk)


def partition_shape_C(tiled_mma: TiledMma, shape_mn: Any, *, loc: Any = None, ip: Any = None) -> Any:
    return tiled_mma.partition_shape_C(shape_mn)
