"""``cutlass.utils.static_persistent_tile_scheduler``: the older module of what ``cutlass.utils`` has for tiles."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {"tilewright.utils.tile_scheduler": "PersistentTileSchedulerParams StaticPersistentTileScheduler WorkTileInfo"},
)
