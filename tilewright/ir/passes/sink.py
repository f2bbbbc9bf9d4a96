"""Divisions that one arm of a branch alone needs move into that arm.

``m = i % n`` before ``if i >= n: m = ...`` is valid: where n is 0, the remainder is never used. A GPU computes
some number there; the simulator reports a division by zero. In the arm that uses the result, only lanes divide that
need it. Selections, which short branches have become, are made branches again for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tilewright.ir.arithmetic import DIVISIONS
from tilewright.ir.core import Block, Constant, Function, Op, Value
from tilewright.ir.ops import PURE
from tilewright.ir.types import BOOL


def sink_divisions(function: Function) -> None:
    """Move each division whose divisor may be zero, and what is computed from it, into the arm that alone reads it."""
    if dividing := _dividing(function):
        _sink(function.body, Counter(_read(function.walk())), dividing)


def _dividing(function: Function) -> set[Value]:
    """The results of divisions that may fail, and what is computed from them."""
    dividing: set[Value] = set()
    for op in function.walk():
        if _may_fail(op) or not dividing.isdisjoint(op.operands):
            dividing.update(op.results)
    return dividing


def _sink(block: Block, uses: Counter[Value], dividing: set[Value]) -> None:
    for selections in _selections(block):
        branch = _as_branch(selections)
        arms = [arm for arm in branch.regions if _takes_over(arm, uses, dividing)]
        if not arms:
            continue
        at = block.ops.index(selections[0])
        if any(_needed_only_in(arm, block.ops[:at], uses) for arm in arms):
            block.ops[at : at + len(selections)] = [branch]
            for result in branch.results:
                result.op = branch
            uses.subtract([selections[0].operands[0]] * (len(selections) - 1))
    for branch in [op for op in block.ops if op.opcode == "if"]:
        for arm in branch.regions:
            if not _takes_over(arm, uses, dividing):
                continue
            if moved := _needed_only_in(arm, block.ops[: block.ops.index(branch)], uses):
                block.ops[:] = [op for op in block.ops if op not in moved]
                arm.ops[:0] = moved
    for op in block.ops:
        for region in op.regions:
            _sink(region, uses, dividing)


def _takes_over(arm: Block, uses: Counter[Value], dividing: set[Value]) -> bool:
    """Whether an arm may be given ops, which few are: the last of those that move computes a value of ``dividing`` that
    the arm alone reads. For the others the ops before the branch need not be searched once for each branch."""
    return any(value in dividing and uses[value] == count for value, count in Counter(_read(arm.walk())).items())


def _needed_only_in(arm: Block, before: list[Op], uses: Counter[Value]) -> list[Op]:
    """The ops of ``before``, in order, that belong into ``arm``: divisions that may fail, and what depends on them."""
    inside = Counter(_read(arm.walk()))
    candidates = []
    for op in reversed(before):
        if op.opcode in PURE and op.results and all(0 < uses[r] == inside[r] for r in op.results):
            candidates.append(op)
            inside.update(_read((op,)))
    moved: dict[Op, None] = {}
    results: set[Value] = set()
    for op in reversed(candidates):
        if _may_fail(op) or not results.isdisjoint(op.operands):
            moved[op] = None
            results.update(op.results)
    return list(moved)


def _selections(block: Block) -> list[list[Op]]:
    """The runs of neighbouring selections by one condition."""
    runs: list[list[Op]] = []
    last: Op | None = None
    for op in block.ops:
        if op.opcode == "select" and op.operands[0].type == BOOL:
            same = last is not None and last.opcode == "select" and last.operands[0] is op.operands[0]
            runs[-1].append(op) if same else runs.append([op])
        last = op
    return runs


def _as_branch(selections: list[Op]) -> Op:
    arms = [Block([], [Op("yield", [op.operands[i] for op in selections], [], {}, [], None)]) for i in (1, 2)]
    first = selections[0]
    return Op("if", [first.operands[0]], [r for op in selections for r in op.results], {}, arms, first.loc)


def _may_fail(op: Op) -> bool:
    return op.opcode in DIVISIONS and not (isinstance(op.operands[1], Constant) and op.operands[1].value)


def _read(ops: Iterable[Op]) -> Iterable[Value]:
    for op in ops:
        yield from op.operands
        for pair in op.attrs.get("within", ()):
            yield from pair
