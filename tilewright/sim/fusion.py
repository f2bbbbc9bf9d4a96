"""Matrix instructions on one set of accumulators that a stretch of straight code issues are done together, at the last
of them.

A main loop multiplies k block after k block and loads the registers of the next one in between. One matrix product over
all of them costs a fraction of what one for each does. Nothing can see the difference, if between the first and the
last of a run no op touches the accumulators, and none writes registers of A or B that the run reads: the rest of a
thread's work goes on between them in any order. Instructions of the next stretch, behind a wait, join those before it,
if the registers that they read are there by then. Sums of floats then have another order than one by one: that of one
product over the K of the whole run, which depends on the program alone, not on the schedule or on who listens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tilewright.ir.core import Function, Op, Value
from tilewright.ir.types import FragType
from tilewright.sim.matrix_form import MatrixForms, products
from tilewright.sim.program import BasicBlock, Closure, nothing
from tilewright.sim.thread_products import ThreadProducts


class Place(NamedTuple):
    """An op in the program: the one at ``at`` of a node's steps, or (-1) the node's control."""

    node: BasicBlock
    at: int
    op: Op


class MatrixRun:
    """Matrix instructions at ``places``, of which the first ``d, a, b`` are the operands of all. They are done at
    ``due``, the last of the node in which the run begins."""

    def __init__(self, place: Place) -> None:
        self.due, self.places = place, [place]
        self.d, self.a, self.b = place.op.operands
        self.read = _reads(place.op)
        self.written: dict[Value, set[int]] = {}  # registers of A and B, since ``due``

    @property
    def ops(self) -> list[Op]:
        return [place.op for place in self.places]

    def takes(self, place: Place) -> bool:
        first, op = self.due.op, place.op
        same = (
            list(op.operands) == [self.d, self.a, self.b]
            and op.attrs["atom"] == first.attrs["atom"]
            and all(op.attrs[x] == first.attrs[x] for x in ("d_layout", "d_offset"))
        )
        if not same or place.node is self.due.node:
            return same
        return not any(self.written.get(value, set()) & registers for value, registers in _reads(op).items())

    def add(self, place: Place) -> None:
        self.places.append(place)
        for value, registers in _reads(place.op).items():
            self.read[value] = self.read[value] | registers
        if place.node is self.due.node:
            self.due, self.written = place, {}

    def disturbed(self, place: Place) -> bool:
        """Whether the run must be over before the op there."""
        if self.d in place.op.operands:
            return True
        for value, read in self.read.items():
            if value in place.op.operands:
                written = written_registers(place.op, value)
                if place.node is self.due.node and written & read:
                    return True
                self.written[value] = self.written.get(value, set()) | written
        return False


def _reads(op: Op) -> dict[Value, set[int]]:
    """The registers of A and B that a matrix instruction reads."""
    _, a, b = op.operands
    read_a, read_b = registers_read(op, "a"), registers_read(op, "b")
    return {a: read_a | read_b} if a is b else {a: read_a, b: read_b}


def registers_read(op: Op, role: str) -> set[int]:
    """The registers of A or B that a matrix instruction reads."""
    from tilewright.atoms.tables import offsets

    offset = op.attrs[f"{role}_offset"]
    return {offset + int(at) for at in offsets(op.attrs[f"{role}_layout"]).reshape(-1)}


def written_registers(op: Op, value: Value) -> set[int]:
    """The registers of ``value`` that ``op`` may write to; all where that is not known."""
    kind = value.type
    assert isinstance(kind, FragType)
    if op.opcode == "frag.load" or (op.opcode == "call" and op.attrs["atom"].multiplies):
        return set()
    chosen = op.attrs.get("registers") if op.opcode == "call" else None
    if chosen is not None and "source_registers" not in op.attrs:
        return set() if op.attrs.get("store") else {register for one in chosen for register in one}
    if op.opcode == "frag.store" and len(op.operands) == 2:
        return set(op.attrs["offsets"])
    return set(range(kind.n))


def fuse(nodes: list[BasicBlock], slot: Callable[[Value], int], forms: MatrixForms, threads: ThreadProducts) -> None:
    """Make one instruction of each run do the work of all. Every fragment has one name (``names_are_unique``)."""
    for chain in _chains(nodes):
        for run in _runs(chain):
            node, at, _ = run.due
            step = products(run.ops, forms, slot)
            if step is None and len(run.places) > 1:
                step = _fused(run, [slot(value) for value in (run.d, run.a, run.b)])
            step = threads.step(run.ops, step or _steps(node)[at]) or step
            if step is not None:
                for place in run.places:
                    # The steps keep their places, by which observers and errors find their ops.
                    _steps(place.node)[place.at] = nothing
                _steps(node)[at] = step


def _steps(node: BasicBlock) -> list[Closure]:
    assert isinstance(node.steps, list)
    return node.steps


def _chains(nodes: list[BasicBlock]) -> Iterator[list[Place]]:
    """The ops of nodes that follow each other in every execution: between them is an instruction that waits, and
    nowhere else does control come to the later ones. Where instructions work on registers at some later time each node
    stands alone, as a wait says when they have come."""
    entered = {label.pc for node in nodes for label in node.targets}
    calls = [op for node in nodes for op in (*node.ops, node.op) if op is not None and op.opcode == "call"]
    apart = any((op.attrs["atom"].in_flight or op.attrs["atom"].agents) and _has_fragments(op) for op in calls)
    chain: list[Place] = []
    for number, node in enumerate(nodes):
        chain += [Place(node, at, op) for at, op in enumerate(node.ops)]
        waits = node.op is not None and node.op.opcode == "call" and node.fallthrough and not node.targets
        if apart or not waits or number + 1 in entered:
            yield chain
            chain = []
        elif node.op is not None:
            chain.append(Place(node, -1, node.op))


def _has_fragments(op: Op) -> bool:
    return any(isinstance(value.type, FragType) for value in op.operands)


def names_are_unique(function: Function) -> bool:
    """Whether every fragment is named by the value that ``frag.alloc`` gave it alone: not carried by a loop, chosen by
    a branch, or given by an instruction."""
    for op in function.walk():
        if op.opcode != "frag.alloc" and any(isinstance(r.type, FragType) for r in op.results):
            return False
        if any(isinstance(arg.type, FragType) for region in op.regions for arg in region.args):
            return False
    return True


def _runs(chain: list[Place]) -> list[MatrixRun]:
    """The runs of a chain. A run ends at the op that disturbs it; runs on different accumulators may overlap."""
    done: list[MatrixRun] = []
    going: list[MatrixRun] = []
    for place in chain:
        atom = place.op.attrs["atom"] if place.op.opcode == "call" else None
        # With more operands than the matrices a product stands alone.
        fuses = atom is not None and atom.multiplies and not atom.agents and len(place.op.operands) == 3
        fuses = fuses and place.at >= 0
        run = next((r for r in going if fuses and r.takes(place)), None)
        for other in [r for r in going if r is not run and r.disturbed(place)]:
            going.remove(other)
            done.append(other)
        if run is not None:
            run.add(place)
        elif fuses:
            going.append(MatrixRun(place))
    return done + going


def _fused(run: MatrixRun, operands: list[int]) -> Closure:
    ops, simulate = run.ops, run.ops[-1].attrs["atom"].simulate_run
    d, a, b = operands

    def act(group: Any, slots: list[Any]) -> None:
        lanes = group.lanes
        lanes.mask, lanes.op = group.mask, ops[-1]
        simulate(lanes, ops, [slots[d], slots[a], slots[b]])

    return act
