"""Where signed arithmetic is printed so that it wraps around.

C++ leaves an overflow of signed integers undefined, and its compilers use that: with ``i`` and ``n`` not negative,
``i * n < 0`` is false whatever the bits say. An op that may overflow has the attribute ``wraps`` and is printed in
unsigned arithmetic. The exception is an index: what only becomes an address is assumed to fit, as an element that is
accessed is inside its tensor, and the compiler may then add its parts in 64 bits and put constants into immediate
offsets.
"""

from __future__ import annotations

from tilewright.ir.core import Function, Op, Value
from tilewright.ir.types import element_of

_INDEX = {"ptr.add": 1, "frag.load": 1, "frag.store": 2}
"""The place of the index among the operands."""
_HANDS_ON = frozenset(("add", "sub", "mul", "neg"))


def wrapping_results(function: Function) -> set[Value]:
    """The results that are printed in a form that wraps around."""
    ops = list(function.walk())
    reaching: set[Value] = set()
    # Backwards: the uses of a result are visited before the op that computes it.
    for op in reversed(ops):
        for place, operand in enumerate(op.operands):
            if not _becomes_address(op, place, reaching):
                reaching.add(operand)
    return {r for op in ops if op.attrs.get("wraps") for r in op.results if r in reaching or op.opcode not in _HANDS_ON}


def _becomes_address(op: Op, place: int, reaching: set[Value]) -> bool:
    """Whether the operand at ``place`` of ``op`` becomes a part of an address and nothing else."""
    if op.opcode in _INDEX:
        return _INDEX[op.opcode] == place
    if op.opcode in _HANDS_ON:
        return op.results[0] not in reaching
    if op.opcode == "cast":
        source, to = element_of(op.operands[0].type), element_of(op.results[0].type)
        return source.is_integer and to.kind == "int" and to.width >= source.width and op.results[0] not in reaching
    return False
