"""``cutlass.experimental.task_scheduling``: enumerations; tasks and their resources are not here yet."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__, {}, ("enums", "memory", "resources", "schedule_builder", "task", "task_manager")
)
