"""Bulk groups: how a thread waits for its stores by TMA and other bulk copies (``cp.async.bulk.commit_group``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.atoms.bulk_groups import BulkGroups
from tilewright.atoms.tma_engine import READS, WRITES
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed_once
from tilewright.ir.core import Op
from tilewright.ir.effects import Ordering
from tilewright.ir.instruction import Emitter, Instruction, Lanes


@dataclass(frozen=True)
class BulkCommit(Instruction):
    """``cp.async.bulk.commit_group``: the bulk stores issued so far and not yet in a group become one group."""

    name = "cp.async.bulk.commit_group"
    min_arch: int = 90
    accesses = ()
    orders = tuple([Ordering("thread", release=True, through="group", agent=agent) for agent in (READS, WRITES)])

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        lanes.beside(BulkGroups).commit(lanes)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        out.line('asm volatile("cp.async.bulk.commit_group;" ::: "memory");')


@dataclass(frozen=True)
class BulkWait(Instruction):
    """``cp.async.bulk.wait_group N``: wait until at most the ``pending`` newest bulk groups of this thread are
    unfinished. With ``read`` only until they have read their sources, so that shared memory may be written again."""

    pending: int
    read: bool = False
    min_arch: int = 90

    name = "cp.async.bulk.wait_group"
    accesses = ()
    # Behind a branch, ptxas takes it to separate the accumulators of an earlier wgmma from their wait, and serialises.
    predicable = True

    @computed_once
    def orders(self) -> tuple[Ordering, ...]:
        agents = (READS,) if self.read else (READS, WRITES)
        return tuple([Ordering("thread", acquire=True, through="group", agent=agent) for agent in agents])

    def __post_init__(self) -> None:
        if not isinstance(self.pending, int) or self.pending < 0:
            raise ConstraintError(f"cp.async.bulk.wait_group takes a static count of groups >= 0, not {self.pending!r}")

    def mnemonic(self) -> str:
        return f"{self.name}{'.read' if self.read else ''} {self.pending}"

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        lanes.beside(BulkGroups).wait(lanes, self.pending, self.read)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        out.line(f'asm volatile("{self.mnemonic()};" ::: "memory");')

    def emit_if(self, out: Emitter, op: Op, condition: str) -> None:
        text = f"{{.reg .pred p; setp.ne.b32 p, %0, 0; @p {self.mnemonic()};}}"
        out.line(f'asm volatile("{text}" :: "r"(int({condition})) : "memory");')
