# Made by `python tools/stubs.py` from tilewright/experimental/task_scheduling/__init__.py; do not edit.
"""``cutlass.experimental.task_scheduling``: enumerations; tasks and their resources are not here yet."""

from tilewright.experimental.task_scheduling import enums as enums
from tilewright.experimental.task_scheduling import memory as memory
from tilewright.experimental.task_scheduling import resources as resources
from tilewright.experimental.task_scheduling import schedule_builder as schedule_builder
from tilewright.experimental.task_scheduling import task as task
from tilewright.experimental.task_scheduling import task_manager as task_manager
