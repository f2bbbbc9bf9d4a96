"""``task_scheduling.schedule_builder``: schedules as functions, which are not here yet."""

from tilewright import stand_ins

__getattr__, __all__ = stand_ins.names(
    __name__,
    "domain_loop schedule work_tile_loop",
    why=stand_ins.EXPERIMENTAL,
)
