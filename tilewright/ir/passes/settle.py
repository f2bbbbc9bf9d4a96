"""Registers that an asynchronous load fills are waited for before their first use.

A kernel copies from tensor memory and reads the registers: nothing in the text need say that the load has arrived, as
with a load from global memory. The wait is put before the first op behind the load that touches its registers, in the
block of the load or in one around it: it is for whole warps, as the load is. Where the program waits itself, none is
added.
"""

from __future__ import annotations

from tilewright.ir.core import Block, Function, Op, Value
from tilewright.ir.instruction import Instruction


def settle_registers(function: Function) -> None:
    """Add the waits that are missing."""
    if any(_wait_of(op) is not None for op in function.walk()):
        _settle(function.body, {})


def _settle(block: Block, pending: dict[Value, Instruction]) -> dict[Value, Instruction]:
    """Add them to a block at whose beginning the registers ``pending`` are on their way, each with the wait for it;
    gives those that are at its end."""
    at = 0
    while at < len(block.ops):
        op = block.ops[at]
        wait = _wait_of(op)
        if op.opcode == "call" and op.attrs["atom"] in pending.values():
            pending = {value: other for value, other in pending.items() if other != op.attrs["atom"]}
        elif wait is not None:
            pending = {**pending, op.operands[0]: wait}
        elif used := [pending[v] for v in _touched(op) if v in pending]:
            for missing in dict.fromkeys(used):
                block.ops.insert(at, Op("call", [], [], {"atom": missing.implied()}, [], op.loc))
                pending = {value: other for value, other in pending.items() if other != missing}
                at += 1
        for _ in range(2 if op.opcode in ("for", "while") else 1):  # what a turn leaves, the next one meets
            ends = [_settle(region, pending) for region in op.regions]
            for end in ends:
                pending = {**pending, **end}
        at += 1
    return pending


def _wait_of(op: Op) -> Instruction | None:
    return op.attrs["atom"].settled_by() if op.opcode == "call" else None


def _touched(op: Op) -> set[Value]:
    return {value for inner in op.walk() for value in inner.operands}
