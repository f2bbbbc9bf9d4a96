"""``tcgen05.shift.down``: the rows of tensor memory that a warp reaches move by one (PTX ISA, "tcgen05.shift").

Operand ``[address]`` (i32), in a lane that is a multiple of 32: of 8 columns of the 32 lanes from there on, each lane
gets what the next one had, and the last one keeps what it has. PTX says "shifting of 32-byte elements downwards across
all the rows, except the last, by one row", and gives the shape as 31x256b; that rows move towards lane 0 is how this is
read here, so that ``tcgen05.cp.4x256b`` behind it can fill the last row. The unit of ``tcgen05.mma`` carries it out, in
order with MMAs and copies. Each thread that is here issues one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tilewright.atoms.tcgen05_mma import AGENT
from tilewright.atoms.tcgen05_unit import UnitWrite, issuers
from tilewright.atoms.tensor_memory import COLUMN_BITS, LANES
from tilewright.atoms.tensor_memory_alloc import TCGEN05
from tilewright.atoms.tensor_memory_state import TensorMemory
from tilewright.ir.core import Op
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Emitter, Instruction, Lanes, need
from tilewright.ir.target import WARP
from tilewright.ir.types import I32, MemSpace

MOVED_COLUMNS = 256 // COLUMN_BITS


@dataclass(frozen=True)
class TmemShift(Instruction):
    """``ctas``: 2 shifts in both blocks of a pair.

    >>> TmemShift().mnemonic()
    'tcgen05.shift.cta_group::1.down'
    """

    ctas: int = 1

    name: ClassVar[str] = "tcgen05.shift"
    min_arch: int = 100
    features: ClassVar[tuple[int, ...]] = TCGEN05
    accesses = (Access("update", "destination", (MemSpace.TMEM,), 0, agent=AGENT),)

    def mnemonic(self) -> str:
        return f"{self.name}.cta_group::{self.ctas}.down"

    def verify(self, op: Op) -> None:
        types = [v.type for v in op.operands]
        need(op, types == [I32], f"{self.mnemonic()}: takes an address of tensor memory (i32), not {types}")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        for row, lane, sides in issuers(lanes, self.mnemonic(), self.ctas):
            shift = _Shift(self, lanes, row, sides, int(lanes.spread(operands[0])[lane]) & 0xFFFFFFFF)
            shift.begin()
            lanes.eventually(shift, lane=lane)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        out.line(f'asm volatile("{self.mnemonic()} [%0];" :: "r"({out.value(op.operands[0])}) : "memory");')


class _Shift(UnitWrite):
    """One shift of one thread."""

    def __init__(
        self, atom: TmemShift, lanes: Lanes, row: int, sides: list[tuple[int, TensorMemory]], address: int
    ) -> None:
        super().__init__(atom, lanes, row, sides)
        self.lane, self.column = address >> 16, address & 0xFFFF
        self.where = slice(self.lane, self.lane + WARP), slice(self.column, self.column + MOVED_COLUMNS)

    def check(self) -> None:
        if self.lane % WARP or self.lane >= LANES:
            raise self.fault(
                f"takes lane {self.lane}; it shifts the lanes that one warp reaches",
                f"take a lane that is a multiple of {WARP}, below {LANES}",
            )
        self.need_allocated(np.array([self.column, self.column + MOVED_COLUMNS - 1]))

    def __call__(self) -> None:
        self.check()
        for _, memory in self.sides:
            for cells in (memory.words, memory.written):
                part = cells[self.where]
                part[:-1] = part[1:].copy()
            memory.products[self.where] -= 1
