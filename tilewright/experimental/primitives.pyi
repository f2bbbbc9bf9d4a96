# Made by `python tools/stubs.py` from tilewright/experimental/primitives.py; do not edit.
"""``cutlass.experimental.primitives``: single instructions, which are not here yet under these names."""

from typing import Any

class CTAGroup(Any):
    """Not here yet: using it is an error that says why."""

class LoadShape(Any):
    """Not here yet: using it is an error that says why."""

class LoadSrcFormat(Any):
    """Not here yet: using it is an error that says why."""

class MBarrierWait(Any):
    """Not here yet: using it is an error that says why."""

class MMABlockScaleKind(Any):
    """Not here yet: using it is an error that says why."""

class MMALayout(Any):
    """Not here yet: using it is an error that says why."""

class MemOrder(Any):
    """Not here yet: using it is an error that says why."""

class MemScope(Any):
    """Not here yet: using it is an error that says why."""

class Proxy(Any):
    """Not here yet: using it is an error that says why."""

class ReductionKind(Any):
    """Not here yet: using it is an error that says why."""

class ReductionOp(Any):
    """Not here yet: using it is an error that says why."""

class ReductionType(Any):
    """Not here yet: using it is an error that says why."""

class S2TCopyMode(Any):
    """Not here yet: using it is an error that says why."""

class SetMaxRegisterAction(Any):
    """Not here yet: using it is an error that says why."""

class SharedSpace(Any):
    """Not here yet: using it is an error that says why."""

class Shfl(Any):
    """Not here yet: using it is an error that says why."""

class StoreShape(Any):
    """Not here yet: using it is an error that says why."""

class Tcgen05CpSrcFormat(Any):
    """Not here yet: using it is an error that says why."""

class Tcgen05Fence(Any):
    """Not here yet: using it is an error that says why."""

class Tcgen05InstrDesc(Any):
    """Not here yet: using it is an error that says why."""

class Tcgen05LdStShape(Any):
    """Not here yet: using it is an error that says why."""

class Tcgen05MMABlockScale(Any):
    """Not here yet: using it is an error that says why."""

class Tcgen05MMACollectorOp(Any):
    """Not here yet: using it is an error that says why."""

class Tcgen05MMAKind(Any):
    """Not here yet: using it is an error that says why."""

class Tcgen05MxInstrDesc(Any):
    """Not here yet: using it is an error that says why."""

class Tcgen05MxOmmaInstrDesc(Any):
    """Not here yet: using it is an error that says why."""

class Tcgen05SmemDesc(Any):
    """Not here yet: using it is an error that says why."""

class Tcgen05SmemSwizzle(Any):
    """Not here yet: using it is an error that says why."""

class Tcgen05Wait(Any):
    """Not here yet: using it is an error that says why."""

class TensormapField(Any):
    """Not here yet: using it is an error that says why."""

class TmemAddr(Any):
    """Not here yet: using it is an error that says why."""

class VoteSync(Any):
    """Not here yet: using it is an error that says why."""

class bar_warp_sync(Any):
    """Not here yet: using it is an error that says why."""

class barrier(Any):
    """Not here yet: using it is an error that says why."""

class barrier_cluster_arrive(Any):
    """Not here yet: using it is an error that says why."""

class barrier_cluster_arrive_relaxed(Any):
    """Not here yet: using it is an error that says why."""

class barrier_cluster_wait(Any):
    """Not here yet: using it is an error that says why."""

class barrier_cta_arrive(Any):
    """Not here yet: using it is an error that says why."""

class barrier_cta_red(Any):
    """Not here yet: using it is an error that says why."""

class barrier_cta_sync(Any):
    """Not here yet: using it is an error that says why."""

class barrier_cta_sync_aligned(Any):
    """Not here yet: using it is an error that says why."""

class cluster_ctarank(Any):
    """Not here yet: using it is an error that says why."""

class cp_async_bulk_commit_group(Any):
    """Not here yet: using it is an error that says why."""

class cp_async_bulk_global_shared_cta(Any):
    """Not here yet: using it is an error that says why."""

class cp_async_bulk_prefetch(Any):
    """Not here yet: using it is an error that says why."""

class cp_async_bulk_shared_cluster_global(Any):
    """Not here yet: using it is an error that says why."""

class cp_async_bulk_shared_cluster_shared_cta(Any):
    """Not here yet: using it is an error that says why."""

class cp_async_bulk_tensor_global_shared_cta(Any):
    """Not here yet: using it is an error that says why."""

class cp_async_bulk_tensor_shared_cluster_global(Any):
    """Not here yet: using it is an error that says why."""

class cp_async_bulk_tensor_shared_cta_global(Any):
    """Not here yet: using it is an error that says why."""

class cp_async_bulk_wait_group(Any):
    """Not here yet: using it is an error that says why."""

class cp_async_commit_group(Any):
    """Not here yet: using it is an error that says why."""

class cp_async_mbarrier_arrive(Any):
    """Not here yet: using it is an error that says why."""

class cp_async_shared_global(Any):
    """Not here yet: using it is an error that says why."""

class cp_async_wait_group(Any):
    """Not here yet: using it is an error that says why."""

class elect_sync(Any):
    """Not here yet: using it is an error that says why."""

class exit(Any):
    """Not here yet: using it is an error that says why."""

class fence_mbarrier_init(Any):
    """Not here yet: using it is an error that says why."""

class fence_proxy(Any):
    """Not here yet: using it is an error that says why."""

class fence_proxy_acquire(Any):
    """Not here yet: using it is an error that says why."""

class fence_proxy_release(Any):
    """Not here yet: using it is an error that says why."""

class ldmatrix(Any):
    """Not here yet: using it is an error that says why."""

class make_tmem_ptr(Any):
    """Not here yet: using it is an error that says why."""

class make_tmem_ptr_from_warp_row_col(Any):
    """Not here yet: using it is an error that says why."""

class mapa(Any):
    """Not here yet: using it is an error that says why."""

class mbarrier_arrive(Any):
    """Not here yet: using it is an error that says why."""

class mbarrier_arrive_expect_tx(Any):
    """Not here yet: using it is an error that says why."""

class mbarrier_expect_tx(Any):
    """Not here yet: using it is an error that says why."""

class mbarrier_init(Any):
    """Not here yet: using it is an error that says why."""

class mbarrier_inval(Any):
    """Not here yet: using it is an error that says why."""

class mbarrier_try_wait_parity(Any):
    """Not here yet: using it is an error that says why."""

class mbarrier_try_wait_timelimit(Any):
    """Not here yet: using it is an error that says why."""

class mbarrier_wait_parity(Any):
    """Not here yet: using it is an error that says why."""

class prefetch_tensormap(Any):
    """Not here yet: using it is an error that says why."""

class print_runtime(Any):
    """Not here yet: using it is an error that says why."""

class red(Any):
    """Not here yet: using it is an error that says why."""

class redux_sync(Any):
    """Not here yet: using it is an error that says why."""

class setmaxregister(Any):
    """Not here yet: using it is an error that says why."""

class shfl_sync(Any):
    """Not here yet: using it is an error that says why."""

class stmatrix(Any):
    """Not here yet: using it is an error that says why."""

class tcgen05_alloc(Any):
    """Not here yet: using it is an error that says why."""

class tcgen05_commit(Any):
    """Not here yet: using it is an error that says why."""

class tcgen05_cp(Any):
    """Not here yet: using it is an error that says why."""

class tcgen05_dealloc(Any):
    """Not here yet: using it is an error that says why."""

class tcgen05_fence(Any):
    """Not here yet: using it is an error that says why."""

class tcgen05_ld(Any):
    """Not here yet: using it is an error that says why."""

class tcgen05_mma(Any):
    """Not here yet: using it is an error that says why."""

class tcgen05_mma_block_scale(Any):
    """Not here yet: using it is an error that says why."""

class tcgen05_relinquish_alloc_permit(Any):
    """Not here yet: using it is an error that says why."""

class tcgen05_st(Any):
    """Not here yet: using it is an error that says why."""

class tcgen05_wait(Any):
    """Not here yet: using it is an error that says why."""

class tensormap_replace(Any):
    """Not here yet: using it is an error that says why."""

class vote_sync(Any):
    """Not here yet: using it is an error that says why."""
