# Made by `python tools/stubs.py` from tilewright/utils/static_persistent_tile_scheduler.py; do not edit.
"""``cutlass.utils.static_persistent_tile_scheduler``: the older module of what ``cutlass.utils`` has for tiles."""

from tilewright.utils.tile_scheduler import PersistentTileSchedulerParams as PersistentTileSchedulerParams
from tilewright.utils.tile_scheduler import StaticPersistentTileScheduler as StaticPersistentTileScheduler
from tilewright.utils.tile_scheduler import WorkTileInfo as WorkTileInfo
