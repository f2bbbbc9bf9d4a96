"""Tensor memory, which is not here yet."""

from tilewright import sm100

__getattr__, __all__ = sm100.names(
    __name__,
    "alloc_tmem dealloc_tmem fence_view_async_tmem_load fence_view_async_tmem_store get_max_tmem_alloc_cols "
    "get_min_tmem_alloc_cols relinquish_tmem_alloc_permit retrieve_tmem_ptr",
    public="cute.arch",
)
