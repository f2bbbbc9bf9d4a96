"""The kinds of ops that single checkers look at, found once for each kernel."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from tilewright.ir.core import Constant, Op, Value
from tilewright.ir.ops import ELEMENTWISE
from tilewright.ir.types import MemSpace, PtrType, ScalarType, element_of

# By opcode: how what is read compares with a bound on its right, and on its left.
COMPARISONS = {
    "lt": (operator.lt, operator.gt),
    "gt": (operator.gt, operator.lt),
    "le": (operator.le, operator.ge),
    "ge": (operator.ge, operator.le),
    "eq": (operator.eq, operator.eq),
    "ne": (operator.ne, operator.ne),
}
OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}
SIGNED = ("add", "sub", "mul", "neg", "abs", "div", "floordiv")


def may_overflow(op: Op) -> bool:
    """Whether the op may overflow. The front marks an op by the attribute ``wraps`` where it cannot prove that the
    result has room; of divisions and ``abs`` only the least integer overflows."""
    if op.opcode == "cast":
        source, to = element_of(op.operands[0].type), element_of(op.result.type)
        return source.is_float and to.is_integer and to.kind != "bool"
    if op.opcode in ("shl", "shr"):
        return bool(op.attrs.get("wraps"))
    if op.opcode in ("abs", "div", "floordiv"):  # of the least integer: abs, and the quotient by -1
        may_be = op.opcode != "abs" and isinstance(op.operands[1], Constant) and op.operands[1].value != -1
        return is_signed(element_of(op.result.type)) and not may_be
    return op.opcode in SIGNED and bool(op.attrs.get("wraps")) and is_signed(element_of(op.result.type))


def is_signed(elem: ScalarType) -> bool:
    return elem.kind == "int" and elem.width in (32, 64)


class PollingLoop(NamedTuple):
    """A while loop that runs as long as ``holds(what it reads, bound)``, and does nothing else with what it reads.
    ``steps``: the arithmetic inside of the loop that gives the bound, possibly after the read."""

    holds: Callable[[Any, Any], Any]
    bound: Value
    steps: tuple[Op, ...] = ()


def polling_loops(ops: list[Op]) -> dict[Op, PollingLoop]:
    """The loads of such loops whose values are used only to end the loop."""
    polling = {}
    uses = Counter(operand for op in ops for operand in op.operands)
    order = {op: k for k, op in enumerate(ops)}
    for loop in ops:
        if loop.opcode != "while":
            continue
        if (comparison := _comparison(loop, uses)) is None:
            continue
        inside = {value for op in loop.walk() for value in op.results}
        for read, bound, holds in comparison:
            for op in _reads(loop, read, uses):
                # Of a load before the loop, what is computed between the two counts as inside. One that is carried to
                # the condition is compared with what the next iteration carries, which no register holds yet.
                between = {v for o in ops[order[op] : order[loop]] for v in o.results}
                later = {v for region in loop.regions for v in region.args if op not in loop.regions[0].ops}
                steps = _invariant(bound, inside | between | later)
                if steps is not None and any(a.reads and not a.writes for a in op.attrs["atom"].accesses):
                    polling[op] = PollingLoop(holds, bound, steps)
    return polling


def _comparison(loop: Op, uses: Counter[Value]) -> list[tuple[Value, Value, Callable[[Any, Any], Any]]] | None:
    """The condition of a while loop that is a comparison: (value, bound, ``holds(value, bound)``) for either operand as
    the value; None for other conditions."""
    test, negated = loop.regions[0].ops[-1].operands[0].op, False
    while test is not None and test.opcode == "not" and uses[test.result] == 1:
        test, negated = test.operands[0].op, not negated
    if test is None or test.opcode not in COMPARISONS or uses[test.result] > 1:
        return None
    if negated and element_of(test.operands[0].type).is_float:
        return None  # of a NaN, "not less" is not "greater or equal"
    compare = COMPARISONS[OPPOSITE[test.opcode] if negated else test.opcode]
    return list(zip(test.operands, test.operands[::-1], compare, strict=True))


def _reads(loop: Op, value: Value, uses: Counter[Value]) -> list[Op]:
    """The instructions that give what a loop's condition looks at: one in the condition, or (a carried value) one
    before the loop and one in its body."""
    before, after = loop.regions
    if value not in before.args:
        op = _read(value, uses)
        return [op] if op in before.ops else []
    k = before.args.index(value)
    if uses[value] > 2 or uses[after.args[k]] or uses[loop.results[k]]:  # the condition, and what passes it on
        return []
    first, again = _read(loop.operands[k], uses), _read(after.ops[-1].operands[k], uses)
    return [first, again] if first is not None and again in after.ops else []


def _read(value: Value, uses: Counter[Value]) -> Op | None:
    """The instruction that gives a value, if nothing else is done with it; through casts that keep every number."""
    op = value.op
    if op is None or uses[value] > 1:
        return None
    if op.opcode == "cast":
        to, source = element_of(op.result.type), element_of(op.operands[0].type)
        keeps = to.kind == source.kind and to.is_integer and to.width >= source.width
        return _read(op.operands[0], uses) if keeps else None
    return op if op.opcode == "call" else None


def _invariant(value: Value, inside: set[Value]) -> tuple[Op, ...] | None:
    """The ops of a loop that compute a value from what is outside of it, in their order; None if others do."""
    if value not in inside:
        return ()
    op = value.op
    if op is None or op.opcode not in ELEMENTWISE | {"cast", "select"}:  # without an op: what a loop carries
        return None
    parts = [_invariant(operand, inside) for operand in op.operands]
    ops = dict.fromkeys(step for part in parts for step in part or ())
    return None if None in parts else (*ops, op)


def polling_reads(ops: list[Op]) -> set[Op]:
    """The ops in while loops that read global memory and change nothing: what a block waits with."""
    reads = set()
    for loop in ops:
        if loop.opcode != "while":
            continue
        for op in loop.walk():
            pointer = op.operands[0].type if op.operands else None
            if not isinstance(pointer, PtrType) or pointer.space not in (MemSpace.GMEM, MemSpace.GENERIC):
                continue
            if op.opcode == "load":
                reads.add(op)
            elif op.opcode == "call":
                atom, value = op.attrs["atom"], op.operands[-1]
                nothing = isinstance(value, Constant) and not value.value
                if atom.atomic:
                    if atom.kind in ("add", "or", "xor") and nothing:
                        reads.add(op)
                elif op.results and any(a.reads and not a.writes for a in atom.accesses):
                    reads.add(op)
    return reads
