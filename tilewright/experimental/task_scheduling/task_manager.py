"""``task_scheduling.task_manager``: what runs the tasks of a kernel, which is not here yet."""

from tilewright import stand_ins

__getattr__, __all__ = stand_ins.names(
    __name__,
    "TaskManager",
    why=stand_ins.EXPERIMENTAL,
)
