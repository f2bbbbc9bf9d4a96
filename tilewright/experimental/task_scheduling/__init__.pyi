"""``cutlass.experimental.task_scheduling``: warp-specialised kernels as tasks with schedules that are checked."""

from tilewright.experimental.task_scheduling.enums import WorkAttr as WorkAttr
from tilewright.experimental.task_scheduling.schedule_builder import (
    domain_loop as domain_loop, schedule as schedule, when_false as when_false, when_true as when_true,
    work_tile_loop as work_tile_loop,
)
from tilewright.experimental.task_scheduling.work import consumer_work as consumer_work, producer_work as producer_work
