"""``cute.arch.smem``: the older module of what ``cute.arch`` has for shared memory."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.lang.device.smem": "alloc_smem get_dyn_smem get_dyn_smem_size",
        "tilewright.lang.device.clusters": "map_dsmem_ptr",
    },
)
