"""Fragments whose registers are written under a condition and used without one: loaded with predicates, or in one
branch, and then added up over the warp, multiplied or stored by all.

One walk from top to bottom, along the path that most kernels take: loops turn, and a product that a value of the run
tells to begin anew does so. Values from registers that this path has not surely written are followed to where they
leave the thread. A store with predicates, or in a branch, may have the same condition as the write, so that such uses
say nothing. What is found here is no more than a reason to watch the registers while the kernel runs, which decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.core import Block, Function, Op, Value
from tilewright.ir.types import FragType
from tilewright.sim.checks.initialised import Touches, Written, in_both, possibly_touched

NONE: frozenset[Op] = frozenset()


def unguarded(function: Function) -> set[Op]:
    """The ``frag.alloc`` ops of these fragments."""
    walk = _Walk()
    walk.block(function.body, {}, NONE)
    return walk.found


class _Walk:
    """``tainted``: the fragments from whose registers a value comes that may not be written; for a fragment, any of its
    values."""

    def __init__(self) -> None:
        self.tainted: dict[Value, frozenset[Op]] = {}
        self.allocated: set[Op] = set()
        self.found: set[Op] = set()

    def block(self, block: Block, written: Written, guarded: frozenset[Op]) -> Written:
        """The registers written after a block, given those before it. ``guarded``: the fragments from outside of a
        branch that the block is in."""
        for op in block.ops:
            if op.opcode == "frag.alloc":
                self.allocated.add(op)
            elif op.opcode == "if":
                self._leaves(self._of(op.operands), guarded)
                arms = [self.block(region, dict(written), frozenset(self.allocated)) for region in op.regions]
                written = in_both(*arms)
            elif op.opcode == "for":
                body = op.regions[0]
                self._carry(op.operands[3:], body.args[1:])
                written = self.block(body, written, guarded)
                self._carry(body.ops[-1].operands, op.results)
            elif op.opcode == "while":
                head, body = op.regions
                self._carry(op.operands, head.args)
                written = self.block(head, written, guarded)
                decides, *carried = head.ops[-1].operands
                self._leaves(self._of([decides]), guarded)
                self._carry(carried, body.args)
                written = self.block(body, written, guarded)
                self._carry(carried, op.results)
            else:
                reads, writes = _usually_touched(op, written)
                missing = {v.op for v, needed in reads if v.op and not needed <= written.get(v, frozenset())}
                self._follow(op, frozenset(missing) - guarded, guarded)
                for value, registers in writes:
                    written[value] = written.get(value, frozenset()) | registers
        return written

    def _carry(self, values: Sequence[Value], to: Sequence[Value]) -> None:
        for value, target in zip(values, to, strict=True):
            self._taint(target, self._of([value]))

    def _of(self, values: Sequence[Value]) -> frozenset[Op]:
        return NONE.union(*(self.tainted.get(value, NONE) for value in values))

    def _taint(self, value: Value, origins: frozenset[Op]) -> None:
        if origins:
            self.tainted[value] = self.tainted.get(value, NONE) | origins

    def _leaves(self, origins: frozenset[Op], guarded: frozenset[Op]) -> None:
        self.found |= origins - guarded

    def _follow(self, op: Op, missing: frozenset[Op], guarded: frozenset[Op]) -> None:
        """Hand on where the operands of an op come from; ``missing``: the fragments of which it reads a register that
        is not surely written."""
        origins = missing | self._of(op.operands)
        if op.opcode in ("store", "load", "assert"):
            self._leaves(origins, guarded)
        elif op.opcode == "frag.store":
            self._taint(op.operands[0], self._of(op.operands[1:]))
        elif op.opcode == "select":  # chooses between a value and another one, as a predicate does
            self._taint(op.result, self._of(op.operands[:1]))
        elif op.opcode == "call":
            self._call(op, origins, guarded)
        else:
            for value in op.results:
                self._taint(value, origins)

    def _call(self, op: Op, origins: frozenset[Op], guarded: frozenset[Op]) -> None:
        atom = op.attrs["atom"]
        if atom.copies and "registers" in op.attrs and "source_registers" not in op.attrs:
            if op.attrs.get("store") and not op.attrs.get("predicated"):
                self._leaves(origins, guarded)
        elif atom.multiplies and isinstance(op.operands[0].type, FragType):
            self._taint(op.operands[0], origins)
        else:
            self._leaves(origins, guarded)


def _usually_touched(op: Op, written: Written) -> tuple[Touches, Touches]:
    """As ``possibly_touched``; a copy with predicates is not sure to write."""
    reads, writes = possibly_touched(op, written)
    return reads, [] if op.opcode == "call" and op.attrs["atom"].copies and op.attrs.get("predicated") else writes
