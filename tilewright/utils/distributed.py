"""``cutlass.utils.distributed``: counters in memory by which blocks, of one kernel or of several, wait for each other.
They are numbers of 32 bits, 0 before the first arrival.

A block arrives with ``order="release"`` behind its stores (and a barrier of its threads); another waits with one
thread, then a barrier of its own. ``..._acquire_wait`` orders what follows behind what the arrivals released;
``..._relaxed_wait`` orders nothing: a fence (``cute.arch.fence_acq_rel_gpu``) has to follow. The blocks that a wait
needs must be resident with it.

The functions on memory that several GPUs map at once (``multimem_...``) are not here.
"""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
from tilewright import cute
from tilewright._names import attach

__all__ = [
    "red_add1",
    "spin_lock_atom_cas_acquire_wait",
    "spin_lock_atom_cas_relaxed_wait",
    "spin_lock_ld_lt_relaxed_wait",
]


def red_add1(lock_ptr: Any, *, scope: str, order: str, loc: Any = None, ip: Any = None) -> None:
    """Add 1 to a counter. ``order``: "relaxed" or "release"; ``scope``: "gpu", or "sys" for other GPUs and the host.

    >>> per_thread(lambda t, p: cutlass.utils.distributed.red_add1(p, scope="gpu", order="release"), 5, memory=[0])[1]
    [5]
    """
    cute.arch.red(lock_ptr, 1, op="add", dtype=cutlass.Int32, sem=order, scope=scope)


def spin_lock_atom_cas_acquire_wait(
    lock_ptr: Any, *, expected_val: Any, reset_val: Any, scope: str, loc: Any = None, ip: Any = None
) -> None:
    """Wait until a counter is ``expected_val``, and set it to ``reset_val`` in the same step (acquire).

    >>> @cute.jit
    ... def second_after_first(t, p):
    ...     if t == 0:
    ...         cutlass.utils.distributed.red_add1(p, scope="gpu", order="release")
    ...     else:
    ...         cutlass.utils.distributed.spin_lock_atom_cas_acquire_wait(p, expected_val=1, reset_val=7, scope="gpu")
    ...     return t
    >>> per_thread(second_after_first, 2, memory=[0])
    ([0, 1], [7])
    """
    _wait_and_reset(lock_ptr, expected_val, reset_val, "acquire", scope)


def spin_lock_atom_cas_relaxed_wait(
    lock_ptr: Any, *, expected_val: Any, reset_val: Any, scope: str, loc: Any = None, ip: Any = None
) -> None:
    """As :func:`spin_lock_atom_cas_acquire_wait`, but nothing is ordered behind it."""
    _wait_and_reset(lock_ptr, expected_val, reset_val, "relaxed", scope)


@cute.jit
def _wait_and_reset(lock_ptr: Any, expected: Any, reset: Any, sem: cutlass.Constexpr, scope: cutlass.Constexpr) -> None:
    expected, reset = cutlass.Int32(expected), cutlass.Int32(reset)
    waits = cutlass.Boolean(True)
    while waits:
        found = cute.arch.atomic_cas(lock_ptr, cmp=expected, val=reset, sem=sem, scope=scope)
        waits = found != expected


@cute.jit
def spin_lock_ld_lt_relaxed_wait(
    lock_ptr: Any, *, expected_val: Any, scope: cutlass.Constexpr, loc: Any = None, ip: Any = None
) -> None:
    """Wait as long as a counter is less than ``expected_val``; it keeps its value. Nothing is ordered behind it."""
    waits = cutlass.Boolean(True)
    while waits:
        waits = cute.arch.load(lock_ptr, cutlass.Int32, sem="relaxed", scope=scope) < expected_val


attach(__name__)
