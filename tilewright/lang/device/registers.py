"""Registers that warpgroups pass to each other, and kernels that overlap with the next one (sm_90)."""

from __future__ import annotations

import math
from typing import Any

from tilewright.atoms.dependents import GridDependency
from tilewright.atoms.registers import SetMaxRegisters
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.target import WARPGROUP
from tilewright.lang.device.calls import call


def setmaxregister_increase(reg_count: int, *, loc: Any = None, ip: Any = None) -> None:
    """Give each thread of this warpgroup ``reg_count`` registers (a multiple of 8 up to 256), and wait until the
    other warpgroups have given back enough.

    A block begins with 65,536 registers divided among its threads, rounded down to 8: 168 for 384 threads.

    Example::

        if warp_group == 0:                                  # fetches tiles
            cute.arch.setmaxregister_decrease(40)
        else:                                                # two warpgroups that multiply
            cute.arch.setmaxregister_increase(232)           # 40 + 2 * 232 = 3 * 168

    >>> @cute.jit
    ... def share(t):
    ...     if t < 128:
    ...         arch.setmaxregister_decrease(40)
    ...     else:
    ...         arch.setmaxregister_increase(232)
    ...     return t // 128
    >>> per_thread(share, 384)[::128]
    [0, 1, 2]
    """
    _set(reg_count, True, "setmaxregister_increase")


def setmaxregister_decrease(reg_count: int, *, loc: Any = None, ip: Any = None) -> None:
    """Keep ``reg_count`` registers (a multiple of 8 from 24) for each thread of this warpgroup and give back the
    rest.

    >>> per_thread(lambda t: (arch.setmaxregister_decrease(40), t)[1], 128)[:2]
    [0, 1]
    """
    _set(reg_count, False, "setmaxregister_decrease")


# Older names of the CuTe DSL.
warpgroup_reg_alloc = setmaxregister_increase
warpgroup_reg_dealloc = setmaxregister_decrease


def _set(count: int, increase: bool, name: str) -> None:
    block = Builder.current().block_shape
    if block is not None:
        threads = math.prod(n for n in block if n is not None)
        if None in block:
            raise ConstraintError(
                f"{name}: the compiler must know how many threads share the registers; launch with a block of Python "
                "ints"
            )
        if threads % WARPGROUP:
            raise ConstraintError(
                f"{name}: whole warpgroups of {WARPGROUP} threads change their registers, and a block of "
                f"{threads} threads is not made of them"
            )
    call(SetMaxRegisters(int(count), increase))


def griddepcontrol_wait(*, loc: Any = None, ip: Any = None) -> None:
    """Wait until the kernels that this one depends on have ended, and see what they wrote.

    Needed before the first access to their results in a kernel launched with ``use_pdl=True``; what stands before it
    overlaps with them.

    >>> per_thread(lambda t, p: (arch.griddepcontrol_wait(), arch.load(p))[1], 2, memory=[7])
    ([7, 7], [7])
    """
    call(GridDependency("wait"))


def griddepcontrol_launch_dependents(*, loc: Any = None, ip: Any = None) -> None:
    """The next kernel of the stream, if it is launched with ``use_pdl=True``, may begin once every block is here or has
    ended.

    >>> per_thread(lambda t: (arch.griddepcontrol_launch_dependents(), t)[1], 2)
    [0, 1]
    """
    call(GridDependency("launch_dependents"))
