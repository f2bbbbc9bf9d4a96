# Made by `python tools/stubs.py` from tilewright/experimental/primitives.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``cutlass.experimental.primitives``: single instructions, which are not here yet under these names."""

from typing import Any

class CTAGroup(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class LoadShape(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class LoadSrcFormat(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class MBarrierWait(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class MMABlockScaleKind(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class MMALayout(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class MemOrder(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class MemScope(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Proxy(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class ReductionKind(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class ReductionOp(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class ReductionType(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class S2TCopyMode(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class SetMaxRegisterAction(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class SharedSpace(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Shfl(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class StoreShape(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Tcgen05CpSrcFormat(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Tcgen05Fence(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Tcgen05InstrDesc(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Tcgen05LdStShape(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Tcgen05MMABlockScale(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Tcgen05MMACollectorOp(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Tcgen05MMAKind(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Tcgen05MxInstrDesc(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Tcgen05MxOmmaInstrDesc(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Tcgen05SmemDesc(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Tcgen05SmemSwizzle(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Tcgen05Wait(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class TensormapField(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class TmemAddr(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class VoteSync(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class bar_warp_sync(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class barrier(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class barrier_cluster_arrive(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class barrier_cluster_arrive_relaxed(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class barrier_cluster_wait(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class barrier_cta_arrive(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class barrier_cta_red(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class barrier_cta_sync(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class barrier_cta_sync_aligned(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class cluster_ctarank(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class cp_async_bulk_commit_group(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class cp_async_bulk_global_shared_cta(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class cp_async_bulk_prefetch(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class cp_async_bulk_shared_cluster_global(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class cp_async_bulk_shared_cluster_shared_cta(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class cp_async_bulk_tensor_global_shared_cta(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class cp_async_bulk_tensor_shared_cluster_global(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class cp_async_bulk_tensor_shared_cta_global(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class cp_async_bulk_wait_group(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class cp_async_commit_group(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class cp_async_mbarrier_arrive(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class cp_async_shared_global(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class cp_async_wait_group(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class elect_sync(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class exit(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class fence_mbarrier_init(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class fence_proxy(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class fence_proxy_acquire(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class fence_proxy_release(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class ldmatrix(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class make_tmem_ptr(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class make_tmem_ptr_from_warp_row_col(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class mapa(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class mbarrier_arrive(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class mbarrier_arrive_expect_tx(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class mbarrier_expect_tx(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class mbarrier_init(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class mbarrier_inval(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class mbarrier_try_wait_parity(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class mbarrier_try_wait_timelimit(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class mbarrier_wait_parity(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class prefetch_tensormap(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class print_runtime(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class red(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class redux_sync(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class setmaxregister(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class shfl_sync(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class stmatrix(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class tcgen05_alloc(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class tcgen05_commit(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class tcgen05_cp(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class tcgen05_dealloc(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class tcgen05_fence(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class tcgen05_ld(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class tcgen05_mma(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class tcgen05_mma_block_scale(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class tcgen05_relinquish_alloc_permit(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class tcgen05_st(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class tcgen05_wait(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class tensormap_replace(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class vote_sync(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""
