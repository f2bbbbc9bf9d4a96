"""Matrix instructions on one set of accumulators that a stretch of straight code issues are done together, at the last
of them.

A main loop multiplies k block after k block and loads the registers of the next one in between. One matrix product over
all of them costs a fraction of what one for each does. Nothing can see the difference, if between the first and the
last of a run no op touches the accumulators, and none writes registers of A or B that the run reads: the rest of a
thread's work goes on between them in any order. Sums of floats then have another order than one by one: that of one
product over the K of the whole run, which depends on the program alone, not on the schedule or on who listens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir.core import Function, Op, Value
from tilewright.ir.types import FragType
from tilewright.sim.matrix_form import MatrixForms, products
from tilewright.sim.program import BasicBlock, Closure, nothing
from tilewright.sim.thread_products import ThreadProducts


class MatrixRun:
    """Matrix instructions ``ops``, at the places ``at`` in the node, of which the first ``d, a, b`` are the operands of
    all."""

    def __init__(self, at: int, op: Op) -> None:
        self.at, self.ops = [at], [op]
        self.d, self.a, self.b = op.operands
        self.read = {self.a: registers_read(op, "a"), self.b: registers_read(op, "b")}

    def takes(self, op: Op) -> bool:
        first = self.ops[0]
        return (
            list(op.operands) == [self.d, self.a, self.b]
            and op.attrs["atom"] == first.attrs["atom"]
            and all(op.attrs[x] == first.attrs[x] for x in ("d_layout", "d_offset"))
        )

    def add(self, at: int, op: Op) -> None:
        self.at.append(at)
        self.ops.append(op)
        for value, role in ((self.a, "a"), (self.b, "b")):
            self.read[value] = self.read[value] | registers_read(op, role)

    def disturbed(self, op: Op) -> bool:
        """Whether the run must be over before ``op``."""
        if self.d in op.operands:
            return True
        return any(
            value in op.operands and written_registers(op, value) & self.read[value] for value in (self.a, self.b)
        )


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
    """Make the last instruction of each run do the work of all. Every fragment has one name (``names_are_unique``)."""
    for node in nodes:
        assert isinstance(node.steps, list)
        for run in _runs(node.ops):
            step = products(run.ops, forms, slot)
            if step is None and len(run.ops) > 1:
                step = _fused(run, [slot(value) for value in (run.d, run.a, run.b)])
            step = threads.step(run.ops, step or node.steps[run.at[-1]]) or step
            if step is not None:
                for at in run.at:
                    # The steps keep their places, by which observers and errors find their ops.
                    node.steps[at] = nothing
                node.steps[run.at[-1]] = step


def names_are_unique(function: Function) -> bool:
    """Whether every fragment is named by the value that ``frag.alloc`` gave it alone: not carried by a loop, chosen by
    a branch, or given by an instruction."""
    for op in function.walk():
        if op.opcode != "frag.alloc" and any(isinstance(r.type, FragType) for r in op.results):
            return False
        if any(isinstance(arg.type, FragType) for region in op.regions for arg in region.args):
            return False
    return True


def _runs(ops: list[Op]) -> list[MatrixRun]:
    """The runs of a node. A run ends at the op that disturbs it; runs on different accumulators may overlap."""
    done: list[MatrixRun] = []
    going: list[MatrixRun] = []
    for at, op in enumerate(ops):
        atom = op.attrs["atom"] if op.opcode == "call" else None
        # With more operands than the matrices a product stands alone.
        fuses = atom is not None and atom.multiplies and not atom.agents and len(op.operands) == 3
        run = next((r for r in going if fuses and r.takes(op)), None)
        for other in [r for r in going if r is not run and r.disturbed(op)]:
            going.remove(other)
            done.append(other)
        if run is not None:
            run.add(at, op)
        elif fuses:
            going.append(MatrixRun(at, op))
    return done + going


def _fused(run: MatrixRun, operands: list[int]) -> Closure:
    ops, simulate = run.ops, run.ops[-1].attrs["atom"].simulate_run
    d, a, b = operands

    def act(g: Any, s: list[Any]) -> None:
        lanes = g.lanes
        lanes.mask, lanes.op = g.mask, ops[-1]
        simulate(lanes, ops, [s[d], s[a], s[b]])

    return act
