"""Dead code with loops in sight: a carried value that only feeds its own next value is dead and is not carried.

Starts from the ops with effects and marks what they need. Results of loops and branches that stay unmarked are
dropped together with what is carried and yielded for them; so are ops, loops and branches without effect or reader.
"""

from __future__ import annotations

from tilewright.ir.core import Block, Function, Op, Value
from tilewright.ir.ops import UNREAD_IS_DEAD

_REGIONS = frozenset(("for", "if", "while"))
Role = tuple[Op, int]


def eliminate_dead_code(function: Function) -> None:
    """Remove everything in ``function`` that no effect depends on."""
    _sweep(function.body, _Marks(function))


class _Marks:
    """The values and region ops that effects depend on."""

    def __init__(self, function: Function) -> None:
        self.live: set[Value] = set()
        self.kept: set[Op] = set()
        self.makers: dict[Value, Role] = {}
        self.arguments: dict[Value, Role] = {}
        self.parents: dict[Op, Op] = {}
        self.pending: list[Value] = []
        self._index(function.body, None)
        for op in function.walk():
            if self._has_effect(op):
                self.keep(op)
        while self.pending:
            self._follow(self.pending.pop())

    def _index(self, block: Block, parent: Op | None) -> None:
        for op in block.ops:
            if parent is not None:
                self.parents[op] = parent
            self.makers.update((result, (op, i)) for i, result in enumerate(op.results))
            for region in op.regions:
                skipped = 1 if op.opcode == "for" else 0  # what it counts with
                self.arguments.update((a, (op, i - skipped)) for i, a in enumerate(region.args) if i >= skipped)
                self._index(region, op)

    def _has_effect(self, op: Op) -> bool:
        if op.opcode in _REGIONS or op.opcode in ("condition", "yield"):
            return (op.opcode == "yield" and op not in self.parents) or _waits(op)
        return not (op.opcode in UNREAD_IS_DEAD or (op.opcode == "call" and op.attrs["atom"].pure))

    def keep(self, op: Op) -> None:
        """``op`` is needed, and so are what it reads and the loops and branches around it."""
        if op in self.kept:
            return
        self.kept.add(op)
        if op in self.parents:
            self.keep(self.parents[op])
        if op.opcode == "for":
            self.need(*op.operands[:3])
        elif op.opcode == "if":
            self.need(op.operands[0])
        elif op.opcode == "while":
            self.need(op.regions[0].ops[-1].operands[0])
        else:
            self.need(*op.operands)

    def need(self, *values: Value) -> None:
        for value in values:
            if value not in self.live:
                self.live.add(value)
                self.pending.append(value)

    def _follow(self, value: Value) -> None:
        op, i = self.makers.get(value) or self.arguments.get(value) or (None, 0)
        if op is None:
            return
        self.keep(op)
        if op.opcode == "for":
            self.need(op.operands[3 + i], op.regions[0].ops[-1].operands[i])
            self.need(op.regions[0].args[1 + i])
        elif op.opcode == "while":
            before, after = op.regions
            self.need(op.operands[i], before.args[i], before.ops[-1].operands[1 + i])
            self.need(after.args[i], after.ops[-1].operands[i])
        elif op.opcode == "if":
            self.need(*(region.ops[-1].operands[i] for region in op.regions))


def _waits(op: Op) -> bool:
    """Whether a loop's condition reads memory: it may wait for what another thread writes, and must not vanish even
    where nothing is done in it."""
    return op.opcode == "while" and any(inner.opcode == "load" for inner in op.regions[0].ops)


def _sweep(block: Block, marks: _Marks) -> None:
    kept = []
    for op in block.ops:
        if op in marks.kept or op.opcode in ("condition", "yield"):
            kept.append(op)
            _narrow(op, marks)
            for region in op.regions:
                _sweep(region, marks)
    block.ops[:] = kept


def _narrow(op: Op, marks: _Marks) -> None:
    """Drop the results of a loop, a branch or an atomic that are never read."""
    if op.opcode == "call" and op.attrs["atom"].results_optional and marks.live.isdisjoint(op.results):
        op.results = []
    if op.opcode == "for":
        body = op.regions[0]
        kept = [i for i, argument in enumerate(body.args[1:]) if argument in marks.live]  # so it is where the result is
        body.args[1:] = [body.args[1 + i] for i in kept]
        op.operands[3:] = [op.operands[3 + i] for i in kept]
    elif op.opcode == "while":
        kept = [i for i, argument in enumerate(op.regions[0].args) if argument in marks.live]
        op.operands[:] = [op.operands[i] for i in kept]
        for region in op.regions:
            region.args[:] = [region.args[i] for i in kept]
    elif op.opcode == "if":
        kept = [i for i, r in enumerate(op.results) if r in marks.live]
    else:
        return
    for region in op.regions:
        tail = region.ops[-1]
        condition = tail.operands[: tail.opcode == "condition"]
        tail.operands = [*condition, *(tail.operands[len(condition) + i] for i in kept)]
    op.results = [op.results[i] for i in kept]
