"""``task_scheduling.resources``: what tasks share, and the pipelines between them, which are not here yet."""

from tilewright import stand_ins
from tilewright.experimental.task_scheduling.enums import WorkAttr as WorkAttr

__getattr__, __all__ = stand_ins.names(
    __name__,
    "MemoryResource PdlLaunchBarrier PdlWaitBarrier "
    "PipelineConfig(create_async_async_pipeline_cfg,create_async_umma_pipeline_cfg,create_clc_fetch_async_pipeline_cfg,"
    "create_tma_async_pipeline_cfg,create_tma_umma_pipeline_cfg,create_umma_async_pipeline_cfg) "
    "PipelineGroup StageInfo TaskLocalVariable(uninitialized) "
    "TileSchedulerConfig(create_clc_dynamic_persistent_tile_scheduler_params,"
    "create_static_persistent_tile_scheduler_params) "
    "WorkQueue consumer_work producer_work",
    ("WorkAttr",),
    why="it belongs to the experimental modules of the CuTe DSL. Use the classes of cutlass.pipeline, and "
    "utils.StaticPersistentTileScheduler",
)
