"""``cutlass.utils.mixed_input_helpers``: a GEMM of a narrow operand A and a wide operand B on sm_100.

TMA brings both to shared memory. 128 threads convert A, times the scale of its group where there are scales, and store
it where the MMA reads it: in tensor memory, or in shared memory if A is MN-major, for which tensor memory has no
layout. (CUTLASS: include/cutlass/gemm/collective/
sm100_mma_warpspecialized_mixed_input_transform.hpp has the same parts.)

Modes: ``sA_input`` and ``A_transform`` (MMA, MMA_M, MMA_K, STAGE), their partitions (CPY, CPY_MMA, MMA_M, MMA_K,
STAGE). Scales are a tensor of A's shape whose strides along a group are 0.
"""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace
from typing import Any

from tilewright._names import attach
from tilewright.cute.nvgpu import cpasync, tcgen05
from tilewright.cute.nvgpu.common import CopyUniversalOp, OperandMajorMode
from tilewright.cute.nvgpu.tcgen05 import CtaGroup, OperandSource, Repetition
from tilewright.errors import ConstraintError
from tilewright.lang.tensors.algebra import make_rmem_tensor
from tilewright.lang.tensors.layout_functions import filter_zeros, flat_divide, group_modes
from tilewright.lang.tensors.tensor import Tensor, make_tensor
from tilewright.layout import Layout, ceil_div, make_layout, size
from tilewright.tiled.atom import make_copy_atom
from tilewright.tiled.make_copy import make_tiled_copy_S
from tilewright.tiled.staged_copy import copy
from tilewright.tiled.tiled_copy import TiledCopy
from tilewright.tiled.vectors import autovec_copy
from tilewright.utils.blackwell_helpers import make_smem_layout_a, make_smem_layout_b
from tilewright.utils.gemm import sm100

__all__ = [
    "TransformMode",
    "compute_smem_layout",
    "cvt_tensor_a",
    "epilog_gmem_copy_and_partition",
    "epilog_smem_copy_and_partition",
    "epilog_tmem_copy_and_partition",
    "get_copy_atom_a_transform",
    "get_divisibility",
    "get_gmem_layout_scale",
    "get_smem_layout_scale",
    "get_tma_atom_kind",
    "get_transform_a_source",
    "is_valid_scale_granularity",
    "scale_partition",
    "scale_tma_partition",
    "store_transformed_a",
    "transform_partition",
]

THREADS = 128
"""The threads that convert A."""


class TransformMode(Enum):
    """What becomes of the narrow operand before the MMA: ``ConvertOnly``, its numbers in the wide type;
    ``ConvertScale``, these times the scale of their group.

    >>> TransformMode.ConvertOnly is TransformMode.ConvertScale
    False
    """

    ConvertOnly = 1
    ConvertScale = 2


# -- layouts and operations ------------------------------------------------------------------------------------------


def get_transform_a_source(a_major_mode: OperandMajorMode, *, loc: Any = None, ip: Any = None) -> OperandSource:
    """Where the converted A is: in tensor memory if it is K-major, in shared memory else.

    >>> get_transform_a_source(OperandMajorMode.K)
    <OperandSource.TMEM: 'tmem'>
    """
    return OperandSource.TMEM if a_major_mode is OperandMajorMode.K else OperandSource.SMEM


def get_tma_atom_kind(mcast: Any, use_2cta_instrs: bool, is_b: bool, *, loc: Any = None, ip: Any = None) -> Any:
    """The operation of TMA that loads A, its scales, or B: multicast or not. B is loaded for the MMA, of pairs for both
    blocks; A and its scales for the threads of their own block, which convert them.

    >>> get_tma_atom_kind(False, True, is_b=False).cta_group, get_tma_atom_kind(False, True, is_b=True).cta_group
    (<CtaGroup.ONE: 1>, <CtaGroup.TWO: 2>)
    """
    group = CtaGroup.TWO if use_2cta_instrs and is_b else CtaGroup.ONE
    return (cpasync.CopyBulkTensorTileG2SMulticastOp if mcast else cpasync.CopyBulkTensorTileG2SOp)(group)


def compute_smem_layout(
    tiled_mma: Any,
    mma_tiler_mnk: tuple[int, int, int],
    a_dtype: Any,
    b_dtype: Any,
    load2trans_stage_count: int,
    trans2mma_stage_count: int,
    *,
    loc: Any = None,
    ip: Any = None,
) -> tuple[Any, Any, Any]:
    """The shared memory of A as it is loaded, of A as it is converted (in B's type), and of B, in the form of
    ``make_smem_layout_a`` and ``_b``. What is loaded has ``load2trans_stage_count`` stages, converted A
    ``trans2mma_stage_count``.

    >>> from tilewright.cute import Float16, Float32, Int8
    >>> from tilewright.utils.blackwell_helpers import make_trivial_tiled_mma
    >>> K = OperandMajorMode.K
    >>> mma = make_trivial_tiled_mma(Float16, Float16, K, K, Float32, CtaGroup.ONE, (128, 64), OperandSource.TMEM)
    >>> for layout in compute_smem_layout(mma, (128, 64, 64), Int8, Float16, 3, 2):
    ...     print(layout)
    Sw<2,4,3> o 0 o ((128,16),1,4,3):((64,1),0,16,8192)
    Sw<3,4,3> o 0 o ((128,16),1,4,2):((64,1),0,16,8192)
    Sw<3,4,3> o 0 o ((64,16),1,4,3):((64,1),0,16,4096)
    """
    return (
        make_smem_layout_a(tiled_mma, mma_tiler_mnk, a_dtype, load2trans_stage_count),
        make_smem_layout_a(tiled_mma, mma_tiler_mnk, b_dtype, trans2mma_stage_count),
        make_smem_layout_b(tiled_mma, mma_tiler_mnk, b_dtype, load2trans_stage_count),
    )


def get_gmem_layout_scale(
    scale_shape_mkl: Any,
    scale_granularity_m: int,
    scale_granularity_k: int,
    scale_major_mode: OperandMajorMode,
    *,
    loc: Any = None,
    ip: Any = None,
) -> Layout:
    """The scales in global memory as a tensor of A's shape (M, K, L): ((granularity, groups), (granularity, groups), L)
    with strides 0 along a group. ``scale_major_mode``: along which mode neighbouring groups are neighbours in memory.

    >>> print(get_gmem_layout_scale((256, 128, 2), 1, 32, OperandMajorMode.MN))
    ((1,256),(32,4),2):((0,1),(0,256),1024)
    """
    m, k, batch = scale_shape_mkl
    return _scales((m, k), (scale_granularity_m, scale_granularity_k), scale_major_mode, batch)


def get_smem_layout_scale(
    mma_tiler: tuple[int, int, int],
    use_2cta_instrs: bool,
    scale_granularity_m: int,
    scale_granularity_k: int,
    scale_major_mode: OperandMajorMode,
    a_scale_dtype: Any,
    num_scale_load2trans_stage: int,
    *,
    loc: Any = None,
    ip: Any = None,
) -> tuple[tuple[int, int], Layout, Layout]:
    """The tile (M, K) of A whose scales are loaded at a time; the layout of its scales in shared memory, ((granularity,
    groups), (granularity, groups)) with strides 0 along a group; and that of all stages, with one more mode.

    ConstraintError for pairs of blocks, whose halves of the tile are not documented.

    >>> from tilewright.cute import Float16
    >>> tile, one, staged = get_smem_layout_scale((128, 64, 64), False, 1, 128, OperandMajorMode.MN, Float16, 3)
    >>> print(tile, one, staged)
    (128, 64) ((1,128),(64,1)):((0,1),(0,128)) ((1,128),(64,1),3):((0,1),(0,128),128)
    """
    if use_2cta_instrs:
        raise ConstraintError(
            "get_smem_layout_scale: scales for MMAs of pairs of blocks are not here: give each block an MMA of its own "
            "(CtaGroup.ONE), or load the scales of a block's half of the tile by cpasync.make_tiled_tma_atom"
        )
    tile = (int(mma_tiler[0]), int(mma_tiler[2]))
    groups = tuple(min(g, extent) for g, extent in zip((scale_granularity_m, scale_granularity_k), tile, strict=True))
    staged = _scales(tile, groups, scale_major_mode, num_scale_load2trans_stage)
    return tile, make_layout(staged[0], staged[1]), staged


def _scales(shape: Any, granularity: Any, major: OperandMajorMode, batch: Any) -> Layout:
    (m, k), (group_m, group_k) = shape, granularity
    groups_m, groups_k = ceil_div(m, group_m), ceil_div(k, group_k)
    step_m, step_k = (1, groups_m) if major is OperandMajorMode.MN else (groups_k, 1)
    return make_layout(
        ((group_m, groups_m), (group_k, groups_k), batch),
        stride=((0, step_m), (0, step_k), groups_m * groups_k),
    )


def is_valid_scale_granularity(
    scale_granularity_m: int,
    scale_granularity_k: int,
    a_dtype: Any,
    k: int,
    mma_tiler_k: int,
    *,
    loc: Any = None,
    ip: Any = None,
) -> bool:
    """Whether the layouts here have such groups of scales: a tile's K is a whole number of groups, or a group's of
    tiles, K is a whole number of groups, and the numbers of A are of 8 bits or fewer.

    >>> from tilewright import Int4
    >>> [is_valid_scale_granularity(1, group, Int4, 256, 64) for group in (32, 128, 48, 512)]
    [True, True, False, False]
    """
    m, group = scale_granularity_m, scale_granularity_k
    if m < 1 or group < 1 or a_dtype.width > 8:
        return False
    return k % group == 0 and (mma_tiler_k % group == 0 or group % mma_tiler_k == 0)


def get_divisibility(contiguous_dim_size: int, upper_bound: int = 128, *, loc: Any = None, ip: Any = None) -> int:
    """The greatest power of two, up to ``upper_bound``, that divides an extent.

    >>> get_divisibility(96), get_divisibility(1024), get_divisibility(1024, 16)
    (32, 128, 16)
    """
    found = 1
    while 2 * found <= upper_bound and contiguous_dim_size % (2 * found) == 0:
        found *= 2
    return found


def get_copy_atom_a_transform(
    mma_dtype: Any,
    use_2cta_instrs: bool,
    transform_a_source: OperandSource,
    a_smem_shape: Any,
    a_dtype: Any,
    *,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """The copy atom that stores the converted A. ``a_smem_shape``: ``partition_shape_A`` of the tile,
    ((M, K), MMA_M, MMA_K). In tensor memory one instruction stores the eight columns of an MMA: of 32 lanes a warp, or,
    of 64 rows in one block, of 16. In shared memory it stores 16 bytes.

    >>> from tilewright.cute import Float16, Int8
    >>> get_copy_atom_a_transform(Float16, False, OperandSource.TMEM, ((128, 16), 1, 4), Int8).instruction
    SM100_TMEM_STORE_32x32b8x
    """
    if transform_a_source is OperandSource.SMEM:
        return make_copy_atom(CopyUniversalOp(), mma_dtype, num_bits_per_copy=128)
    op: Any = tcgen05.St32x32bOp(Repetition.x8)
    if size(a_smem_shape[0][0]) == 64 and not use_2cta_instrs:
        op = tcgen05.St16x256bOp(Repetition.x1)
    return make_copy_atom(op, mma_dtype)


# -- what the threads do ---------------------------------------------------------------------------------------------


def transform_partition(
    transform_a_source: OperandSource,
    scale_mode: TransformMode,
    copy_atom_a_input: Any,
    copy_atom_a_transform: Any,
    sA_input: Tensor,
    A_transform: Tensor,
    transform_local_tidx: Any,
    *,
    loc: Any = None,
    ip: Any = None,
) -> tuple[TiledCopy | None, TiledCopy | None, Tensor, Tensor]:
    """The copies of one thread, and its parts: ``(src_copy_a, dst_copy_a, tAsA_input, tA_transform)``. The parts have
    the same elements of A in the same order, (CPY, CPY_MMA, MMA_M, MMA_K, STAGE).

    Args:
        transform_a_source: where ``A_transform`` is, see :func:`get_transform_a_source`.
        scale_mode: with ``ConvertOnly``, ``src_copy_a`` is None: copy the part by ``cute.autovec_copy``.
        copy_atom_a_input: loads A from shared memory; only for ``ConvertScale``, whose scales it partitions, too.
        copy_atom_a_transform: of :func:`get_copy_atom_a_transform`.
        sA_input: A in shared memory.
        A_transform: the converted A: a tensor of tensor memory with the layout of ``make_fragment_A``, or shared
            memory.
        transform_local_tidx: the thread's number among the 128 that convert.

    >>> import tilewright as cutlass
    >>> from tilewright import Float16, Int8, Int32, utils
    >>> SMEM = OperandSource.SMEM
    >>> @cute.jit
    ... def owner(t):  # of an element of a stage, 64 x 64 and contiguous along M, of Int8 and then of Float16
    ...     smem, layout = utils.SmemAllocator(), cute.make_layout(((64, 16), 1, 4, 1))
    ...     narrow, wide = smem.allocate_tensor(Int8, layout), smem.allocate_tensor(Float16, layout)
    ...     load = make_copy_atom(CopyUniversalOp(), Int8)
    ...     store = get_copy_atom_a_transform(Float16, False, SMEM, ((64, 16), 1, 4), Int8)
    ...     _, _, of_a, to = transform_partition(SMEM, TransformMode.ConvertOnly, load, store, narrow, wide, t)
    ...     print(cute.size(of_a), cute.size(to))
    ...     for i in cutlass.range_constexpr(cute.size(to)):
    ...         to[i] = Float16(t)
    ...     cute.arch.sync_threads()
    ...     return Int32(wide[t])  # t: 64 numbers along M, then the next along K
    >>> found = per_thread(owner, 128)  # a thread has 8 numbers along M, and the same of each 16th number along K
    32 32
    >>> found[0:64:8], found[64:128:8]
    ([0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15])
    """
    mma = make_layout(A_transform.linear[0])
    if transform_a_source is OperandSource.TMEM:
        dst_copy = tcgen05.make_tmem_copy(copy_atom_a_transform, A_transform.with_layout(mma))
    else:
        dst_copy = _along_m(copy_atom_a_transform, mma)
    thread = dst_copy.get_slice(transform_local_tidx)
    if scale_mode is TransformMode.ConvertOnly:
        return None, dst_copy, thread.partition_S(sA_input), thread.partition_D(A_transform)
    src_copy = make_tiled_copy_S(copy_atom_a_input, dst_copy)
    tAsA_input = src_copy.get_slice(transform_local_tidx).partition_S(sA_input)
    return src_copy, dst_copy, tAsA_input, thread.partition_D(A_transform)


def _along_m(atom: Any, mma: Layout) -> TiledCopy:
    """The copy of 128 threads that have 16 bytes along M of a tile (M, K) each, and further ones along K."""
    rows, columns = size(mma.shape[0][0]), size(mma.shape[0][1])
    each = 128 // atom.scalar.width
    along_m = rows // each
    along_k = THREADS // along_m
    if along_m * along_k != THREADS or columns % along_k:
        raise ConstraintError(
            f"transform_partition: {THREADS} threads do not divide a tile of {rows}x{columns} elements of "
            f"{atom.scalar} in pieces of 16 bytes along M"
        )
    threads = Layout((along_m, along_k), (each, rows))
    values = Layout((each, columns // along_k), (1, rows * along_k))
    return TiledCopy(atom, make_layout(threads, values), (rows * columns,))


def scale_tma_partition(
    tCsS: Tensor,
    tCgS: Tensor,
    tma_atom_s: Any,
    block_in_cluster_coord_vmnk: Any,
    scale_cta_layout: Any,
    *,
    loc: Any = None,
    ip: Any = None,
) -> tuple[Tensor, Tensor]:
    """What TMA copies of the scales: ``((atom, rest), STAGE)`` in shared memory and ``((atom, rest), ...)`` of global
    memory, the modes of tiles. ``tCsS`` and ``tCgS`` are partitions of A's MMA (MMA, MMA_M, MMA_K, ...), the
    blocks of ``scale_cta_layout`` share them.

    >>> from tilewright import Float16, utils
    >>> from tilewright.cute.nvgpu import cpasync
    >>> from tilewright.cute.runtime import from_dlpack
    >>> @cute.kernel
    ... def show(load: cute.CopyAtom, scales: cute.Tensor, layout: cute.Layout):
    ...     smem = utils.SmemAllocator().allocate_tensor(Float16, layout, 128)  # three stages
    ...     parts = cute.local_tile(scales, (128, 64), (0, None, 0))  # the tiles along K
    ...     as_mma = [cute.make_tensor(x.iterator, cute.prepend_ones(x.layout)) for x in (smem, parts)]
    ...     to, source = scale_tma_partition(*as_mma, load, (0, 0, 0, 0), cute.make_layout(1))
    ...     print(to.shape, source.shape)  # what one copy brings, and the stages; the same, and the tiles
    >>> @cute.jit
    ... def run(scales: cute.Tensor):  # of A (128, 256), a scale for each 32 columns
    ...     spread = get_gmem_layout_scale((128, 256, 1), 1, 32, OperandMajorMode.MN)
    ...     tile, one, staged = get_smem_layout_scale((128, 64, 64), False, 1, 32, OperandMajorMode.MN, Float16, 3)
    ...     scales = cute.make_tensor(scales.iterator, spread)
    ...     load, tensor = cpasync.make_tiled_tma_atom(get_tma_atom_kind(False, False, is_b=False), scales, one, tile)
    ...     show(load, tensor, staged).launch(grid=(1, 1, 1), block=(32, 1, 1))
    >>> run(from_dlpack(np.zeros(8 * 128, np.float16), assumed_align=16))
    ((256, 1), 3) ((256, 1), 4)
    """
    to, source = cpasync.tma_partition(
        tma_atom_s,
        block_in_cluster_coord_vmnk[2],
        scale_cta_layout,
        group_modes(tCsS, 0, 3),
        group_modes(tCgS, 0, 3),
    )
    return filter_zeros(to), filter_zeros(source)


def scale_partition(
    src_copy_a: TiledCopy, tCsS: Tensor, transform_local_tidx: Any, mma_dtype: Any, *, loc: Any = None, ip: Any = None
) -> tuple[TiledCopy, Tensor, Tensor, Tensor]:
    """The scales of a thread's part of A: ``(smem_thr_copy_S, tSsS_trans, tSrS_copy, tSrS)``. ``tCsS`` is the partition
    of their shared memory, (MMA, MMA_M, MMA_K, STAGE). Of a stage, copy ``filter_zeros(tSsS_trans[..., stage])`` to
    ``tSrS_copy`` by ``smem_thr_copy_S``; ``tSrS`` shows the same registers with a scale for each element of
    A, (CPY, CPY_MMA, MMA_M, MMA_K). ``mma_dtype`` is the type of the registers, that of the scales.

    >>> from tilewright import Float16, utils
    >>> @cute.jit
    ... def scales(t):  # each thread has a row of a tile of 128 x 64, a scale for each 32 columns
    ...     _, _, staged = get_smem_layout_scale((128, 64, 64), False, 1, 32, OperandMajorMode.MN, Float16, 1)
    ...     (m, k), (dm, dk) = staged.shape[:2], staged.stride[:2]
    ...     as_mma = cute.make_layout(((m, (32, 1)), 1, (1, 2), 1), stride=((dm, (0, 0)), 0, (0, dk[1]), 0))
    ...     s = cute.make_tensor(utils.SmemAllocator().allocate_array(Float16, 256), as_mma)
    ...     load = make_copy_atom(CopyUniversalOp(), Float16)
    ...     rows = cute.make_tiled_copy(load, cute.make_layout((128, 32)), (128 * 32,))
    ...     _, _, groups, each = scale_partition(rows, s, t, Float16)
    ...     print(cute.size(groups), cute.size(each))
    ...     return t
    >>> _ = per_thread(scales, 128)  # the thread's scales, and the numbers of A that have them
    2 64
    """
    atom = make_copy_atom(CopyUniversalOp(), tCsS.element_type)
    thread = make_tiled_copy_S(atom, src_copy_a).get_slice(transform_local_tidx)
    # The elements are those of A, in A's modes: an instruction for A may have several.
    tSsS_trans: Any = src_copy_a.get_slice(transform_local_tidx).partition_S(tCsS)
    one_stage = tSsS_trans[None, None, None, None, 0].linear
    registers = make_rmem_tensor(size(filter_zeros(one_stage)), mma_dtype)
    of_elements = Layout(one_stage.shape, _compact(one_stage.shape, one_stage.stride, 1)[0])
    tSrS = make_tensor(registers.iterator, of_elements)
    return thread, tSsS_trans, filter_zeros(tSrS), tSrS


def _compact(shape: Any, stride: Any, step: int) -> tuple[Any, int]:
    """The strides of registers without gaps, 0 where ``stride`` is, and the step behind them."""
    if not isinstance(shape, tuple):
        return (0, step) if stride == 0 else (step, step * shape)
    found = []
    for one, its_stride in zip(shape, stride, strict=True):
        made, step = _compact(one, its_stride, step)
        found.append(made)
    return tuple(found), step


def cvt_tensor_a(tensor: Tensor, mma_dtype: Any, shuffle_a: bool = False) -> Any:
    """The numbers of registers in the MMA's type, a vector. ConstraintError for ``shuffle_a``: which order
    of A that names is not documented."""
    if shuffle_a:
        raise ConstraintError(
            "cvt_tensor_a: shuffle_a=True, an order of the elements of A in memory that is not documented: leave A in "
            "its order, and give False"
        )
    return tensor.load().to(mma_dtype)


def store_transformed_a(tensor_a: Tensor, A_transform: Tensor, dst_copy_a: TiledCopy | None) -> None:
    """Store the converted registers of a thread, (CPY, CPY_MMA, MMA_M, MMA_K), to its part of one stage of A. The fence
    for the MMA (``fence_view_async_tmem_store``, or ``fence_proxy`` of shared memory) is the caller's."""
    if dst_copy_a is None:
        autovec_copy(tensor_a, A_transform)
    else:
        copy(dst_copy_a, dst_copy_a.retile(tensor_a), A_transform)


# -- the epilogue ----------------------------------------------------------------------------------------------------


def epilog_tmem_copy_and_partition(
    cta_tile_shape_mnk: Any,
    c_layout: Any,
    c_dtype: Any,
    acc_dtype: Any,
    tidx: Any,
    tAcc: Tensor,
    gC_mnl: Tensor,
    epi_tile: Any,
    use_2cta_instrs: bool,
) -> tuple[TiledCopy, Tensor, Tensor]:
    """``utils.gemm.sm100.epilogue_tmem_copy_and_partition`` of the accumulators (MMA, MMA_M, MMA_N, STAGE) and of the
    partition of C (MMA, MMA_M, MMA_N, RestM, RestN, ...)."""
    kernel = SimpleNamespace(
        cta_tile_shape_mnk=cta_tile_shape_mnk, c_layout=c_layout, c_dtype=c_dtype, acc_dtype=acc_dtype
    )
    transformed = sm100.transform_partitioned_tensor_layout
    return sm100.epilogue_tmem_copy_and_partition(
        kernel, tidx, transformed(tAcc), transformed(gC_mnl), epi_tile, use_2cta_instrs
    )


def epilog_smem_copy_and_partition(
    c_layout: Any, c_dtype: Any, acc_dtype: Any, tiled_copy_t2r: TiledCopy, tTR_rC: Tensor, tidx: Any, sC: Tensor
) -> tuple[TiledCopy, Tensor, Tensor]:
    """``utils.gemm.sm100.epilogue_smem_copy_and_partition``."""
    kernel = SimpleNamespace(c_layout=c_layout, c_dtype=c_dtype, acc_dtype=acc_dtype)
    return sm100.epilogue_smem_copy_and_partition(kernel, tiled_copy_t2r, tTR_rC, tidx, sC)


def epilog_gmem_copy_and_partition(
    c_dtype: Any,
    tidx: Any,
    tma_atom_c: Any,
    tiled_copy_t2r: TiledCopy | None,
    tCgC: Tensor | None,
    tCgC_simt: Tensor | None,
    epi_tile: Any,
    sC: Tensor | None,
) -> tuple[Any, Tensor | None, Tensor | None, Any, Tensor | None]:
    """The parts of C by which an epilogue stores it: ``(tma_atom_c, bSG_sC, bSG_gC, simt_atom, tTR_gC)``.

    The first three are of TMA, from ``tma_atom_c`` and ``tCgC``, the block's part of TMA's tensor (MMA, MMA_M, MMA_N,
    RestM, RestN, RestL): its buffers ``sC`` as ((ATOM, REST), STAGE) and its places as ((ATOM, REST), EPI_M, EPI_N,
    RestM, RestN, RestL). The last two are of the threads' own stores, from ``tiled_copy_t2r`` and ``tCgC_simt``, the
    same part of C in global memory: a copy of ``c_dtype``, and the elements that thread ``tidx`` holds after
    ``tiled_copy_t2r``, (T2R, T2R_M, T2R_N, EPI_M, EPI_N, RestM, RestN, RestL). Where ``tma_atom_c`` or
    ``tiled_copy_t2r`` is None, so are its results.
    """
    bSG_sC = bSG_gC = simt_atom = tTR_gC = None
    if tma_atom_c is not None:
        parts = flat_divide(sm100.transform_partitioned_tensor_layout(tCgC), epi_tile)
        bSG_sC, bSG_gC = cpasync.tma_partition(
            tma_atom_c, 0, make_layout(1), group_modes(sC, 0, 2), group_modes(parts, 0, 2)
        )
    if tiled_copy_t2r is not None:
        simt_atom = make_copy_atom(CopyUniversalOp(), c_dtype)
        parts = flat_divide(sm100.transform_partitioned_tensor_layout(tCgC_simt), epi_tile)
        tTR_gC = tiled_copy_t2r.get_slice(tidx).partition_D(parts)
    return tma_atom_c, bSG_sC, bSG_gC, simt_atom, tTR_gC


attach(__name__)
