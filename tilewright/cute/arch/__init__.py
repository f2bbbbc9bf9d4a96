"""``cute.arch``: indices of threads and blocks, synchronisation, warp exchange, atomics, single instructions."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.lang.device.threads": (
            "WARP_SIZE thread_idx block_dim block_idx grid_dim cluster_idx cluster_dim block_in_cluster_idx "
            "block_in_cluster_dim block_idx_in_cluster cluster_size lane_idx warp_idx"
        ),
        "tilewright.lang.device.clusters": (
            "cluster_arrive cluster_arrive_relaxed cluster_wait mapa map_dsmem_ptr store_shared_remote"
        ),
        "tilewright.lang.device.registers": (
            "setmaxregister_increase setmaxregister_decrease warpgroup_reg_alloc warpgroup_reg_dealloc "
            "griddepcontrol_wait griddepcontrol_launch_dependents"
        ),
        "tilewright.lang.device.barriers": (
            "ProxyKind SharedSpace "
            "FULL_MASK sync_threads barrier barrier_arrive "
            "sync_warp fence_proxy fence_view_async_shared fence_acq_rel_cta "
            "fence_acq_rel_cluster fence_acq_rel_gpu fence_acq_rel_sys "
            "threadfence cp_async_commit_group cp_async_wait_group"
        ),
        "tilewright.lang.device.mbarriers": (
            "mbarrier_init mbarrier_init_fence mbarrier_arrive mbarrier_arrive_and_expect_tx mbarrier_expect_tx "
            "mbarrier_wait mbarrier_try_wait mbarrier_conditional_try_wait cp_async_mbarrier_arrive_noinc"
        ),
        "tilewright.lang.device.bulk": "cp_async_bulk_commit_group cp_async_bulk_wait_group",
        "tilewright.lang.device.warps": (
            "elect_one make_warp_uniform shuffle_sync "
            "shuffle_sync_up shuffle_sync_down shuffle_sync_bfly shuffle_sync_op "
            "warp_reduction warp_reduction_sum warp_reduction_max warp_redux_sync "
            "vote_any_sync vote_all_sync vote_uni_sync vote_ballot_sync"
        ),
        "tilewright.lang.device.packed": "add_packed_f32x2 sub_packed_f32x2 mul_packed_f32x2 fma_packed_f32x2",
        "tilewright.lang.device.single": "fmax fmin rcp_approx popc prmt clock nanosleep",
        "tilewright.lang.tensors.math": "exp exp2 log2 fma",
        "tilewright.lang.device.atomic": (
            "atomic_add atomic_max atomic_min atomic_fmax atomic_fmin atomic_and atomic_or atomic_xor atomic_exch "
            "atomic_cas load store"
        ),
        "tilewright.lang.device.smem": "get_dyn_smem get_dyn_smem_size dynamic_smem_size alloc_smem",
        "tilewright.lang.tensors.pointer": "AddressSpace",
        "tilewright.base_dsl.arch": "Arch",
        "tilewright.cute.arch.later": "prefetch sext_unpacked_i4_i8_intrinsic",
        "tilewright.cute.arch.sm100_only": (
            "alloc_tmem dealloc_tmem fence_view_async_tmem_load fence_view_async_tmem_store get_max_tmem_alloc_cols "
            "get_min_tmem_alloc_cols relinquish_tmem_alloc_permit retrieve_tmem_ptr"
        ),
    },
    ("nvvm_wrappers", "smem"),
)
