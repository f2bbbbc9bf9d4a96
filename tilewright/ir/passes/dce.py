"""Dead code elimination: ops without effects whose results nobody reads, and fragments that are never read."""

from __future__ import annotations

from tilewright.ir.core import Block, Function, Op, Value
from tilewright.ir.ops import PURE

UNREAD_IS_DEAD = PURE | {"sreg", "load", "frag.load", "frag.alloc"}


def eliminate_dead_code(function: Function) -> None:
    used: set[Value] = set()
    _sweep(function.body, used)


def _sweep(block: Block, used: set[Value]) -> None:
    kept: list[Op] = []
    for op in reversed(block.ops):
        if _is_dead(op, used):
            continue
        for region in reversed(op.regions):
            _sweep(region, used)
        used.update(op.operands)
        kept.append(op)
    block.ops[:] = reversed(kept)


def _is_dead(op: Op, used: set[Value]) -> bool:
    removable = op.opcode in UNREAD_IS_DEAD or (op.opcode == "call" and op.attrs["atom"].pure)
    return removable and not any(result in used for result in op.results)
