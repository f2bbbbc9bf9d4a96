"""Lowering: the regions of a function to a flat program. Straight ops are in steps.py, calls in calls.py, control here.

A region that holds a blocking instruction *splits* a group by warp where its condition differs; any other region runs
under a mask. A mask is cheaper: splitting and merging copy registers, a mask only blends results. But under a mask,
warps that are not in the region would take part in its barriers and be held up by its waits.

A program is a list of nodes, numbered in program order (the engine runs the lowest number first). A node is a list of
straight-line steps, which every warp of a group executes together, and a control step at its end. Groups can split and
merge only between nodes, so a node ends exactly where control flow may diverge: at blocking calls, and at the heads and
ends of regions. Liveness of registers is computed from the registers that each node reads and writes: only live
registers are copied when groups split or merge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tilewright.ir.core import Block, Constant, Function, Op, Value
from tilewright.ir.types import FragType, VecType, element_of
from tilewright.sim import branches, loops
from tilewright.sim.async_copies import async_copy, is_async_copy
from tilewright.sim.calls import blocking_call, plain_call
from tilewright.sim.direct_copies import DirectCopies, is_direct
from tilewright.sim.forwarding import forward
from tilewright.sim.fusion import fuse, names_are_unique
from tilewright.sim.loop_invariants import invariant_ops, kept
from tilewright.sim.matrix_form import use_matrices
from tilewright.sim.program import BasicBlock, Closure, EnclosingRegion, Label, Program, stop
from tilewright.sim.steps import STEPS
from tilewright.sim.thread_products import ThreadProducts
from tilewright.sim.values import MASK, kind_of, scalar_value


def lower(function: Function, stops: Callable[[Op], bool] | None = None) -> Program:
    """The program of ``function``. Before an op for which ``stops`` is true, the group asks the launch whether it
    pauses there (:meth:`.engine.Launch.stops`)."""
    return Lowering(function, stops).program()


class Lowering:
    def __init__(self, function: Function, stops: Callable[[Op], bool] | None = None) -> None:
        self.function = function
        self.stops = stops
        self.slots: dict[Value, int] = {}
        self.constants: dict[tuple[Any, Any], int] = {}
        self.kinds: list[int] = []
        self.template: list[Any] = []
        self.exact: set[int] = set()
        self.nodes: list[BasicBlock] = [BasicBlock()]
        self.blocking: dict[int, bool] = {}
        self.enclosing: list[EnclosingRegion] = []
        self.direct = DirectCopies(self.slot)
        self.invariant = invariant_ops(function) if stops is None else set()
        self.asynchronous: set[Value] | None = None  # the fragments that instructions work on later

    def program(self) -> Program:
        params = [self.slot(p) for p in self.function.params]
        self.block(self.function.body)
        if self.stops is None:
            self.direct.drop_pointers(self.nodes, self.function)
        if self.stops is None and names_are_unique(self.function):  # with breakpoints every op is executed by itself
            forward(self.nodes, self.function, self.slot)
            forms = use_matrices(self.nodes, self.function, self.slot, self.fresh)
            threads = ThreadProducts(self.nodes, self.function, self.slot, self.fresh, self.direct.bases)
            fuse(self.nodes, self.slot, forms, threads)
            threads.finish()
            forms.add_before_looks(self.nodes, self.slot)
        program = Program(self.function.name, self.nodes, self.kinds, self.template, self.exact, params)
        program.function, program.slots = self.function, self.slots
        program.min_blocks = self.function.attrs.get("min_blocks") or 1
        return program

    # -- registers -----------------------------------------------------------------------------------------------------

    def fresh(self, kind: int, initial: Any = None) -> int:
        self.kinds.append(kind)
        self.template.append(initial)
        return len(self.kinds) - 1

    def mask_slot(self, exact: bool = False) -> int:
        """A register for a mask. ``exact``: groups merge only if the register is None in both or in neither."""
        slot = self.fresh(MASK)
        if exact:
            self.exact.add(slot)
        return slot

    def slot(self, value: Value) -> int:
        if isinstance(value, Constant):
            # repr tells 0.0 from -0.0, and makes one NaN equal to another.
            key = (value.type, repr(value.value))
            if key not in self.constants:
                self.constants[key] = self.fresh(kind_of(value.type), constant_value(value))
            return self.constants[key]
        slot = self.slots.get(value)
        if slot is None:
            slot = self.slots[value] = self.fresh(kind_of(value.type))
        return slot

    def slots_of(self, values: Sequence[Value]) -> list[int]:
        return [self.slot(v) for v in values]

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _watched(self, closure: Closure, op: Op) -> Closure:
        """``closure``, with observers notified if the op touches registers that asynchronous instructions work on."""
        if self.asynchronous is None:
            calls = [o for o in self.function.walk() if o.opcode == "call" and o.attrs["atom"].in_flight]
            self.asynchronous = {v for o in calls for v in o.operands if isinstance(v.type, FragType)}
        if not self.asynchronous or self.asynchronous.isdisjoint(op.operands):
            return closure

        def run(group: Any, slots: list[Any]) -> None:
            closure(group, slots)
            if group.events is not None:
                group.events.fragment(group, op)

        return run

    def step(self, closure: Closure, op: Op, uses: Iterable[int], defs: Iterable[int]) -> None:
        """Append a straight closure to the node under construction."""
        node = self.nodes[-1]
        assert isinstance(node.steps, list)
        node.steps.append(self._watched(closure, op))
        node.ops.append(op)
        node.note(uses, defs)

    def control(
        self,
        closure: Closure,
        op: Op | None,
        uses: Iterable[int],
        defs: Iterable[int] = (),
        targets: Sequence[Label] = (),
        fallthrough: bool = False,
    ) -> None:
        """End the node with ``closure`` and begin the next one."""
        node = self.nodes[-1]
        node.control, node.op = closure, op
        node.note(uses, defs)
        node.targets, node.fallthrough = list(targets), fallthrough
        self.nodes.append(BasicBlock())

    def here(self) -> int:
        return len(self.nodes) - 1

    def place(self, label: Label, op: Op) -> None:
        """Make ``label`` the next node; ends the node under construction if it holds anything."""
        if self.nodes[-1].steps or self.here() == 0:
            following = self.here() + 1
            self.control(lambda group, slots: following, op, (), fallthrough=True)
        label.pc = self.here()

    # -- ops -----------------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.op(op)

    def op(self, op: Op) -> None:
        """Append an op: control flow is lowered by branches.py and loops.py, any other op becomes a step or call of the
        node."""
        if op.opcode in ("yield", "condition"):
            return
        if self.stops is not None and self.stops(op):
            self.control(stop(op, self.here() + 1), None, (), fallthrough=True)
        if op.opcode == "for":
            loops.lower_for(self, op)
        elif op.opcode == "while":
            loops.lower_while(self, op)
        elif op.opcode == "if":
            branches.lower_if(self, op)
        elif op.opcode == "call":
            self.call(op)
        else:
            operands, results = self.slots_of(op.operands), self.slots_of(op.results)
            closure = STEPS[op.opcode](op, operands, results)
            if id(op) in self.invariant:
                closure = kept(closure, operands, results[0], self.fresh(MASK))
            self.step(closure, op, operands, results)
            self.direct.note(op, self.nodes[-1])

    def call(self, op: Op) -> None:
        operands, results = self.slots_of(op.operands), self.slots_of(op.results)
        if op.attrs["atom"].blocking:  # its lanes may have to wait: the node ends here
            self.control(blocking_call(op, operands, results, self.here() + 1), op, operands, results, fallthrough=True)
        else:
            closure = plain_call(op, operands, results)
            if self.stops is None and is_direct(op):
                closure = self.direct.copy(closure, op, self.nodes[-1])
            elif self.stops is None and is_async_copy(op):
                closure = async_copy(closure, op, operands)
            self.step(closure, op, operands, results)

    def region(self, block: Block, around: EnclosingRegion) -> None:
        """Lower the ops of a region inside ``around``."""
        self.enclosing.append(around)
        self.block(block)
        self.enclosing.pop()

    def blocks(self, block: Block) -> bool:
        """Whether there is a blocking instruction anywhere in ``block``."""
        blocks = self.blocking.get(id(block))  # asked at each level of nesting: remembered, as walking is quadratic
        if blocks is None:
            blocks = any(op.opcode == "call" and op.attrs["atom"].blocking for op in block.walk())
            self.blocking[id(block)] = blocks
        return blocks


def constant_value(constant: Constant) -> Any:
    elem = element_of(constant.type)
    scalar = scalar_value(constant.value, elem)
    return np.full(constant.type.n, scalar, elem.dtype) if isinstance(constant.type, VecType) else scalar
