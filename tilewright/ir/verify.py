"""The verifier: every op obeys its rule, every value is defined before it is used, in a scope that encloses the use."""

from __future__ import annotations

from tilewright.errors import VerifyError
from tilewright.ir.core import Block, Constant, Function, Op, Value
from tilewright.ir.ops import RULES, TERMINATORS


def verify(function: Function) -> None:
    """Raise VerifyError (with the user's line) unless ``function`` is well formed."""
    _block(function.body, set(), function.name)


def _block(block: Block, outer: set[Value], name: str) -> None:
    visible = outer | set(block.args)
    for position, op in enumerate(block.ops):
        _op(op, visible, name)
        if op.opcode in TERMINATORS and position != len(block.ops) - 1:
            raise VerifyError(f"{name}: {op.opcode} must be the last op of its block{_at(op)}")
        visible.update(op.results)


def _op(op: Op, visible: set[Value], name: str) -> None:
    for operand in op.operands:
        if not isinstance(operand, Constant) and operand not in visible:
            raise VerifyError(f"{name}: {op.opcode} uses {operand!r} outside its scope{_at(op)}")
    for region in op.regions:
        _block(region, visible, name)
    check = RULES.get(op.opcode)
    if check is None:
        raise VerifyError(f"{name}: unknown op {op.opcode!r}{_at(op)}")
    check(op)


def _at(op: Op) -> str:
    return f" at {op.loc}" if op.loc else ""
