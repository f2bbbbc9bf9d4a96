"""``exit``: the thread ends (PTX ISA, "Control Flow Instructions")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright.ir.core import Op
from tilewright.ir.instruction import Emitter, Instruction, Lanes, need


@dataclass(frozen=True)
class Exit(Instruction):
    """The warps that are here end; barriers of all threads of the block, and of the cluster, wait for them no longer.
    No operands.

    Of a warp all threads end together: the simulator's warps take branches one side after the other, and a thread that
    has ended in one would have to be left out of all that follows.
    """

    name: ClassVar[str] = "exit"
    blocking: ClassVar[bool] = True
    accesses = ()

    def verify(self, op: Op) -> None:
        need(op, not op.operands and not op.results, "exit takes no operands")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        lanes.exit()
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        out.line('asm volatile("exit;");')
