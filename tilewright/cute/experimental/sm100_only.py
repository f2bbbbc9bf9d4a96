"""Pipelines, copies and MMAs of ``cute.experimental`` that are made for tcgen05, which are not here yet."""

from tilewright import stand_ins

__getattr__, __all__ = stand_ins.names(
    __name__,
    "OperationTypeEnum(SM100_COPY_T2R,SM100_MMA_1SM_SS,SM100_MMA_2SM_SS,SM100_TMA_LOAD_2SM,SM100_TMA_LOAD_2SM_MULTICAST,"
    "SM90_TMA_LOAD,SM90_TMA_LOAD_MULTICAST) TMAStorePipeline TMAToUMMAPipeline(create,create_with_mask) "
    "UMMAtoAsyncPipeline(create) dot dot_block_scaled epilogue_tma_store get_cta_v_map_ab get_cta_v_map_c get_mbarrier "
    "mainloop_mma make_t2r_rmem_layout make_tmem_layout_acc partition_and_copy pipeline_advance_iterator tma_load "
    "tma_load_multicast tma_store",
    public="cute.experimental",
    why="it belongs to the experimental kernels for sm_100. Use cute.nvgpu.cpasync (TMA), cutlass.pipeline and wgmma "
    "(cute.nvgpu.warpgroup, sm_90a)",
)
