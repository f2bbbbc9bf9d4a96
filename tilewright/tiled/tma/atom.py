"""TMA copy atoms: an instruction, and the tensor map that it copies by.

The tensor map is a run-time value: a host function makes it at each launch, and it passes into kernels as part of the
atom. The atom comes with the *TMA tensor*, whose elements are the coordinates that TMA wants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from tilewright.atoms.reductions import tensor_element
from tilewright.atoms.tma import TmaCopy, TmaStore
from tilewright.errors import ConstraintError, StagingError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.tensormap import TENSOR_MAP, expands
from tilewright.ir.types import B4X16, EXPANDED, I8, I32, SCALARS, U8, ScalarType, scalar_of
from tilewright.lang.numbers.numeric import wrap
from tilewright.lang.staging.location import here
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor import Tensor, unwrap_tree
from tilewright.layout import (
    Layout,
    composition,
    flatten_to_tuple,
    format_tree,
    make_identity_layout,
    rank,
    size,
    slice_,
)
from tilewright.tiled.atom import CopyAtom
from tilewright.tiled.tiled_mma import TiledMma
from tilewright.tiled.tma.plan import TmaPlan, TooWideError, plan_of
from tilewright.tiled.tma.stage import stage_copy, stage_prefetch


class TmaCopyAtom(CopyAtom):
    """A TMA copy of one tensor. Made by ``make_tiled_tma_atom`` of the operation ``op``; passed to kernels as it is."""

    def __init__(self, op: Any, instruction: TmaCopy, value_type: Any, plan: TmaPlan, tensor_map: Value) -> None:
        super().__init__(instruction, value_type)
        self.op, self.plan = op, plan
        self.tensor_map = tensor_map

    # Named options only.
    def stage_copy(self, src: Tensor, dst: Tensor, **options: Any) -> None:
        """``cute.copy`` with this atom."""
        stage_copy(self, src, dst, **options)

    def stage_prefetch(self, src: Tensor, **options: Any) -> None:
        """``cute.prefetch`` with this atom."""
        stage_prefetch(self, src, **options)

    def _key(self) -> Any:
        plan = self.plan
        what = (plan.box, plan.element, plan.swizzle, plan.num_multicast, plan.tiler, plan.basis, plan.values)
        return (self.op, self.instruction, self.scalar, *what)

    def __carry_key__(self) -> Any:
        return self._key()

    def __extract_mlir_values__(self) -> list[Any]:
        return [self.tensor_map]

    def __get_mlir_types__(self) -> list[Any]:
        return [TENSOR_MAP]

    def __new_from_mlir_values__(self, values: list[Any]) -> Any:
        (tensor_map,) = values
        instruction: Any = self.instruction  # a TmaCopy
        return TmaCopyAtom(self.op, instruction, self.value_type, self.plan, tensor_map)

    def _lines(self) -> list[str]:
        return [*super()._lines(), f"  Box:             {format_tree(self.plan.box)}"]


class TmaInfo:
    """What ``make_tiled_tma_atom`` gives: ``atom, tma_tensor = info``, and the ``smem_layout`` it was made with. It can
    be passed to kernels as one argument."""

    __slots__ = ("atom", "smem_layout", "tma_tensor")

    def __init__(self, atom: TmaCopyAtom, tma_tensor: Tensor, smem_layout: Any) -> None:
        self.atom, self.tma_tensor, self.smem_layout = atom, tma_tensor, smem_layout

    def __iter__(self) -> Iterator[Any]:
        return iter((self.atom, self.tma_tensor))

    def __getitem__(self, i: int) -> Any:
        return (self.atom, self.tma_tensor)[i]

    def __len__(self) -> int:
        return 2

    def __extract_mlir_values__(self) -> list[Any]:
        return [*self.atom.__extract_mlir_values__(), *self.tma_tensor.__extract_mlir_values__()]

    def __get_mlir_types__(self) -> list[Any]:
        return [*self.atom.__get_mlir_types__(), *self.tma_tensor.__get_mlir_types__()]

    def __new_from_mlir_values__(self, values: list[Any]) -> TmaInfo:
        atom, tensor = self.atom.__new_from_mlir_values__(values[:1]), self.tma_tensor
        return TmaInfo(atom, tensor.__new_from_mlir_values__(values[1:]), self.smem_layout)

    def __carry_key__(self) -> Any:
        return (self.atom.__carry_key__(), self.tma_tensor.__carry_key__(), self.smem_layout)


def make_tiled_tma_atom(
    op: Any,
    gmem_tensor: Tensor,
    smem_layout: Any,
    cta_tiler: Any,
    num_multicast: int = 1,
    *,
    internal_type: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> TmaInfo:
    """``(atom, TMA tensor)`` to copy tiles ``cta_tiler`` of ``gmem_tensor`` to or from shared memory.

    Called in a host function; both results are passed to the kernel. The TMA tensor has the shape of ``gmem_tensor``
    and gives coordinates: tile and partition it as one would the tensor itself.

    Args:
        op: one of the bulk tensor operations of ``cute.nvgpu.cpasync``.
        gmem_tensor: the tensor in global memory, of up to 5 modes, one of them contiguous.
        smem_layout: the layout of one tile in shared memory, swizzled or not; with one mode more than ``cta_tiler``
            and more elements than a tile, the last mode is that of the stages, which are all alike.
        cta_tiler: the tile: an extent, or a layout, for each mode of ``gmem_tensor``.
        num_multicast: how many blocks of the cluster share each tile.
        internal_type: the type that TMA copies, or a narrower one that a tile's row fills; by default the tensor's own.
            Of Float4E2M1FN two are copied as a byte unless it is given (sm_100); Int8 or Uint8: 16 numbers of 4 or 6
            bits fill 16 bytes of shared memory.

    Raises:
        ConstraintError: tiles that TMA cannot copy.
        ArgumentError: at the launch, an address or a stride that is not a multiple of 16 bytes.

    >>> import tilewright as cutlass
    >>> from tilewright import utils
    >>> from tilewright.cute.nvgpu import cpasync
    >>> from tilewright.cute.runtime import from_dlpack
    >>> @cute.kernel
    ... def tile_of(load: cute.CopyAtom, a: cute.Tensor, b: cute.Tensor):
    ...     thread, _, _ = cute.arch.thread_idx()
    ...     m, n, _ = cute.arch.block_idx()
    ...     smem = utils.SmemAllocator()
    ...     full = smem.allocate_array(cutlass.Int64, 1)
    ...     sA = smem.allocate_tensor(cutlass.Float32, cute.make_layout((8, 32), stride=(32, 1)), 128)
    ...     with cute.arch.elect_one():
    ...         cute.arch.mbarrier_init(full, 1)
    ...         cute.arch.mbarrier_init_fence()
    ...     cute.arch.sync_threads()
    ...     gA = cute.local_tile(a, (8, 32), (m, n))
    ...     tAsA, tAgA = cpasync.tma_partition(
    ...         load, 0, cute.make_layout(1), cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2)
    ...     )
    ...     with cute.arch.elect_one():
    ...         cute.arch.mbarrier_arrive_and_expect_tx(full, 8 * 32 * 4)
    ...     cute.copy(load, tAgA, tAsA, tma_bar_ptr=full)  # the whole warp: cute.copy elects the thread that issues
    ...     cute.arch.mbarrier_wait(full, 0)
    ...     cute.local_tile(b, (8, 32), (m, n))[None, thread].store(sA[None, thread].load())
    >>> @cute.jit
    ... def run(a: cute.Tensor, b: cute.Tensor):
    ...     tile = cute.make_layout((8, 32), stride=(32, 1))
    ...     load, tensor = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, tile, (8, 32))
    ...     print(tensor)  # its elements are coordinates, the contiguous mode first
    ...     tile_of(load, tensor, b).launch(grid=(2, 2, 1), block=(32, 1, 1))
    >>> a, b = np.arange(16 * 64, dtype=np.float32).reshape(16, 64), np.zeros((16, 64), np.float32)
    >>> run(from_dlpack(a, assumed_align=16), from_dlpack(b, assumed_align=16))
    tensor<(0,0) o (16,64):(1@1,1@0)>
    >>> bool((a == b).all())
    True
    """
    made = _make(
        "make_tiled_tma_atom",
        op,
        gmem_tensor,
        _of_one_stage(smem_layout, cta_tiler),
        lambda layout: None,
        cta_tiler,
        num_multicast,
        internal_type,
    )
    return TmaInfo(made.atom, made.tma_tensor, smem_layout)


def make_tiled_tma_atom_A(
    op: Any,
    gmem_tensor: Tensor,
    smem_layout: Any,
    mma_tiler_mnk: Any,
    tiled_mma: TiledMma,
    cluster_shape_vmnk: Any = None,
    *,
    internal_type: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> TmaInfo:
    """``make_tiled_tma_atom`` for operand A of a tiled MMA that reads it from shared memory.

    ``gmem_tensor`` is (M, K, ...), ``smem_layout`` the layout of a tile as the MMA partitions it, (MMA, MMA_M, MMA_K),
    with a mode of stages behind it or without; ``cluster_shape_vmnk`` the blocks of the cluster: those along N share
    A's tiles where ``op`` multicasts.

    >>> from tilewright import Float16, Float32, utils
    >>> from tilewright.cute.nvgpu import OperandMajorMode, cpasync
    >>> from tilewright.cute.runtime import from_dlpack
    >>> from tilewright.utils import hopper_helpers
    >>> @cute.jit
    ... def show(a: cute.Tensor):
    ...     mma = hopper_helpers.make_trivial_tiled_mma(
    ...         Float16, Float16, OperandMajorMode.K, OperandMajorMode.K, Float32, (1, 1, 1), tiler_mn=(64, 128)
    ...     )
    ...     tile = (64, 128, 64)
    ...     layout = hopper_helpers.make_smem_layout_a(utils.LayoutEnum.ROW_MAJOR, tile, Float16, 1)
    ...     _, tensor = make_tiled_tma_atom_A(
    ...         cpasync.CopyBulkTensorTileG2SOp(), a, cute.slice_(layout, (None, None, 0)), tile, mma
    ...     )
    ...     print(tensor)
    >>> show(from_dlpack(np.zeros((256, 512), np.float16), assumed_align=16))
    tensor<(0,0) o (256,512):(1@1,1@0)>
    """
    return _make_for_mma("A", op, gmem_tensor, smem_layout, mma_tiler_mnk, tiled_mma, cluster_shape_vmnk, internal_type)


def make_tiled_tma_atom_B(
    op: Any,
    gmem_tensor: Tensor,
    smem_layout: Any,
    mma_tiler_mnk: Any,
    tiled_mma: TiledMma,
    cluster_shape_vmnk: Any = None,
    *,
    internal_type: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> TmaInfo:
    """``make_tiled_tma_atom`` for operand B, (N, K, ...); the blocks along M share B's tiles where ``op``
    multicasts.

    >>> from tilewright import Float16, Float32, utils
    >>> from tilewright.cute.nvgpu import OperandMajorMode, cpasync
    >>> from tilewright.cute.runtime import from_dlpack
    >>> from tilewright.utils import hopper_helpers
    >>> @cute.jit
    ... def show(b: cute.Tensor):
    ...     mma = hopper_helpers.make_trivial_tiled_mma(
    ...         Float16, Float16, OperandMajorMode.K, OperandMajorMode.K, Float32, (1, 1, 1), tiler_mn=(64, 128)
    ...     )
    ...     tile = (64, 128, 64)
    ...     layout = hopper_helpers.make_smem_layout_b(utils.LayoutEnum.ROW_MAJOR, tile, Float16, 1)
    ...     _, tensor = make_tiled_tma_atom_B(
    ...         cpasync.CopyBulkTensorTileG2SOp(), b, cute.slice_(layout, (None, None, 0)), tile, mma
    ...     )
    ...     print(tensor)
    >>> show(from_dlpack(np.zeros((384, 512), np.float16), assumed_align=16))
    tensor<(0,0) o (384,512):(1@1,1@0)>
    """
    return _make_for_mma("B", op, gmem_tensor, smem_layout, mma_tiler_mnk, tiled_mma, cluster_shape_vmnk, internal_type)


def _make_for_mma(
    which: str,
    op: Any,
    gmem_tensor: Tensor,
    smem_layout: Any,
    mma_tiler_mnk: Any,
    tiled_mma: TiledMma,
    cluster: Any,
    internal_type: Any,
) -> TmaInfo:
    what = f"make_tiled_tma_atom_{which}"
    if not isinstance(tiled_mma, TiledMma):
        raise ConstraintError(f"{what} takes a tiled MMA after the tiler, not {tiled_mma!r}")
    mma_tiler = unwrap_tree(_tree(mma_tiler_mnk))
    if not isinstance(mma_tiler, tuple) or len(mma_tiler) < 3:
        raise ConstraintError(f"{what}: the tiler is (M, N, K), not {format_tree(mma_tiler)}")
    tiler = (mma_tiler[0] if which == "A" else mma_tiler[1], *mma_tiler[2:])
    shared = 1
    if cluster is not None and getattr(op, "multicast", False):
        shape = unwrap_tree(_tree(getattr(cluster, "shape", cluster)))
        shared = size(shape[2 if which == "A" else 1])

    def values(gmem: Layout) -> Layout:
        tile = composition(make_identity_layout(gmem.shape), tiler)
        _, fragment = tiled_mma.thrfrg(which, tile)
        # Of a pair of blocks each loads its own part of the tile, all parts being alike.
        if size(fragment) * tiled_mma.instruction.ctas != size(tile):
            raise ConstraintError(
                f"{what}: a thread of {tiled_mma.instruction} has {size(fragment)} of the {size(tile)} elements of "
                "the tile "
                f"{format_tree(tiler)}: TMA fills shared memory for all at once; use make_tiled_tma_atom with the tile"
            )
        return fragment

    atom = tiled_mma.instruction
    expand = atom.stored_type(which) != (atom.type_a if which == "A" else atom.type_b)
    one = _of_one_tile(smem_layout, math.prod(size(mode) for mode in tiler) // atom.ctas)
    made = _make(what, op, gmem_tensor, one, values, tiler, shared, internal_type, expand)
    return TmaInfo(made.atom, made.tma_tensor, smem_layout)


def _of_one_stage(smem_layout: Any, tiler: Any) -> Any:
    """A layout of shared memory without the mode of its stages: if it has one mode more than the tile, and all of it is
    not the tile."""
    modes = rank(tiler) if isinstance(tiler, tuple | Layout) else 1
    if rank(smem_layout) != modes + 1:
        return smem_layout
    one = slice_(smem_layout, (None,) * modes + (0,))
    tile = math.prod(size(mode) for mode in tiler) if isinstance(tiler, tuple) else size(tiler)
    return smem_layout if size(one) < size(smem_layout) == tile else one


def _of_one_tile(smem_layout: Any, elements: int) -> Any:
    """A layout of shared memory without its last mode, where that repeats a tile of so many elements."""
    modes = rank(smem_layout)
    one = slice_(smem_layout, (None,) * (modes - 1) + (0,)) if modes > 1 else smem_layout
    return one if size(one) == elements else smem_layout


def _make(
    what: str,
    op: Any,
    gmem_tensor: Tensor,
    smem_layout: Any,
    values: Callable[[Layout], Layout | None],
    tiler: Any,
    num_multicast: int,
    internal_type: Any,
    expand: bool = False,
) -> TmaInfo:
    make = getattr(op, "tma_instruction", None)
    if make is None:
        raise ConstraintError(f"{what} takes a bulk tensor operation of cute.nvgpu.cpasync, not {op!r}")
    builder = Builder.current()
    if not hasattr(builder, "kernels"):
        raise StagingError(
            f"{what} makes the tensor map on the host: call it in the @cute.jit function that launches the kernel, and "
            "pass the atom and the TMA tensor to the kernel"
        )
    _check_tensor(what, gmem_tensor)
    if not isinstance(num_multicast, int) or not 1 <= num_multicast <= 16:
        raise ConstraintError(f"{what}: num_multicast={num_multicast!r} is not a number of blocks of a cluster")
    if num_multicast > 1 and not getattr(op, "multicast", False):
        raise ConstraintError(
            f"{what}: {type(op).__name__} copies for one block; for num_multicast={num_multicast} use "
            "CopyBulkTensorTileG2SMulticastOp"
        )
    value_type = gmem_tensor.element_type
    source = scalar_of(value_type)
    element = tensor_element(getattr(make(8, 1), "reduction", ""), _moved_type(source, internal_type, expand))
    for kind in (element,) if source.packed else (source, element):
        if not kind.tensor_map:
            raise ConstraintError(f"{what}: TMA copies numbers of 1, 2, 4 or 8 bytes, not {kind}: recast the tensor")
    gmem = static_leaves(gmem_tensor.layout)
    plan = _plan_of_filled_type(
        lambda kind: plan_of(gmem, smem_layout, unwrap_tree(_tree(tiler)), source, kind, num_multicast, values(gmem)),
        element,
        source,
    )
    element = plan.element
    problems = plan.problems(separate_rows=getattr(make(8, 1), "rows", False))
    if problems:
        raise ConstraintError(f"{what}: {problems[0]}")
    leaves = [x for x in (*flatten_to_tuple(gmem.shape), *flatten_to_tuple(gmem.stride)) if not isinstance(x, int)]
    where = here(3)
    template = plan.template(f"{what}{f' at {where}' if where else ''}", lambda x: [x is y for y in leaves].index(True))
    operands = [gmem_tensor.engine.value(), *(x.ir_value() for x in leaves)]
    types = (TENSOR_MAP, *[I32] * len(template.scales))
    tensor_map, *scales = builder.emit("tensormap", operands, types, {"template": template}).results
    coordinates = plan.coordinates(tuple(map(wrap, scales)))
    instruction = make(plan.elements_per_instruction * source.width, len(plan.basis))
    if expands(element) and isinstance(instruction, TmaStore):
        raise ConstraintError(
            f"{what}: 16 numbers of {value_type} take 16 bytes of shared memory, and TMA only loads them so; store "
            "them from registers"
        )
    atom = TmaCopyAtom(op, instruction, value_type, plan, tensor_map)
    return TmaInfo(atom, Tensor((0,) * len(plan.basis), coordinates), smem_layout)


def _moved_type(source: ScalarType, internal_type: Any, expand: bool) -> ScalarType:
    """The type that TMA moves elements of type ``source`` as; ``expand``: numbers of 4 and 6 bits take a byte each."""
    if source.packed and internal_type is None:
        # Two of 4 bits are a byte, unless an MMA reads 16 numbers from 16 bytes; 6 bits have no other form.
        return EXPANDED[source.width] if expand or source.width == 6 else U8
    element = source if internal_type is None else scalar_of(internal_type)
    if source.width == element.width == 4:
        return B4X16
    return EXPANDED[source.width] if source.packed and element in (I8, U8) else element


def _plan_of_filled_type(make: Callable[[Any], TmaPlan], element: Any, source: Any) -> TmaPlan:
    """The plan for ``element``, or where the tile's contiguous elements do not fill it for the widest type below it
    that they fill twice, which moves the same bytes: programs copy factors, of which a row has four bytes, as
    Uint64."""
    given = element
    while True:
        try:
            plan = make(element)
            _ = plan.basis
            if element is given or element is source or not plan.problems():
                return plan
        except TooWideError:
            if source.packed:
                raise
        element = SCALARS[f"u{element.width // 2}"] if element.width > 2 * source.width else source


def _check_tensor(what: str, tensor: Any) -> None:
    if not isinstance(tensor, Tensor) or not isinstance(tensor.engine, Pointer):
        raise ConstraintError(f"{what} takes a tensor in global memory, not {tensor}")
    if tensor.memspace not in (AddressSpace.gmem, AddressSpace.generic):
        raise ConstraintError(f"{what} takes a tensor in global memory, not in {tensor.memspace}")


def static_leaves(layout: Any) -> Any:
    """Integers that are known while staging as ints, so that they count as compile-time ones."""
    return Layout(unwrap_tree(layout.shape), unwrap_tree(layout.stride)) if isinstance(layout, Layout) else layout


def _tree(x: Any) -> Any:
    return tuple(map(_tree, x)) if isinstance(x, (tuple, list)) else x
