"""``bar.red``: the threads that meet at a barrier of their block learn for how many of them a predicate holds, or
whether for all or for some (PTX ISA, "bar.red").

Two instructions of the IR are one of PTX: :class:`BarrierReduce` meets, and gives what :class:`BarrierReduced` reads
behind the meeting. On a GPU that is the answer itself; in the simulator, where a result is there before the wait, it is
the number of the meeting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tilewright.atoms.sync import check_named
from tilewright.errors import ConstraintError
from tilewright.ir.core import Op
from tilewright.ir.effects import Ordering
from tilewright.ir.instruction import Emitter, Instruction, Lanes, need
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.ir.types import BOOL, I32, I64

KINDS = ("and", "or", "popc")


@dataclass(frozen=True)
class BarrierReduce(Instruction):
    """Meet as ``bar.sync`` does. Operands (predicate: i1, id: i32, threads: i32). ``aligned`` as in ``BarrierSync``."""

    kind: str
    aligned: bool = True
    name: ClassVar[str] = "bar.red"
    blocking: ClassVar[bool] = True
    accesses = ()
    orders = (Ordering("cta", acquire=True, release=True, through="barrier"),)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConstraintError(f"no bar.red.{self.kind}; the kinds are {', '.join(KINDS)}")

    def mnemonic(self) -> str:
        return f"{self.name}.{self.kind}"

    def verify(self, op: Op) -> None:
        need(op, len(op.operands) == 3 and op.operands[0].type == BOOL, f"{self.name} takes (i1, id: i32, threads)")
        check_named(op, op.operands[1:], self.name)
        need(op, all(r.type == I64 for r in op.results), f"{self.name} gives i64")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        holds = (lanes.spread(operands[0]) & lanes.active()).reshape(-1, WARP).sum(1)
        meetings = lanes.meeting(operands[1], operands[2])
        lanes.beside(Meetings).add(meetings, holds, lanes.active().reshape(-1, WARP).sum(1))
        return tuple(np.repeat(meetings, WARP) for _ in op.results)

    def emit(self, out: Emitter, op: Op) -> None:
        name = f"bar_red_{self.kind}{'' if self.aligned else '_unaligned'}"
        head = "bar.red" if self.aligned else "barrier.red"
        text = f"{head}.{self.kind}.pred q, %2, %3, p; selp.u32 %0, 1, 0, q;"
        if self.kind == "popc":
            text = f"{head}.popc.u32 %0, %2, %3, p;"
        out.helper(
            name,
            f"__device__ __forceinline__ int {name}(int predicate, int barrier, int threads) {{\n"
            f"  int found;\n"
            f'  asm volatile("{{ .reg .pred p, q; setp.ne.u32 p, %1, 0; {text} }}"\n'
            f'               : "=r"(found) : "r"(predicate), "r"(barrier), "r"(threads) : "memory");\n'
            f"  return found;\n"
            f"}}\n",
        )
        call = f"{name}({', '.join(out.value(v) for v in op.operands)})"
        out.line(f"{out.declare(op.result)} = {call};" if op.results else f"{call};")


@dataclass(frozen=True)
class BarrierReduced(Instruction):
    """What a meeting has found. Operands: what :class:`BarrierReduce` gives, and the threads that it was for."""

    kind: str
    name: ClassVar[str] = "bar.red.result"
    quiet: ClassVar[bool] = True
    accesses = ()

    def verify(self, op: Op) -> None:
        need(op, [v.type for v in op.operands] == [I64, I32], f"{self.name} takes (meeting: i64, threads: i32)")
        kind = I32 if self.kind == "popc" else BOOL
        need(op, [r.type for r in op.results] == [kind], f"{self.name} of {self.kind} gives {kind}")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        meetings, threads = (lanes.spread(x).reshape(-1, WARP)[:, 0] for x in operands)
        held, there = lanes.beside(Meetings).found(meetings)
        other = there != threads
        if (other & lanes.active().reshape(-1, WARP).any(1)).any():
            raise lanes.fault(
                f"bar.red.{self.kind}: {int(there[other][0])} of the {int(threads[other][0])} threads gave a predicate "
                "at this barrier, others only waited or arrived",
                np.repeat(other, WARP),
                "use another barrier (barrier_id) for what does not reduce",
            )
        reduced = {"popc": held.astype(np.int32), "and": held == there, "or": held > 0}[self.kind]
        return (np.repeat(reduced, WARP),)

    def emit(self, out: Emitter, op: Op) -> None:
        out.line(f"{out.declare(op.result)} = {out.value(op.operands[0])};")


class Meetings:
    """How many threads came to each meeting, and for how many the predicate held."""

    def __init__(self) -> None:
        self.counts: dict[int, list[int]] = {}

    def add(self, meetings: Array, holds: Array, threads: Array) -> None:
        for meeting, some, all_ in zip(meetings.tolist(), holds.tolist(), threads.tolist(), strict=True):
            held = self.counts.setdefault(meeting, [0, 0])
            held[0] += some
            held[1] += all_

    def found(self, meetings: Array) -> tuple[Array, Array]:
        """(threads for which it held, threads) of each."""
        counts = np.array([self.counts.get(meeting, [0, 0]) for meeting in meetings.tolist()])
        return counts[:, 0], counts[:, 1]
