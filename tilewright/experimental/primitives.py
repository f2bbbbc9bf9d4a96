"""``cutlass.experimental.primitives``: single instructions, which are not here yet under these names."""

from tilewright import stand_ins

__getattr__, __all__ = stand_ins.names(
    __name__,
    "CTAGroup(CTA_1,CTA_2) LoadShape(M16N16) LoadSrcFormat(B8) MBarrierWait(TRY) MMABlockScaleKind(MXF4NVF4,MXF8F6F4) "
    "MMALayout(COL,ROW) MemOrder(RELAXED) MemScope(CLUSTER,CTA,GPU) Proxy(ASYNC_SHARED,GENERIC,TENSORMAP) "
    "ReductionKind(ADD,AND,FMAX,FMIN,MAX,MIN,OR,UMAX,UMIN,XOR) ReductionOp(ADD,MAX,MIN) "
    "ReductionType(BF16,F16,F32,S32) "
    "S2TCopyMode(S2T_128x128b,S2T_128x256b,S2T_32x128b_WARPX4,S2T_64x128b_WARPX2_01_23) "
    "SetMaxRegisterAction(DECREASE) SharedSpace(shared_cta) Shfl(BFLY,DOWN,IDX,UP) StoreShape(M16N8) "
    "Tcgen05CpSrcFormat(B4X16_P64,B6X16_P32) Tcgen05Fence(BEFORE_THREAD_SYNC) Tcgen05InstrDesc(build) "
    "Tcgen05LdStShape(SHAPE_32X32B) Tcgen05MMABlockScale(BLOCK16) Tcgen05MMACollectorOp(FILL,LASTUSE,USE) "
    "Tcgen05MMAKind(F16,F8F6F4,TF32) Tcgen05MxInstrDesc(build) Tcgen05MxOmmaInstrDesc(build) Tcgen05SmemDesc(build) "
    "Tcgen05SmemSwizzle(NONE,SWIZZLE_128B,SWIZZLE_32B) Tcgen05Wait(LOAD,STORE) "
    "TensormapField(GLOBAL_ADDRESS,GLOBAL_DIM) TmemAddr(from_row_col) VoteSync(ALL,ANY,BALLOT,UNI) bar_warp_sync "
    "barrier barrier_cluster_arrive barrier_cluster_arrive_relaxed barrier_cluster_wait barrier_cta_arrive "
    "barrier_cta_red barrier_cta_sync barrier_cta_sync_aligned cluster_ctarank cp_async_bulk_commit_group "
    "cp_async_bulk_global_shared_cta cp_async_bulk_prefetch cp_async_bulk_shared_cluster_global "
    "cp_async_bulk_shared_cluster_shared_cta cp_async_bulk_tensor_global_shared_cta "
    "cp_async_bulk_tensor_shared_cluster_global cp_async_bulk_tensor_shared_cta_global cp_async_bulk_wait_group "
    "cp_async_commit_group cp_async_mbarrier_arrive cp_async_shared_global cp_async_wait_group elect_sync exit "
    "fence_mbarrier_init fence_proxy fence_proxy_acquire fence_proxy_release ldmatrix make_tmem_ptr "
    "make_tmem_ptr_from_warp_row_col mapa mbarrier_arrive mbarrier_arrive_expect_tx mbarrier_expect_tx mbarrier_init "
    "mbarrier_inval mbarrier_try_wait_parity mbarrier_try_wait_timelimit mbarrier_wait_parity prefetch_tensormap "
    "print_runtime red redux_sync setmaxregister shfl_sync stmatrix tcgen05_alloc tcgen05_commit tcgen05_cp "
    "tcgen05_dealloc tcgen05_fence tcgen05_ld tcgen05_mma tcgen05_mma_block_scale tcgen05_relinquish_alloc_permit "
    "tcgen05_st tcgen05_wait tensormap_replace vote_sync",
    why=stand_ins.EXPERIMENTAL,
    instead={
        "bar_warp_sync": "cute.arch.sync_warp",
        "barrier": "cute.arch.barrier",
        "barrier_cluster_arrive": "cute.arch.cluster_arrive",
        "barrier_cluster_arrive_relaxed": "cute.arch.cluster_arrive_relaxed",
        "barrier_cluster_wait": "cute.arch.cluster_wait",
        "barrier_cta_arrive": "cute.arch.barrier_arrive",
        "barrier_cta_sync": "cute.arch.barrier, or cute.arch.sync_threads for the whole block",
        "barrier_cta_sync_aligned": "cute.arch.barrier, or cute.arch.sync_threads for the whole block",
        "cluster_ctarank": "cute.arch.block_idx_in_cluster",
        "cp_async_bulk_commit_group": "cute.arch.cp_async_bulk_commit_group",
        "cp_async_bulk_global_shared_cta": "cute.copy with cute.nvgpu.cpasync.CopyBulkS2GOp",
        "cp_async_bulk_shared_cluster_global": "cute.copy with cute.nvgpu.cpasync.CopyBulkG2SOp",
        "cp_async_bulk_tensor_global_shared_cta": "cute.copy with cute.nvgpu.cpasync.CopyBulkTensorTileS2GOp",
        "cp_async_bulk_tensor_shared_cluster_global": (
            "cute.copy with cute.nvgpu.cpasync.CopyBulkTensorTileG2SMulticastOp"
        ),
        "cp_async_bulk_tensor_shared_cta_global": "cute.copy with cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp",
        "cp_async_bulk_wait_group": "cute.arch.cp_async_bulk_wait_group",
        "cp_async_commit_group": "cute.arch.cp_async_commit_group",
        "cp_async_mbarrier_arrive": "cute.arch.cp_async_mbarrier_arrive_noinc",
        "cp_async_shared_global": "cute.copy with cute.nvgpu.cpasync.CopyG2SOp",
        "cp_async_wait_group": "cute.arch.cp_async_wait_group",
        "elect_sync": "`with cute.arch.elect_one():`",
        "fence_mbarrier_init": "cute.arch.mbarrier_init_fence",
        "fence_proxy": "cute.arch.fence_proxy",
        "ldmatrix": "cute.copy with cute.nvgpu.warp.LdMatrix8x8x16bOp",
        "mapa": "cute.arch.mapa",
        "mbarrier_arrive": "cute.arch.mbarrier_arrive",
        "mbarrier_arrive_expect_tx": "cute.arch.mbarrier_arrive_and_expect_tx",
        "mbarrier_expect_tx": "cute.arch.mbarrier_expect_tx",
        "mbarrier_init": "cute.arch.mbarrier_init",
        "mbarrier_try_wait_parity": "cute.arch.mbarrier_try_wait",
        "mbarrier_wait_parity": "cute.arch.mbarrier_wait",
        "prefetch_tensormap": "cute.nvgpu.cpasync.prefetch_descriptor",
        "print_runtime": "cute.printf",
        "red": "cute.arch.atomic_add and its like",
        "redux_sync": "cute.arch.warp_redux_sync",
        "setmaxregister": "cute.arch.setmaxregister_increase or setmaxregister_decrease",
        "shfl_sync": "cute.arch.shuffle_sync and its like",
        "stmatrix": "cute.copy with cute.nvgpu.warp.StMatrix8x8x16bOp",
        "tensormap_replace": "cute.nvgpu.cpasync.update_tma_descriptor",
        "vote_sync": "cute.arch.vote_any_sync and its like",
    },
)
