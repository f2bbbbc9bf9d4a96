"""What orders ``wgmma``: the fence before it, groups and waits (PTX ISA, "wgmma.fence", "wgmma.wait_group")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.atoms.wgmma_flow import AGENT
from tilewright.errors import ConstraintError
from tilewright.ir.core import Op
from tilewright.ir.effects import Ordering
from tilewright.ir.instruction import Emitter, Instruction, Lanes


@dataclass(frozen=True)
class WgmmaFence(Instruction):
    """``wgmma.fence``: what this warp wrote to registers (accumulators, A) and read before, the instructions after it
    see; needed before the first one, and whenever other code has touched their registers."""

    name = "wgmma.fence"
    min_arch = 90
    features = (90,)
    accesses = ()
    orders = (Ordering("warp", release=True, agent=AGENT),)

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        from tilewright.atoms.wgmma_text import emit_fence

        emit_fence(out, op)


@dataclass(frozen=True)
class WgmmaCommit(Instruction):
    """``wgmma.commit_group``: the instructions issued so far and not yet in a group become one group."""

    name = "wgmma.commit_group"
    min_arch = 90
    features = (90,)
    accesses = ()
    orders = (Ordering("warp", release=True, through="group", agent=AGENT),)

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        from tilewright.atoms.wgmma_action import commit

        commit(lanes)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        out.line('asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");')


@dataclass(frozen=True)
class WgmmaWait(Instruction):
    """``wgmma.wait_group N``: wait until at most the ``pending`` newest groups of this warp are unfinished."""

    pending: int

    name = "wgmma.wait_group"
    blocking = True
    min_arch = 90
    features = (90,)
    accesses = ()
    orders = (Ordering("warp", acquire=True, through="group", agent=AGENT),)

    def __post_init__(self) -> None:
        if not isinstance(self.pending, int) or isinstance(self.pending, bool) or not 0 <= self.pending <= 7:
            raise ConstraintError(f"wgmma.wait_group takes a static count of groups, 0 to 7, not {self.pending!r}")

    def mnemonic(self) -> str:
        return f"wgmma.wait_group {self.pending}"

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        from tilewright.atoms.wgmma_action import wait

        wait(lanes, self.pending)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        from tilewright.atoms.wgmma_text import emit_wait

        emit_wait(out, op, self.pending)
