"""Tensor memory and cluster launch control, which are not here yet."""

from tilewright import sm100

__getattr__, __all__ = sm100.names(
    __name__,
    "ClcDynamicPersistentTileScheduler ClcDynamicPersistentTileSchedulerParams TmemAllocator "
    "compute_epilogue_tile_shape get_num_tmem_alloc_cols",
    public="utils",
)
