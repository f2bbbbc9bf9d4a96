"""``cute.arch``: indices of threads and blocks, synchronisation, warp exchange, atomics, single instructions."""

from tilewright.base_dsl.arch import Arch as Arch
from tilewright.cute.arch.tensor_memory import (
    get_max_tmem_alloc_cols as get_max_tmem_alloc_cols, get_min_tmem_alloc_cols as get_min_tmem_alloc_cols,
)
from tilewright.lang.device.atomic import (
    atomic_add as atomic_add, atomic_and as atomic_and, atomic_cas as atomic_cas, atomic_exch as atomic_exch,
    atomic_fmax as atomic_fmax, atomic_fmin as atomic_fmin, atomic_max as atomic_max, atomic_min as atomic_min,
    atomic_or as atomic_or, atomic_xor as atomic_xor, load as load, red as red, store as store,
)
from tilewright.lang.device.barriers import (
    FULL_MASK as FULL_MASK, ProxyKind as ProxyKind, SharedSpace as SharedSpace, barrier as barrier,
    barrier_arrive as barrier_arrive, cp_async_commit_group as cp_async_commit_group,
    cp_async_wait_group as cp_async_wait_group, fence_acq_rel_cluster as fence_acq_rel_cluster,
    fence_acq_rel_cta as fence_acq_rel_cta, fence_acq_rel_gpu as fence_acq_rel_gpu,
    fence_acq_rel_sys as fence_acq_rel_sys, fence_proxy as fence_proxy,
    fence_view_async_shared as fence_view_async_shared, sync_threads as sync_threads, sync_warp as sync_warp,
    threadfence as threadfence,
)
from tilewright.lang.device.bulk import (
    cp_async_bulk_commit_group as cp_async_bulk_commit_group, cp_async_bulk_wait_group as cp_async_bulk_wait_group,
)
from tilewright.lang.device.clusters import (
    cluster_arrive as cluster_arrive, cluster_arrive_relaxed as cluster_arrive_relaxed,
    cluster_wait as cluster_wait, map_dsmem_ptr as map_dsmem_ptr, mapa as mapa,
    store_async_dsmem as store_async_dsmem, store_shared_remote as store_shared_remote,
)
from tilewright.lang.device.inline_ptx import inline_ptx as inline_ptx
from tilewright.lang.device.integers import (
    add_sat_int as add_sat_int, bfe as bfe, bfi as bfi, bfind as bfind, brev as brev, clz as clz, mad24 as mad24,
    match_sync as match_sync, mul24 as mul24, shf as shf, sub_sat_int as sub_sat_int,
)
from tilewright.lang.device.mbarriers import (
    cp_async_mbarrier_arrive_noinc as cp_async_mbarrier_arrive_noinc, mbarrier_arrive as mbarrier_arrive,
    mbarrier_arrive_and_expect_tx as mbarrier_arrive_and_expect_tx,
    mbarrier_conditional_try_wait as mbarrier_conditional_try_wait, mbarrier_expect_tx as mbarrier_expect_tx,
    mbarrier_init as mbarrier_init, mbarrier_init_fence as mbarrier_init_fence,
    mbarrier_test_wait as mbarrier_test_wait, mbarrier_try_wait as mbarrier_try_wait, mbarrier_wait as mbarrier_wait,
)
from tilewright.lang.device.packed import (
    add_packed_f32x2 as add_packed_f32x2, calc_packed_f32x2_op as calc_packed_f32x2_op,
    exp_packed_f32x2 as exp_packed_f32x2, fma_packed_f32x2 as fma_packed_f32x2,
    mul_packed_f32x2 as mul_packed_f32x2, sub_packed_f32x2 as sub_packed_f32x2,
)
from tilewright.lang.device.registers import (
    griddepcontrol_launch_dependents as griddepcontrol_launch_dependents,
    griddepcontrol_wait as griddepcontrol_wait, setmaxregister_decrease as setmaxregister_decrease,
    setmaxregister_increase as setmaxregister_increase, warpgroup_reg_alloc as warpgroup_reg_alloc,
    warpgroup_reg_dealloc as warpgroup_reg_dealloc,
)
from tilewright.lang.device.single import (
    clock as clock, fmax as fmax, fmin as fmin, mul_hi as mul_hi, mul_wide as mul_wide, nanosleep as nanosleep,
    popc as popc,
    lop3 as lop3, prmt as prmt, rcp_approx as rcp_approx,
)
from tilewright.lang.device.smem import (
    alloc_smem as alloc_smem, dynamic_smem_size as dynamic_smem_size, get_dyn_smem as get_dyn_smem,
    get_dyn_smem_size as get_dyn_smem_size,
)
from tilewright.lang.device.special_registers import (
    activemask as activemask, aggr_smem_size as aggr_smem_size, clock64 as clock64, globaltimer as globaltimer,
    globaltimer_lo as globaltimer_lo, gridid as gridid, lanemask_eq as lanemask_eq, lanemask_ge as lanemask_ge,
    lanemask_gt as lanemask_gt, lanemask_le as lanemask_le, lanemask_lt as lanemask_lt, nsmid as nsmid,
    nwarpid as nwarpid, physical_warp_id as physical_warp_id, smid as smid, total_smem_size as total_smem_size,
    warpsize as warpsize,
)
from tilewright.lang.device.cluster_launch import clc_response as clc_response, issue_clc_query as issue_clc_query
from tilewright.lang.device.tensor_memory import (
    alloc_tmem as alloc_tmem, dealloc_tmem as dealloc_tmem, fence_view_async_tmem_load as fence_view_async_tmem_load,
    fence_view_async_tmem_store as fence_view_async_tmem_store,
    relinquish_tmem_alloc_permit as relinquish_tmem_alloc_permit, retrieve_tmem_ptr as retrieve_tmem_ptr,
    tcgen05_fence_after_thread_sync as tcgen05_fence_after_thread_sync,
    tcgen05_fence_before_thread_sync as tcgen05_fence_before_thread_sync,
)
from tilewright.lang.device.threads import (
    WARP_SIZE as WARP_SIZE, block_dim as block_dim, block_idx as block_idx,
    block_idx_in_cluster as block_idx_in_cluster, block_in_cluster_dim as block_in_cluster_dim,
    block_in_cluster_idx as block_in_cluster_idx, cluster_dim as cluster_dim, cluster_idx as cluster_idx,
    cluster_size as cluster_size, grid_dim as grid_dim, lane_idx as lane_idx, thread_idx as thread_idx,
    warp_idx as warp_idx,
)
from tilewright.lang.device.vector_casts import (
    cvt_f32x2_bf16x2 as cvt_f32x2_bf16x2, cvt_i4_bf16_intrinsic as cvt_i4_bf16_intrinsic, cvt_i8_bf16 as cvt_i8_bf16,
    cvt_i8_bf16_intrinsic as cvt_i8_bf16_intrinsic, cvt_i8x2_to_bf16x2 as cvt_i8x2_to_bf16x2,
    cvt_i8x2_to_f32x2 as cvt_i8x2_to_f32x2, cvt_i8x4_to_bf16x4 as cvt_i8x4_to_bf16x4,
    cvt_i8x4_to_f32x4 as cvt_i8x4_to_f32x4,
)
from tilewright.lang.device.warps import (
    elect_one as elect_one, make_warp_uniform as make_warp_uniform, shuffle_sync as shuffle_sync,
    shuffle_sync_bfly as shuffle_sync_bfly, shuffle_sync_down as shuffle_sync_down,
    shuffle_sync_op as shuffle_sync_op, shuffle_sync_up as shuffle_sync_up, vote_all_sync as vote_all_sync,
    vote_any_sync as vote_any_sync, vote_ballot_sync as vote_ballot_sync, vote_uni_sync as vote_uni_sync,
    warp_reduction as warp_reduction, warp_reduction_max as warp_reduction_max,
    warp_reduction_sum as warp_reduction_sum, warp_redux_sync as warp_redux_sync,
)
from tilewright.lang.tensors.math import exp as exp, exp2 as exp2, fma as fma, log2 as log2
from tilewright.lang.tensors.pointer import AddressSpace as AddressSpace
