"""``task_scheduling.task``: tasks, which are not here yet."""

from tilewright import stand_ins

__getattr__, __all__ = stand_ins.names(
    __name__,
    "Task",
    why=stand_ins.EXPERIMENTAL,
)
