"""``cutlass.experimental.primitives``: what libraries call of it, as the instructions that they name."""

from tilewright.experimental.choices import (
    CTAGroup as CTAGroup, LoadCacheModifier as LoadCacheModifier, MBarrierScope as MBarrierScope,
    MBarrierWait as MBarrierWait, MMABlockScaleKind as MMABlockScaleKind, MMALayout as MMALayout,
    MemOrder as MemOrder, MemScope as MemScope, Proxy as Proxy, S2TCopyMode as S2TCopyMode,
    SetMaxRegisterAction as SetMaxRegisterAction, SharedSpace as SharedSpace, Shfl as Shfl,
    TMALoadMode as TMALoadMode, TMAStoreMode as TMAStoreMode, Tcgen05CpMulticast as Tcgen05CpMulticast,
    Tcgen05CpShape as Tcgen05CpShape, Tcgen05CpSrcFormat as Tcgen05CpSrcFormat, Tcgen05Fence as Tcgen05Fence, Tcgen05LdStShape as Tcgen05LdStShape,
    Tcgen05MMABlockScale as Tcgen05MMABlockScale, Tcgen05MMACollectorBBuffer as Tcgen05MMACollectorBBuffer,
    Tcgen05MMACollectorOp as Tcgen05MMACollectorOp, Tcgen05MMAKind as Tcgen05MMAKind,
    Tcgen05MMAScaleVecSize as Tcgen05MMAScaleVecSize, Tcgen05SmemSwizzle as Tcgen05SmemSwizzle,
    Tcgen05Wait as Tcgen05Wait, VoteSync as VoteSync,
)
from tilewright.experimental.copies import (
    cp_async_bulk_prefetch as cp_async_bulk_prefetch,
    cp_async_bulk_shared_cluster_shared_cta as cp_async_bulk_shared_cluster_shared_cta,
    cp_async_bulk_tensor_global_shared_cta as cp_async_bulk_tensor_global_shared_cta,
    cp_async_bulk_tensor_reduce as cp_async_bulk_tensor_reduce,
    cp_async_bulk_tensor_shared_cluster_global as cp_async_bulk_tensor_shared_cluster_global,
    cp_async_bulk_tensor_shared_cta_global as cp_async_bulk_tensor_shared_cta_global,
    cp_async_commit_group as cp_async_commit_group, cp_async_shared_global as cp_async_shared_global,
    cp_async_wait_group as cp_async_wait_group, load_ext as load_ext, prefetch_tensormap as prefetch_tensormap,
    store_ext as store_ext,
)
from tilewright.experimental.descriptors import (
    Tcgen05InstrDesc as Tcgen05InstrDesc, Tcgen05MxInstrDesc as Tcgen05MxInstrDesc,
    Tcgen05MxOmmaInstrDesc as Tcgen05MxOmmaInstrDesc, Tcgen05SmemDesc as Tcgen05SmemDesc,
)
from tilewright.experimental.matrices import (
    LoadShape as LoadShape, LoadSrcFormat as LoadSrcFormat, StoreShape as StoreShape, ldmatrix as ldmatrix,
    stmatrix as stmatrix,
)
from tilewright.experimental.mbarriers import (
    cp_async_mbarrier_arrive as cp_async_mbarrier_arrive, fence_mbarrier_init as fence_mbarrier_init,
    mbarrier_arrive as mbarrier_arrive, mbarrier_arrive_expect_tx as mbarrier_arrive_expect_tx,
    mbarrier_expect_tx as mbarrier_expect_tx, mbarrier_init as mbarrier_init, mbarrier_inval as mbarrier_inval,
    mbarrier_try_wait_parity as mbarrier_try_wait_parity, mbarrier_wait_parity as mbarrier_wait_parity,
)
from tilewright.experimental.synchronise import (
    bar_warp_sync as bar_warp_sync, barrier as barrier, barrier_cluster_arrive as barrier_cluster_arrive,
    barrier_cluster_arrive_relaxed as barrier_cluster_arrive_relaxed, barrier_cluster_wait as barrier_cluster_wait,
    barrier_cta_arrive as barrier_cta_arrive, barrier_cta_red as barrier_cta_red, barrier_cta_sync as barrier_cta_sync,
    barrier_cta_sync_aligned as barrier_cta_sync_aligned, cluster_ctarank as cluster_ctarank, elect_sync as elect_sync, exit as exit,
    fence_proxy as fence_proxy, fence_proxy_acquire as fence_proxy_acquire,
    fence_proxy_release as fence_proxy_release, fence_sync_restrict as fence_sync_restrict, mapa as mapa,
    setmaxregister as setmaxregister, shfl_sync as shfl_sync, vote_sync as vote_sync,
)
from tilewright.experimental.tcgen05 import (
    TmemAddr as TmemAddr, make_tmem_ptr as make_tmem_ptr,
    make_tmem_ptr_from_warp_row_col as make_tmem_ptr_from_warp_row_col, tcgen05_alloc as tcgen05_alloc,
    tcgen05_commit as tcgen05_commit, tcgen05_cp as tcgen05_cp, tcgen05_dealloc as tcgen05_dealloc,
    tcgen05_fence as tcgen05_fence, tcgen05_ld as tcgen05_ld, tcgen05_mma as tcgen05_mma,
    tcgen05_mma_block_scale as tcgen05_mma_block_scale, tcgen05_mma_ws as tcgen05_mma_ws,
    tcgen05_relinquish_alloc_permit as tcgen05_relinquish_alloc_permit, tcgen05_shift as tcgen05_shift,
    tcgen05_st as tcgen05_st,
    tcgen05_wait as tcgen05_wait,
)
from tilewright.experimental.tensormaps import (
    TensormapField as TensormapField, tensormap_replace as tensormap_replace,
)
from tilewright.experimental.instructions import (
    CpReduceOp as CpReduceOp, CpReduceType as CpReduceType, GridDepAction as GridDepAction, PermuteMode as PermuteMode,
    ReductionKind as ReductionKind, convert_and_pack_integer as convert_and_pack_integer,
    cp_async_bulk_global_shared_cta as cp_async_bulk_global_shared_cta,
    cp_reduce_async_bulk_global_shared_cta as cp_reduce_async_bulk_global_shared_cta,
    griddepcontrol as griddepcontrol, mov_b32 as mov_b32, prmt as prmt, redux_sync as redux_sync,
)
from tilewright._mlir.dialects.nvvm import (
    AtomicOpKind, ReductionOp as ReductionOp, ReductionType as ReductionType, atomicrmw as atomicrmw, red as red,
)
from tilewright.lang.device.bulk import (
    cp_async_bulk_commit_group as cp_async_bulk_commit_group, cp_async_bulk_wait_group as cp_async_bulk_wait_group,
)
from tilewright.lang.device.bulk_bytes import load_bytes
from tilewright.lang.tools.printing import printf

AtomicOp = AtomicOpKind
cp_async_bulk_shared_cluster_global = load_bytes
print_runtime = printf
