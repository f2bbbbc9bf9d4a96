"""Instructions: operands as :class:`~tilewright.ir.instruction.Lanes` promises them, the action, and the wait that
may follow."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir.core import Op
from tilewright.ir.types import PtrType, VecType
from tilewright.sim.barriers import ENDS
from tilewright.sim.program import BLOCKED, DONE, Closure
from tilewright.sim.values import TypedPointer


def _operands(op: Op, operands: list[int]) -> Any:
    """``f(group, slots)`` that gives the operand list of one call, whose registers are ``operands``."""
    pointers = [(k, v.type.elem, v.type.align) for k, v in enumerate(op.operands) if isinstance(v.type, PtrType)]
    vectors = [(k, v.type.n) for k, v in enumerate(op.operands) if isinstance(v.type, VecType)]

    def gather(group: Any, slots: list[Any]) -> list[Any]:
        values = [slots[i] for i in operands]
        for k, elem, align in pointers:
            values[k] = TypedPointer(values[k], elem, align)
        for k, n in vectors:
            if values[k].ndim == 1:
                values[k] = np.broadcast_to(values[k], (group.lanes_count, n))
        return values

    return gather


def _put_results(op: Op, results: list[int]) -> Any:
    """``f(slots, found)`` that puts what a call gave into the registers of its results."""
    pointers = {k for k, r in enumerate(op.results) if isinstance(r.type, PtrType)}

    def plain(slots: list[Any], values: Any) -> None:
        for r, v in zip(results, values, strict=True):
            slots[r] = v

    def with_pointers(slots: list[Any], values: Any) -> None:
        for k, (r, v) in enumerate(zip(results, values, strict=True)):
            slots[r] = v.pointer if k in pointers else v

    return with_pointers if pointers else plain


def _orders(op: Op) -> bool:
    """Whether the call orders memory and has no event of its own (as barriers have): fences, groups, sync_warp."""
    return any(order.through in ("", "warp", "group") for order in op.attrs["atom"].orders)


def plain_call(op: Op, operands: list[int], results: list[int]) -> Closure:
    gather, simulate, put = _operands(op, operands), op.attrs["atom"].simulate, _put_results(op, results)
    notifies = _orders(op)

    def run(group: Any, slots: list[Any]) -> None:
        lanes = group.lanes
        lanes.mask, lanes.op = group.mask, op
        put(slots, simulate(lanes, op, gather(group, slots)))
        if notifies and group.events is not None:
            group.events.ordered(group, op)

    return run


def blocking_call(op: Op, operands: list[int], results: list[int], following: int) -> Closure:
    gather, simulate, put = _operands(op, operands), op.attrs["atom"].simulate, _put_results(op, results)
    notifies = _orders(op)

    def control(group: Any, slots: list[Any]) -> int:
        lanes = group.lanes
        lanes.mask, lanes.op, lanes.request = group.mask, op, None
        put(slots, simulate(lanes, op, gather(group, slots)))
        if notifies and group.events is not None:
            group.events.ordered(group, op)
        wait = lanes.request
        if wait is None:
            return following
        if wait is ENDS:
            return DONE
        # The group goes on behind the call once the condition holds; what it waits for is in the report of a deadlock.
        group.pc, group.wait, group.last = following, wait, op
        if not group.still:
            group.wave.launch.note_progress()
        if group.events is not None:
            group.events.waits(group)
        # Often it holds already: then the group need not go through the schedule.
        if wait.ready().all():
            group.wait = None
            if group.events is not None:
                group.events.resumes(group, wait)
            return following
        return BLOCKED

    return control
