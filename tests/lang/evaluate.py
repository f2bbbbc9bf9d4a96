"""A few lines that evaluate straight-line integer IR on numbers: the oracle of the tests of facts and addresses."""

from __future__ import annotations

import operator
from typing import Any

from tilewright.ir.arithmetic import normalise
from tilewright.ir.core import Block, Constant, Value
from tilewright.ir.types import element_of

OPS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "floordiv": operator.floordiv,
    "floormod": operator.mod,
    "min": min,
    "max": max,
    "div": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "rem": lambda a, b: a - b * (abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)),
    "neg": operator.neg,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}


def evaluate(block: Block, inputs: dict[Value, int]) -> dict[Value, Any]:
    """The value of every result in ``block``; pointers are byte addresses, loads give their own address."""
    known: dict[Value, Any] = dict(inputs)

    def of(value: Value) -> Any:
        return value.value if isinstance(value, Constant) else known[value]

    for op in block.ops:
        if op.opcode == "ptr.add":
            known[op.result] = of(op.operands[0]) + of(op.operands[1]) * element_of(op.result.type).bytes
        elif op.opcode == "smem.alloc":
            known[op.result] = op.attrs["offset"]
        elif op.opcode in ("cast", "ptr.cast", "load"):
            known[op.result] = of(op.operands[0])
        elif op.opcode in OPS:
            found, kind = OPS[op.opcode](*map(of, op.operands)), element_of(op.result.type)
            known[op.result] = normalise(kind, found)
        elif op.opcode not in ("sreg", "store", "vec.concat", "vec.shuffle", "vec.extract"):
            raise NotImplementedError(op.opcode)
    return known
