"""The verifier: every op obeys its rule, every value is defined once, before it is used, in a scope around the use."""

from __future__ import annotations

from typing import NoReturn

from tilewright.errors import StagingError, VerifyError
from tilewright.ir.arithmetic import DIVISIONS
from tilewright.ir.core import Block, Constant, Function, Op, Value
from tilewright.ir.ops import RULES, TERMINATORS, check_form
from tilewright.ir.types import element_of


def verify(function: Function) -> None:
    """Raise VerifyError (with the user's line) unless ``function`` is well formed."""
    _Verifier(function).block(function.body, set())


class _Verifier:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.defined: set[Value] = set()

    def block(self, block: Block, outer: set[Value]) -> None:
        self.define(block.args, "a block", None)
        visible = outer | set(block.args)
        for position, op in enumerate(block.ops):
            self.op(op, visible)
            if op.opcode in TERMINATORS and position != len(block.ops) - 1:
                self.fail(op.opcode, "must be the last op of its block", op)
            self.define(op.results, op.opcode, op)
            visible.update(op.results)

    def op(self, op: Op, visible: set[Value]) -> None:
        for operand in op.operands:
            if not isinstance(operand, Constant) and operand not in visible:
                self.fail(op.opcode, f"uses {operand!r} outside its scope", op)
        if op.opcode not in RULES:
            self.fail(repr(op.opcode), "is an unknown op", op)
        if op.opcode == "launch" and self.function.kind != "host":
            self.fail(op.opcode, "is in a kernel; only host functions launch", op)
        check_form(op)
        if op.opcode in DIVISIONS and isinstance(op.operands[1], Constant) and not op.operands[1].value:
            kind = element_of(op.operands[1].type)
            if not kind.is_float:
                raise StagingError(f"{op.loc or self.function.name}: {kind} division by zero")
        for region in op.regions:
            self.block(region, visible)
        RULES[op.opcode](op)

    def define(self, values: list[Value], by: str, op: Op | None) -> None:
        for value in values:
            if isinstance(value, Constant) or value in self.defined:
                self.fail(by, f"defines {value!r} again", op)
            if value.op is not op:
                self.fail(by, f"defines {value!r}, which names another op", op)
            self.defined.add(value)

    def fail(self, subject: str, text: str, op: Op | None) -> NoReturn:
        where = f" at {op.loc}" if op is not None and op.loc else ""
        raise VerifyError(f"{self.function.name}: {subject} {text}{where}")
