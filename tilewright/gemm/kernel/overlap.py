"""Kernels of the library that follow each other in a stream overlap: programmatic dependent launch.

Such a kernel is launched with ``use_pdl=True``. Its blocks take their places, set up their mbarriers and fetch their
tensor maps while the last blocks of the kernel before still run: 0.8 us of a product, which may take 3. It is safe
whatever the kernel before is: one of the library lets the next begin only by :func:`let_next_begin`, others end first.
"""

from __future__ import annotations

from tilewright.atoms.dependents import GridDependency
from tilewright.ir.target import LEAST_CAPABILITY
from tilewright.lang.device.calls import call


def wait_for_earlier() -> None:
    """Wait until the kernels before this one have ended, and see what they wrote.

    To be called by all threads before the first access to global memory, also before writes: the kernel before may
    read what this one writes. On GPUs without such launches it does nothing.
    """
    call(GridDependency("wait", LEAST_CAPABILITY))


def let_next_begin() -> None:
    """The next kernel may take multiprocessors as this one's blocks leave them; one thread of each block says so."""
    call(GridDependency("launch_dependents", LEAST_CAPABILITY))


def wait_then_let_next_begin() -> None:
    """Wait for the kernels before, and let the next one begin at once: for kernels of many short blocks."""
    wait_for_earlier()
    let_next_begin()
