"""``nanosleep``: a pause of a thread (PTX ISA, "nanosleep")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright.ir.core import Constant, Op
from tilewright.ir.instruction import Emitter, Instruction, Lanes, need
from tilewright.ir.types import U32

LONGEST = 1_000_000
"""Nanoseconds; the hardware may sleep up to twice as long."""


@dataclass(frozen=True)
class Nanosleep(Instruction):
    """``nanosleep.u32``: pause for about the nanoseconds of the operand (u32, one millisecond at most). The simulator's
    time is that of its schedule: there it does nothing."""

    name: ClassVar[str] = "nanosleep"
    quiet: ClassVar[bool] = True
    accesses = ()

    def verify(self, op: Op) -> None:
        need(op, [v.type for v in op.operands] == [U32] and not op.results, "nanosleep takes nanoseconds (u32)")
        (time,) = op.operands
        if isinstance(time, Constant):
            need(op, time.value <= LONGEST, f"nanosleep: {time.value} ns; a thread sleeps {LONGEST} ns at most")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        out.line(f"__nanosleep({out.value(op.operands[0])});")
