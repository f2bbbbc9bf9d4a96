"""What ``tcgen05.mma`` and ``tcgen05.cp`` share on the simulator: both are work that a whole warp issues to one
asynchronous unit, which reads shared memory and writes tensor memory of the warp's block, or of its pair of blocks.

``Lanes.eventually`` keeps the order in which the work was issued. Until a piece of it is done no other access may touch
the cells that it writes (``TensorMemory.products``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.atoms.tensor_memory_state import TensorMemories, TensorMemory
from tilewright.ir.instruction import Instruction, Lanes
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP


def need_whole_warps(lanes: Lanes, what: str, call: str) -> None:
    """A fault where only some threads of a warp are here: the warp itself elects the one that issues. ``call`` is the
    statement that the user moves."""
    active = lanes.active().reshape(-1, WARP)
    torn = active.any(1) & ~active.all(1)
    if torn.any():
        raise lanes.fault(
            f"{what} by {int(active[torn][0].sum())} of the 32 threads of a warp: the warp elects the thread that "
            "issues, for which all 32 must be here",
            np.repeat(torn, WARP),
            f"call {call} from a whole warp (if warp_idx == 0:), not inside `with elect_one():`",
        )


def issuers(lanes: Lanes, what: str, ctas: int) -> list[tuple[int, int, Any]]:
    """For each active warp: its row, the lane that issues, and the blocks that take part. A Fault if several lanes of
    a warp are active."""
    memories = lanes.beside(TensorMemories)
    memories.agree(lanes, what, ctas)
    active = lanes.active().reshape(-1, WARP)
    many = active.sum(1) > 1
    if many.any():
        raise lanes.fault(
            f"{what} by {int(active[many][0].sum())} threads of a warp: each of them would issue one",
            np.repeat(many, WARP),
            "let one thread issue it: under elect.sync, or inside `with cute.arch.elect_one():`",
        )
    leading = memories.sides(lanes, what, ctas, leads=True)
    return [(row, WARP * row + int(active[row].argmax()), sides) for row, sides in leading]


class UnitWork:
    """One piece of work that warp ``row`` of the lanes has issued. ``sides``: of each block that takes part, the number
    of its first warp and its tensor memory. ``notified``: whether observers know of its reads."""

    notified = False

    def __init__(self, atom: Instruction, lanes: Lanes, row: int, sides: list[tuple[int, TensorMemory]]) -> None:
        self.atom, self.lanes, self.row, self.sides = atom, lanes, row, sides

    def fault(self, text: str, fix: str) -> Exception:
        """A mistake of the warp that issued."""
        chosen = np.arange(WARP * self.lanes.warps) // WARP == self.row
        return self.lanes.fault(f"{self.atom.mnemonic()} {text}", chosen, fix)

    def need_allocated(self, columns: Array) -> None:
        """A fault unless the columns are allocated in all blocks that take part."""
        for _, memory in self.sides:
            wrong = memory.wrong(columns)
            if wrong is not None:
                raise self.fault(*wrong)

    def read_shared(self, address: Array, first_warp: int) -> Array:
        """What the block of this first warp has at these addresses of its shared memory; the checks see the read."""
        warp = np.array([first_warp])
        if self.lanes.observed and not self.notified:
            self.lanes.reads_shared(address, np.array([self.row]), warp)
        return self.lanes.read_shared(address, warp)


class UnitWrite(UnitWork):
    """Work that writes to cells of tensor memory, ``where`` (lanes, columns), which are its own until it is done."""

    where: tuple[Any, Any]

    def check(self) -> None:
        """A fault where the cells cannot be written."""
        raise NotImplementedError

    def begin(self) -> None:
        """From now on the cells are the unit's."""
        self.check()
        for _, memory in self.sides:
            problem = memory.busy(*self.where)
            if problem is not None:
                raise self.fault(*problem)
            self.lanes.tensor_memory(self.row, memory, True, [self.where])
            memory.products[self.where] += 1
