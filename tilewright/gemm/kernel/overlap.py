"""Kernels of the library that follow each other in a stream overlap: programmatic dependent launch.

Such a kernel is launched with ``use_pdl=True``. Its blocks take their places, set up their mbarriers and fetch their
tensor maps while the blocks of the kernel before still run; on small products this is a third of the time. It is safe
whatever the kernel before is: one of the library lets the next begin only by :func:`follow`, others end first.
"""

from __future__ import annotations

from tilewright.atoms.dependents import GridDependency
from tilewright.ir.target import LEAST_CAPABILITY
from tilewright.lang.device.calls import call


def follow() -> None:
    """Wait until the kernels before this one have ended and what they wrote is seen; then let the next one begin.

    To be called by all threads before the first access to global memory, also before writes: the kernel before may
    read what this one writes. On GPUs without such launches it is nothing.
    """
    call(GridDependency("wait", LEAST_CAPABILITY))
    call(GridDependency("launch_dependents", LEAST_CAPABILITY))
