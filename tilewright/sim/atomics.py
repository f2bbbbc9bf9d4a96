"""Atomic read-modify-write, lane after lane, vectorised over lanes that hit different places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tilewright.ir.arithmetic import on_lanes
from tilewright.sim.access import VectorAccess
from tilewright.sim.memory import AbsoluteMemory, Buffer, Mask

AT: dict[str, np.ufunc] = {"add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def step(kind: str, access: VectorAccess) -> Callable[[Any, Any, Any], Any]:
    """``f(old, value, compare)``: what the place holds after one lane's operation."""
    if kind == "exch":
        return lambda old, value, compare: value
    if kind == "cas":
        bits = np.dtype(f"u{access.dtype.itemsize}")  # a NaN equals itself, and 0.0 is not -0.0
        return lambda old, value, compare: np.where(old.view(bits) == compare.view(bits), value, old)
    if kind == "inc":
        return lambda old, value, compare: np.where(old >= value, old - old, old + 1)
    if kind == "dec":
        return lambda old, value, compare: np.where((old == 0) | (old > value), value, old - 1)
    combine = on_lanes(kind, access.elem)
    return lambda old, value, compare: combine(old, value)


class AtomicUpdate(NamedTuple):
    """What lanes do, one element each: ``value`` (and ``compare``, of ``cas``) are ``[L]``."""

    kind: str
    access: VectorAccess
    value: np.ndarray
    compare: Any
    want_old: bool


def atomic(buffer: Buffer, group: Any, off: np.ndarray, update: AtomicUpdate, mask: Mask) -> np.ndarray | None:
    """Update the elements at ``off [L]``; gives the old values ``[L]``, or None where no lane reads them."""
    kind, access, value, compare, want_old = update
    if isinstance(buffer, AbsoluteMemory):
        return _anywhere(buffer, group, off, update, mask)
    where = np.arange(off.shape[0]) if mask is None else np.flatnonzero(mask)
    old = np.zeros(off.shape, access.dtype)
    if not where.size:
        return old
    index = buffer._many(group, off[where], access, "atomic", mask)
    # Only the array's own bytes. Those from the buffer's base to ``low`` are other objects' of this process: where an
    # operand of ufunc.at is among them, NumPy works on a copy of all of ``memory`` and writes all of it back.
    first = -(-buffer.low >> access.shift)
    memory, index = buffer.views[access.shift][first:].view(access.dtype), index - first
    value = value[where]
    compare = None if compare is None else np.ascontiguousarray(compare[where])
    # No lane asks for the old value: ufunc.at updates lane after lane, as the rounds below do, in one call.
    if not want_old and kind in AT and access.elem.name in ("i32", "u32", "i64", "u64", "f32", "f64"):
        AT[kind].at(memory, index, value)
        group.changed = True
        return None
    combine = step(kind, access)
    for lanes in rounds(index):
        place = index[lanes]
        before = memory[place]
        old[where[lanes]] = before
        memory[place] = after = combine(before, value[lanes], None if compare is None else compare[lanes])
        group.changed = group.changed or before.tobytes() != after.tobytes()
    return old


def _anywhere(buffer: AbsoluteMemory, group: Any, off: np.ndarray, update: AtomicUpdate, mask: Mask) -> np.ndarray:
    """The same through absolute addresses, array by array."""
    old = np.zeros(off.shape, update.access.dtype)
    for real, shift, lanes in buffer.resolve(group, off, update.access, "atomic", mask):
        old_here = atomic(real, group, off - shift, update, lanes)
        if old_here is not None:
            old[lanes] = old_here[lanes]
    return old


def rounds(index: np.ndarray) -> list[Any]:
    """Lanes in sets that touch every place at most once; lanes at one place come in lane order."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    fresh = np.empty(ordered.shape, bool)
    fresh[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    if fresh.all():
        return [slice(None)]
    # The rank of a lane among those at its place: the lanes of one rank make one round.
    start = np.maximum.accumulate(np.where(fresh, np.arange(fresh.size), 0))
    rank = np.arange(fresh.size) - start
    by_rank = np.argsort(rank, kind="stable")
    edges = np.searchsorted(rank[by_rank], np.arange(int(rank.max()) + 2))
    return [np.sort(order[by_rank[a:b]]) for a, b in zip(edges[:-1], edges[1:], strict=True)]
