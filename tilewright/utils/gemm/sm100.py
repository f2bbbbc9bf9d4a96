"""``cutlass.utils.gemm.sm100``: how an epilogue of four warps takes an accumulator out of tensor memory, part by part.

The kernel object that they are given has ``cta_tile_shape_mnk``, ``c_layout``, ``c_dtype`` and ``acc_dtype``; whole
epilogues also read ``use_2cta_instrs``, ``epilogue_warp_id`` (the numbers of the four warps, the first of which issues
the TMA stores) and ``epilog_sync_bar_id`` (the named barrier of those warps).
"""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
from tilewright import cute, pipeline
from tilewright._names import attach
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.nvgpu.tcgen05 import make_tmem_copy
from tilewright.errors import ConstraintError
from tilewright.ir.target import WARP
from tilewright.lang.tensors.algebra import make_rmem_tensor
from tilewright.lang.tensors.layout_functions import flat_divide
from tilewright.lang.tensors.tensor import Tensor, make_tensor
from tilewright.layout import make_layout, rank
from tilewright.tiled.make_copy import make_tiled_copy_D
from tilewright.tiled.tiled_copy import TiledCopy
from tilewright.utils.blackwell_helpers import get_smem_store_op, get_tmem_load_op

__all__ = [
    "epilogue",
    "epilogue_smem_copy_and_partition",
    "epilogue_tma_store",
    "epilogue_tmem_copy_and_partition",
    "transform_partitioned_tensor_layout",
]


def transform_partitioned_tensor_layout(tensor: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """What ``partition_C`` gives, ((MMA_M, MMA_N), RestM, RestN, ...), as tiles of M and N: ((MMA_M, RestM), (MMA_N,
    RestN), ...). Of a layout or a tensor.

    >>> transform_partitioned_tensor_layout(cute.make_layout(((128, 64), 1, 2, 3), stride=((64, 1), 0, 8192, 16384)))
    ((128,1),(64,2),3):((64,0),(1,8192),16384)
    """
    layout = tensor.layout if isinstance(tensor, Tensor) else tensor
    m, n = (make_layout(layout[0][mode], layout[1 + mode]) for mode in range(2))
    made = make_layout(m, n, *(layout[mode] for mode in range(3, rank(layout))))
    return make_tensor(tensor.iterator, made) if isinstance(tensor, Tensor) else made


def epilogue_tmem_copy_and_partition(
    gemm_kernel: Any,
    tidx: Any,
    tAcc: Tensor,
    tCgC: Tensor,
    epi_tile: Any,
    use_2cta_instrs: bool,
    *,
    loc: Any = None,
    ip: Any = None,
) -> tuple[TiledCopy, Tensor, Tensor]:
    """The copy of a part ``epi_tile`` of the accumulator to registers; thread ``tidx``'s elements of the accumulator
    (T2R, T2R_M, T2R_N, EPI_M, EPI_N, STAGE); and its registers for one part. ``tAcc`` and ``tCgC``: see
    :func:`transform_partitioned_tensor_layout`."""
    kernel = gemm_kernel
    atom = get_tmem_load_op(
        kernel.cta_tile_shape_mnk, kernel.c_layout, kernel.c_dtype, kernel.acc_dtype, epi_tile, use_2cta_instrs
    )
    parts: Any = flat_divide(tAcc, epi_tile)
    first = (None, None, *(0,) * (rank(parts) - 2))
    tiled_copy = make_tmem_copy(atom, parts[first])
    thread = tiled_copy.get_slice(tidx)
    of_c: Any = thread.partition_D(flat_divide(tCgC, epi_tile))
    registers = make_rmem_tensor(of_c[(None, None, None, *(0,) * (rank(of_c) - 3))].shape, kernel.acc_dtype)
    return tiled_copy, thread.partition_S(parts), registers


def epilogue_smem_copy_and_partition(
    gemm_kernel: Any,
    tiled_copy_t2r: TiledCopy,
    tTR_rC: Tensor,
    tidx: Any,
    sC: Tensor,
    *,
    loc: Any = None,
    ip: Any = None,
) -> tuple[TiledCopy, Tensor, Tensor]:
    """The copy on to shared memory of the registers that ``tiled_copy_t2r`` has loaded, as elements of C; ``tTR_rC`` as
    that copy takes them; and thread ``tidx``'s elements of ``sC`` (R2S, R2S_M, R2S_N, STAGE)."""
    atom = get_smem_store_op(gemm_kernel.c_layout, gemm_kernel.c_dtype, gemm_kernel.acc_dtype, tiled_copy_t2r)
    tiled_copy = make_tiled_copy_D(atom, tiled_copy_t2r)
    return tiled_copy, tiled_copy.retile(tTR_rC), tiled_copy.get_slice(tidx).partition_D(sC)


@cute.jit
def epilogue_tma_store(
    gemm_kernel: Any,
    epi_tidx: Any,
    warp_idx: Any,
    tma_atom_c: Any,
    tCtAcc_base: Tensor,
    sC: Tensor,
    tCgC_base: Tensor,
    epi_tile: Any,
    num_tiles_executed: Any,
    epilogue_op: cutlass.Constexpr,
    mma_tile_coord_mnl: Any,
    acc_consumer_state: Any,
    acc_pipeline: Any,
    c_pipeline: Any,
) -> Any:
    """The epilogue of one tile, called by all epilogue warps: part by part from tensor memory through ``sC`` to global
    memory by TMA. It waits for the accumulators, releases them, and returns the state for the next tile; at the end of
    all tiles the kernel calls ``c_pipeline.producer_tail()``.

    Args:
        gemm_kernel: see the module.
        epi_tidx: the thread's number among those of the epilogue warps; ``warp_idx``: the warp's number in the block.
        tma_atom_c: of ``CopyBulkTensorTileS2GOp`` for parts ``epi_tile``.
        tCtAcc_base: the accumulators in tensor memory (MMA, MMA_M, MMA_N, STAGE).
        sC: buffers in shared memory (EPI_TILE_M, EPI_TILE_N, STAGE), of ``make_smem_layout_epi``.
        tCgC_base: the block's part of TMA's tensor of C (MMA, MMA_M, MMA_N, RestM, RestN, RestL), of ``partition_C``.
        num_tiles_executed: how many tiles the block has stored; it says which buffer is next.
        epilogue_op: what is done with the values of a thread, a function of a vector of ``c_dtype``: the sums are
            converted before. ``lambda x: x`` for nothing.
        mma_tile_coord_mnl: which tile of the last modes of ``tCgC_base`` it is.
        acc_consumer_state: of ``acc_pipeline`` (``PipelineUmmaAsync``), whose consumer group has an arrival for each
            epilogue warp, or for each of their threads; of both blocks of a pair.
        c_pipeline: ``PipelineTmaStore`` with as many stages as ``sC``, or fewer.

    ConstraintError where ``gemm_kernel.overlapping_accum`` is true, as for :func:`epilogue`.
    """
    _check_stages(gemm_kernel)
    tCgC = transform_partitioned_tensor_layout(tCgC_base)
    tCtAcc = transform_partitioned_tensor_layout(tCtAcc_base)
    t2r, tTR_tAcc, tTR_rAcc = epilogue_tmem_copy_and_partition(
        gemm_kernel, epi_tidx, tCtAcc, tCgC, epi_tile, gemm_kernel.use_2cta_instrs
    )
    tTR_rC = make_rmem_tensor(tTR_rAcc.shape, gemm_kernel.c_dtype)
    r2s, tRS_rC, tRS_sC = epilogue_smem_copy_and_partition(gemm_kernel, t2r, tTR_rC, epi_tidx, sC)
    parts = flat_divide(tCgC, epi_tile)
    # ((ATOM, REST), STAGE), ((ATOM, REST), EPI_M, EPI_N, RestM, RestN, RestL)
    bSG_sC, bSG_gC_all = cpasync.tma_partition(
        tma_atom_c, 0, cute.make_layout(1), cute.group_modes(sC, 0, 2), cute.group_modes(parts, 0, 2)
    )
    bSG_gC = cute.group_modes(_tile(bSG_gC_all, 3, mma_tile_coord_mnl), 1, 3)
    together = _barrier(gemm_kernel)
    stores = gemm_kernel.epilogue_warp_id[0]
    buffers = cute.size(tRS_sC, mode=[3])
    _check_buffers(c_pipeline.num_stages, buffers)

    acc_pipeline.consumer_wait(acc_consumer_state)
    tTR_tAcc_stage = cute.group_modes(_stage(tTR_tAcc, acc_consumer_state.index), 3, 5)
    count = cute.size(tTR_tAcc_stage, mode=[3])
    for part in cutlass.range(count):
        cute.copy(t2r, tTR_tAcc_stage[None, None, None, part], tTR_rAcc)
        cute.arch.fence_view_async_tmem_load()
        if part == count - 1:
            _release(gemm_kernel, acc_pipeline, acc_consumer_state)
        tRS_rC.store(epilogue_op(r2s.retile(tTR_rAcc).load().to(gemm_kernel.c_dtype)))
        buffer = (num_tiles_executed * count + part) % buffers
        cute.copy(r2s, tRS_rC, tRS_sC[None, None, None, buffer])
        cute.arch.fence_proxy("async.shared", space="cta")
        together.arrive_and_wait()
        if warp_idx == stores:
            cute.copy(tma_atom_c, bSG_sC[None, buffer], bSG_gC[None, part])
            c_pipeline.producer_commit()
            c_pipeline.producer_acquire()
        together.arrive_and_wait()
    acc_consumer_state.advance()
    return acc_consumer_state


@cute.jit
def epilogue(
    gemm_kernel: Any,
    epi_tidx: Any,
    tCtAcc_base: Tensor,
    tCgC_base: Tensor,
    epi_tile: Any,
    epilogue_op: cutlass.Constexpr,
    mma_tile_coord_mnl: Any,
    acc_consumer_state: Any,
    acc_pipeline: Any,
    tCcC_base: Any = None,
    mC_mnl: Any = None,
    overlapping_accum: cutlass.Constexpr = False,
) -> Any:
    """The epilogue of one tile, called by all epilogue warps: part by part from tensor memory to registers, and by the
    threads' own stores to global memory. ``tCgC_base`` is a partition of C itself; the other arguments and what is
    returned are those of :func:`epilogue_tma_store`.

    ``tCcC_base`` is the same partition of C's coordinates, ``make_identity_tensor(mC_mnl.shape)``: elements outside of
    ``mC_mnl`` are not stored. Without both, tiles must end where C does. ``overlapping_accum``, two stages of
    accumulators that share columns, is refused (ConstraintError): how the kernel then counts its stages is not
    documented.
    """
    _check_stages(gemm_kernel, overlapping_accum)
    tCgC = transform_partitioned_tensor_layout(tCgC_base)
    tCtAcc = transform_partitioned_tensor_layout(tCtAcc_base)
    t2r, tTR_tAcc, tTR_rAcc = epilogue_tmem_copy_and_partition(
        gemm_kernel, epi_tidx, tCtAcc, tCgC, epi_tile, gemm_kernel.use_2cta_instrs
    )
    thread = t2r.get_slice(epi_tidx)
    # (T2R, T2R_M, T2R_N, (EPI_M, EPI_N))
    tTR_gC = cute.group_modes(_tile(thread.partition_D(flat_divide(tCgC, epi_tile)), 5, mma_tile_coord_mnl), 3, 5)
    tTR_cC = tTR_gC
    if cutlass.const_expr(tCcC_base is not None):
        tCcC = transform_partitioned_tensor_layout(tCcC_base)
        tTR_cC = cute.group_modes(_tile(thread.partition_D(flat_divide(tCcC, epi_tile)), 5, mma_tile_coord_mnl), 3, 5)
    tTR_rC = make_rmem_tensor(tTR_rAcc.shape, gemm_kernel.c_dtype)
    tTR_pC = make_rmem_tensor(tTR_rAcc.shape, cutlass.Boolean)

    acc_pipeline.consumer_wait(acc_consumer_state)
    tTR_tAcc_stage = cute.group_modes(_stage(tTR_tAcc, acc_consumer_state.index), 3, 5)
    count = cute.size(tTR_tAcc_stage, mode=[3])
    for part in cutlass.range(count):
        cute.copy(t2r, tTR_tAcc_stage[None, None, None, part], tTR_rAcc)
        cute.arch.fence_view_async_tmem_load()
        if part == count - 1:
            _release(gemm_kernel, acc_pipeline, acc_consumer_state)
        tTR_rC.store(epilogue_op(tTR_rAcc.load().to(gemm_kernel.c_dtype)))
        to = tTR_gC[None, None, None, part]
        if cutlass.const_expr(tCcC_base is None):
            cute.autovec_copy(tTR_rC, to)
        else:
            places = tTR_cC[None, None, None, part]
            for i in cutlass.range_constexpr(cute.size(tTR_pC)):
                tTR_pC[i] = cute.elem_less(places[i], mC_mnl.shape)
            cute.basic_copy_if(tTR_pC, tTR_rC, to)
    acc_consumer_state.advance()
    return acc_consumer_state


@cute.jit
def _release(gemm_kernel: Any, acc_pipeline: Any, state: Any) -> None:
    """The accumulators have been loaded: an arrival of each warp or of each thread, as the consumer group counts."""
    warps = len(gemm_kernel.epilogue_warp_id) * (2 if gemm_kernel.use_2cta_instrs else 1)
    arrivals = acc_pipeline.sync_object_empty.group.arrivals
    if cutlass.const_expr(arrivals == warps):
        with cute.arch.elect_one():
            acc_pipeline.consumer_release(state)
    elif cutlass.const_expr(arrivals == WARP * warps):
        acc_pipeline.consumer_release(state)
    else:
        raise ConstraintError(
            f"the consumer group of acc_pipeline has {arrivals} arrivals; the epilogue makes {warps} (a thread of each "
            f"warp) or {WARP * warps} (all threads): CooperativeGroup(Agent.Thread, {warps})"
        )


def _barrier(gemm_kernel: Any) -> pipeline.NamedBarrier:
    """Where the epilogue warps meet."""
    for name in ("epilog_sync_bar_id", "epilogue_warp_id"):
        if not hasattr(gemm_kernel, name):
            raise ConstraintError(
                f"utils.gemm.sm100: {type(gemm_kernel).__name__} has no attribute {name}: the kernel object needs "
                "epilogue_warp_id, the numbers of the epilogue warps, and epilog_sync_bar_id, their named barrier"
            )
    return pipeline.NamedBarrier(
        barrier_id=gemm_kernel.epilog_sync_bar_id, num_threads=WARP * len(gemm_kernel.epilogue_warp_id)
    )


def _check_stages(gemm_kernel: Any, overlapping: bool = False) -> None:
    if overlapping or getattr(gemm_kernel, "overlapping_accum", False):
        raise ConstraintError(
            "utils.gemm.sm100: stages of accumulators that overlap in tensor memory are not here: give each stage its "
            "own columns (overlapping_accum=False), or write the loop with epilogue_tmem_copy_and_partition"
        )


def _check_buffers(stages: int, buffers: int) -> None:
    if stages > buffers:
        raise ConstraintError(
            f"epilogue_tma_store: c_pipeline has {stages} stages, and sC {buffers} buffers: a buffer would be written "
            "while TMA reads it"
        )


def _tile(tensor: Any, modes: int, coord: Any) -> Any:
    """One of the tiles that the last modes of a tensor count."""
    rests = rank(tensor) - modes
    return tensor[(*(None,) * modes, *tuple(coord)[:rests])]


def _stage(tensor: Any, index: Any) -> Any:
    return tensor[(*(None,) * (rank(tensor) - 1), index)]


attach(__name__)
