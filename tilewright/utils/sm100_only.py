"""Tensor memory and cluster launch control, which are not here yet."""

from tilewright import stand_ins

__getattr__, __all__ = stand_ins.names(
    __name__,
    "ClcDynamicPersistentTileScheduler ClcDynamicPersistentTileSchedulerParams TmemAllocator get_num_tmem_alloc_cols",
    public="utils",
)
