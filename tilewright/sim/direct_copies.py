"""Copies between registers and memory by each thread for itself, all repetitions of a call at once.

The pointers of a thread's part of a tile are mostly one pointer plus constants. Then the copies of a call are that
pointer and the distances from it, which the program gives: the others need not be made at all, where only such copies
of the same stretch of straight code read them. What all lanes do is done by the call's plan (:mod:`.moves`); everything
else by the plain step, for which the pointers are made when it comes to that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.atoms.copy import split_operands
from tilewright.ir.core import Constant, Function, Op, Value
from tilewright.ir.types import PtrType, element_of
from tilewright.sim.moves import move_by_plan
from tilewright.sim.program import BasicBlock, Closure, nothing

Origin = tuple[Value, int]  # a pointer, and how many bytes from it


def is_direct(op: Op) -> bool:
    """Whether ``op`` are copies between registers and memory by each thread for itself."""
    return op.opcode == "call" and op.attrs["atom"].name == "copy" and "registers" in op.attrs


class DirectCopies:
    """The direct copies of a function that is being lowered; ``slot`` gives the register of a value."""

    def __init__(self, slot: Callable[[Value], int]) -> None:
        self.slot = slot
        self.node: BasicBlock | None = None
        self.origins: dict[Value, Origin] = {}  # of the pointers that the node makes out of others by constants
        self.bases: dict[int, tuple[Value, tuple[int, ...]]] = {}  # by the op's id: of copies through one pointer
        self.served: Counter[Value] = Counter()  # how many operands of copies in the stretch that makes it a pointer is

    def note(self, op: Op, node: BasicBlock) -> None:
        """An op of the stretch."""
        if _moves_by_constant(op):
            pointer, at = self._origin(op.operands[0], node)
            index: Any = op.operands[1]
            self.origins[op.result] = pointer, at + int(index.value) * element_of(op.result.type).bytes

    def copy(self, plain: Closure, op: Op, node: BasicBlock) -> Closure:
        """The step of copies whose plain step is ``plain``."""
        pointers = split_operands(op, op.operands)[1]
        origins = [self._origin(pointer, node) for pointer in pointers]
        self.served.update(pointer for pointer in pointers if pointer in self.origins)
        if all(pointer is origins[0][0] for pointer, _ in origins):
            self.bases[id(op)] = origins[0][0], tuple(at for _, at in origins)
        return _copy(plain, op, origins, self.slot)

    def _origin(self, pointer: Value, node: BasicBlock) -> Origin:
        if self.node is not node:
            self.node, self.origins = node, {}
        return self.origins.get(pointer, (pointer, 0))

    def drop_pointers(self, nodes: list[BasicBlock], function: Function) -> None:
        """Do not make the pointers that only copies of their stretch read."""
        readers = Counter(value for op in function.walk() for value in op.operands)
        for node in nodes:
            assert isinstance(node.steps, list)
            here = {op.result for op in node.ops if _moves_by_constant(op)}
            for at in reversed(range(len(node.ops))):
                op = node.ops[at]
                if op.results and op.result in here and 0 < self.served[op.result] == readers[op.result]:
                    node.steps[at] = nothing
                    if op.operands[0] in here:
                        self.served[op.operands[0]] += 1


def _moves_by_constant(op: Op) -> bool:
    return op.opcode == "ptr.add" and isinstance(op.operands[1], Constant)


# -- steps -------------------------------------------------------------------------------------------------------------


def _copy(plain: Closure, op: Op, origins: list[Origin], slot: Callable[[Value], int]) -> Closure:
    f, pointers, predicates = split_operands(op, op.operands)
    fragment, conditions = slot(f[0]), [slot(p) for p in dict.fromkeys(predicates) if p is not None]
    kinds = [(p.type.elem, p.type.align) for p in pointers if isinstance(p.type, PtrType)]
    registers, store = op.attrs["registers"], op.attrs["store"]
    remake = [(slot(p), slot(origin), at) for p, (origin, at) in zip(pointers, origins, strict=True) if p is not origin]
    bases = list(dict.fromkeys(slot(origin) for origin, _ in origins))
    base, distances = bases[0], tuple(at for _, at in origins)

    def run(group: Any, slots: list[Any]) -> None:
        done = False
        if group.mask is None and all(slots[p] is np.True_ for p in conditions):
            group.lanes.mask, group.lanes.op = None, op
            done = move_by_plan(group, slots[fragment], registers, slots[base], distances, kinds, store)
            if done and not group.wave.launch.reports_ops:
                return
        for target, source, at in remake:  # observers of ops look at their operands
            slots[target] = slots[source].plus(at)
        if not done:
            plain(group, slots)

    def run_several(group: Any, slots: list[Any]) -> None:
        """The same from several pointers, which may be one plus a constant each all the same."""
        for target, source, at in remake:
            slots[target] = slots[source].plus(at)
        plain(group, slots)

    return run if len(bases) == 1 else run_several
