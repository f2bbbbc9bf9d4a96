"""The queue of tiles of a persistent kernel."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ConstraintError
from tilewright.experimental.task_scheduling.enums import TileSchedulerType, WorkAttr
from tilewright.experimental.task_scheduling.resource import MemoryResource, StageInfo
from tilewright.experimental.task_scheduling.work import consumer_work, producer_work
from tilewright.lang.device.threads import block_idx, grid_dim
from tilewright.utils.clc_tile_scheduler import (
    ClcDynamicPersistentTileScheduler,
    ClcDynamicPersistentTileSchedulerParams,
)
from tilewright.utils.tile_scheduler import PersistentTileSchedulerParams, StaticPersistentTileScheduler


class TileSchedulerConfig:
    """A tile scheduler and its parameters, made by one of the ``create_..._params``. ``tile_scheduler_params``:
    those of ``utils.PersistentTileSchedulerParams``, or of cluster launch control; ``response_ptr``: where its answers
    are written, 16 bytes of shared memory for each stage of the queue.

    >>> config = TileSchedulerConfig.create_static_persistent_tile_scheduler_params((4, 2, 1), (1, 1, 1))
    >>> config.tile_scheduler_type.name, config.tile_scheduler_params.get_grid_shape(3)
    ('StaticPersistent', (1, 1, 3))
    """

    def __init__(
        self, tile_scheduler_type: TileSchedulerType, tile_scheduler_params: Any, response_ptr: Any = None
    ) -> None:
        self.tile_scheduler_type, self.tile_scheduler_params = tile_scheduler_type, tile_scheduler_params
        self.response_ptr = response_ptr

    @staticmethod
    def create_static_persistent_tile_scheduler_params(
        tile_scheduler_params: Any, *more: Any, **options: Any
    ) -> TileSchedulerConfig:
        """Tiles dealt out in advance. ``tile_scheduler_params``: a ``PersistentTileSchedulerParams``, or what makes
        one."""
        made, params = PersistentTileSchedulerParams, tile_scheduler_params
        return TileSchedulerConfig(
            TileSchedulerType.StaticPersistent, params if isinstance(params, made) else made(params, *more, **options)
        )

    @staticmethod
    def create_clc_dynamic_persistent_tile_scheduler_params(
        tile_scheduler_params: Any, *more: Any, response_ptr: Any = None, clc_response_ptr: Any = None, **options: Any
    ) -> TileSchedulerConfig:
        """Tiles by cluster launch control. ``tile_scheduler_params``: a ``ClcDynamicPersistentTileSchedulerParams``, or
        what makes one; ``response_ptr`` (also ``clc_response_ptr``): where the answers are put in shared memory."""
        made, params = ClcDynamicPersistentTileSchedulerParams, tile_scheduler_params
        params = params if isinstance(params, made) else made(params, *more, **options)
        answers = clc_response_ptr if response_ptr is None else response_ptr
        return TileSchedulerConfig(TileSchedulerType.ClcDynamicPersistent, params, answers)

    def make(self) -> Any:
        """The scheduler of this block."""
        if self.tile_scheduler_type is TileSchedulerType.StaticPersistent:
            return StaticPersistentTileScheduler.create(self.tile_scheduler_params, block_idx(), grid_dim())
        if self.response_ptr is None:
            raise ConstraintError("TileSchedulerConfig: response_ptr= is where cluster launch control answers")
        place = getattr(self.response_ptr, "place", self.response_ptr)
        return ClcDynamicPersistentTileScheduler.create(self.tile_scheduler_params, block_idx(), grid_dim(), place)


class WorkQueue(MemoryResource):
    """The tiles that this block works on. Each task has a place of its own in the queue, and ends the work on a tile
    with ``try_wait``, ``wait``, ``get_and_advance_work_tile`` and ``release``. With cluster launch control the queue
    has a pipeline, whose producer, one task, does ``try_acquire``, ``acquire``, ``fetch_work_tile`` and ``commit``."""

    def __init__(
        self, *, name: str = "", tile_scheduler_config: TileSchedulerConfig, pipeline_config: Any = None
    ) -> None:
        super().__init__(name=name, pipeline_config=pipeline_config)
        self.tile_scheduler_config = tile_scheduler_config
        self.scheduler: Any = None  # this task's
        self._answers: Any = None

    def first_tile(self) -> Any:
        """The tile that this task begins with; its scheduler begins, too."""
        self.scheduler = self.tile_scheduler_config.make()
        self._answers = getattr(self.scheduler, "clc_response_ptr", None)
        return self.scheduler.initial_work_tile_info()

    def _answer_of(self, stage_info: StageInfo) -> None:
        """Each stage has its own answer, of four Int32."""
        if self._answers is not None:
            self.scheduler.clc_response_ptr = self._answers + 4 * stage_info.stage_idx

    @consumer_work(work_attrs=WorkAttr.AUXILIARY)
    def get_and_advance_work_tile(self, stage_info: StageInfo) -> Any:
        """Go on to the next tile."""
        self._answer_of(stage_info)
        if self._answers is None:
            self.scheduler.advance_to_next_work()
        return self.scheduler.get_current_work()

    @producer_work
    def fetch_work_tile(self, stage_info: StageInfo) -> None:
        """Ask for the next tile."""
        self._answer_of(stage_info)
        self.scheduler.advance_to_next_work(stage_info.barrier)
