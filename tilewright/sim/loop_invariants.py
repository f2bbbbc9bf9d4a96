"""Arithmetic inside a loop on values from outside of it: what the first iteration has computed is kept.

A kernel computes some offsets again in each iteration, beside their use, which saves a register. Equal offsets in a new
array are new to the simulator: their range, their alignment and the costs of accesses through them would be found out
again (:mod:`.offsets`). Arrays of scalar registers are never written to, so the same operands mean the same result.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import is_
from typing import Any

from tilewright.ir.arithmetic import DIVISIONS, TABLE
from tilewright.ir.core import Constant, Function, Op, Value
from tilewright.ir.types import ScalarType
from tilewright.sim.program import Closure

LOOPS = ("for", "while")


def invariant_ops(function: Function) -> set[int]:
    """The ids of such ops. Divisions are left out: they look at the active lanes."""
    invariant: set[int] = set()
    for loop in function.walk():
        if loop.opcode in LOOPS:
            inside = set(_values(loop))
            for op in loop.walk():
                if _computes_scalars(op) and inside.isdisjoint(op.operands):
                    invariant.add(id(op))
                    inside.discard(op.result)
    return invariant


def _values(loop: Op) -> Iterator[Value]:
    """What is defined inside a loop."""
    for op in loop.walk():
        if op is not loop:
            yield from op.results
        for region in op.regions:
            yield from region.args


def _computes_scalars(op: Op) -> bool:
    if op.opcode not in TABLE or op.opcode in DIVISIONS or not isinstance(op.result.type, ScalarType):
        return False
    return not all(isinstance(value, Constant) for value in op.operands)


def kept(plain: Closure, operands: list[int], result: int, memo: int) -> Closure:
    """The step of an op whose plain step is ``plain``. ``memo``: a register for the operands and the result of the last
    time; a group that parts or merges has none."""

    def run(group: Any, slots: list[Any]) -> None:
        remembered, values = slots[memo], [slots[o] for o in operands]
        if remembered is not None and all(map(is_, remembered[0], values)):
            slots[result] = remembered[1]
            return
        plain(group, slots)
        slots[memo] = values, slots[result]

    return run
