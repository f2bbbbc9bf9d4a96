"""The mutants of a kernel: one synchronisation operation changed in each, in place and put back afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from tilewright.atoms.cluster import ClusterArrive, ClusterWait
from tilewright.atoms.mbarrier import FenceMbarrierInit
from tilewright.ir.core import Block, Function, Location, Op
from tilewright.sim.mutation.operators import REMOVED, changes


class Edit(NamedTuple):
    """``new`` takes the place of the op ``old`` in ``block``."""

    block: Block
    old: Op
    new: list[Op]


@dataclass(eq=False)
class Mutant:
    """``what`` is done to the ops of ``edits``; ``repeats``: how many ops of the same line could be changed in the same
    way (unrolled loops repeat a line), of which this is the ``number``-th."""

    function: Function
    edits: list[Edit]
    what: str
    repeats: int = 1
    number: int = 1

    @property
    def ops(self) -> list[Op]:
        return [edit.old for edit in self.edits]

    @property
    def location(self) -> Location | None:
        return self.ops[0].loc

    @property
    def instruction(self) -> str:
        return " + ".join(dict.fromkeys(str(op.attrs["atom"].mnemonic()) for op in self.ops))

    @contextmanager
    def applied(self) -> Iterator[Function]:
        """The kernel with the change, inside the block."""
        with edited(self.edits):
            yield self.function


@contextmanager
def edited(edits: Sequence[Edit]) -> Iterator[None]:
    """Make the changes, and take them back at the end."""
    before = [(edit.block, list(edit.block.ops)) for edit in edits]
    try:
        for block, old, new in edits:
            at = block.ops.index(old)
            block.ops[at : at + 1] = new
            for op in new:
                for result in op.results:
                    result.op = op
        yield
    finally:
        for block, ops in reversed(before):
            block.ops[:] = ops
        for edit in edits:
            for result in edit.old.results:
                result.op = edit.old


def mutants(function: Function, every: bool = False) -> list[Mutant]:
    """The mutants of all synchronisation operations of a kernel, in program order. Of repeated ops of one
    line, only the first and the last are changed, unless ``every`` is true."""
    groups: dict[object, list[Mutant]] = {}
    for mutant in _all(function):
        groups.setdefault((mutant.location, mutant.instruction, mutant.what), []).append(mutant)
    chosen: list[Mutant] = []
    for group in groups.values():
        for number, mutant in enumerate(group, 1):
            mutant.repeats, mutant.number = len(group), number
        chosen += group if every else group[:1] + group[1:][-1:]
    return chosen


def blocks(block: Block) -> Iterator[Block]:
    """``block`` and those of the regions of its ops, in program order."""
    yield block
    for op in block.ops:
        for region in op.regions:
            yield from blocks(region)


def _all(function: Function) -> Iterator[Mutant]:
    fences: list[Edit] = []
    for block in blocks(function.body):
        for k, op in enumerate(block.ops):
            for what, new in changes(op):
                yield Mutant(function, [Edit(block, op, new)], what)
            # A barrier of the cluster is two ops; one alone is a mistake of another kind.
            pair = block.ops[k : k + 2]
            if [_atom(o) for o in pair] == [ClusterArrive, ClusterWait]:
                yield Mutant(function, [Edit(block, o, []) for o in pair], REMOVED)
            if _atom(op) is FenceMbarrierInit:
                fences.append(Edit(block, op, []))
    if len(fences) > 1:  # each makes up for the ones before it
        yield Mutant(function, fences, "all removed")


def _atom(op: Op) -> type | None:
    return type(op.attrs["atom"]) if op.opcode == "call" else None
