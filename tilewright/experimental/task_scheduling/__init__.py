"""``cutlass.experimental.task_scheduling``: warp-specialised kernels as tasks with schedules that are checked.

A *resource* is a piece of memory with the methods that fill it and read it, and usually a pipeline; a *schedule*
records in which order one *task*, a range of warps, calls them; the *task manager* checks all schedules together while
the kernel is staged, and makes the kernel's code of them. Nothing of it is left at run time.
"""

from tilewright._names import attach

attach(__name__)
