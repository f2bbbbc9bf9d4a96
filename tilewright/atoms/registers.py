"""``setmaxnreg``: warps of a block pass registers to each other (PTX ISA, "setmaxnreg"; sm_90a).

A block begins with the same number of registers for each thread. Warpgroups that need few give some back to the block's
pool, those that accumulate tiles take them out of it, and wait until there are enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tilewright.errors import ConstraintError, SimulationError
from tilewright.ir.core import Op
from tilewright.ir.instruction import Emitter, Instruction, Lanes
from tilewright.ir.target import MOST_THREADS, REGISTERS, SPECIFIC, WARP, WARPGROUP_WARPS

LEAST, MOST, STEP = 24, 256, 8
WARPS = MOST_THREADS // WARP  # of a block, at most


@dataclass(frozen=True)
class SetMaxRegisters(Instruction):
    """``setmaxnreg.inc`` or ``.dec``: from here on each thread of the warpgroup has ``registers``. No operands.

    All warps of a warpgroup execute the same one, or each gives back once what it does not need. The compiler honours
    it only where the kernel's launch bounds say how many threads and blocks share a multiprocessor.
    """

    registers: int
    increase: bool
    name: ClassVar[str] = "setmaxnreg"
    blocking: ClassVar[bool] = True
    caps_registers: ClassVar[bool] = True
    min_arch: int = 90
    features: ClassVar[tuple[int, ...]] = SPECIFIC
    accesses = ()

    def __post_init__(self) -> None:
        if not isinstance(self.registers, int) or not LEAST <= self.registers <= MOST or self.registers % STEP:
            raise ConstraintError(
                f"setmaxnreg: {self.registers!r} registers a thread; a static multiple of {STEP} from {LEAST} to {MOST}"
            )

    def mnemonic(self) -> str:
        return f"{self.name}.{'inc' if self.increase else 'dec'}.{self.registers}"

    def verify(self, op: Op) -> None:
        if op.operands or op.results:
            raise ConstraintError("setmaxnreg takes no operands")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        pools: RegisterPools = lanes.beside(RegisterPools)
        pools.change(lanes, self.registers, self.increase, self.mnemonic())
        pools.note(lanes, op)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        form = "inc" if self.increase else "dec"
        out.line(f'asm volatile("setmaxnreg.{form}.sync.aligned.u32 {self.registers};");')


def _increases(op: Op) -> bool:
    return bool(op.attrs["atom"].increase)


class RegisterPools:
    """The registers of each warp of the resident blocks (``held``, registers a thread) and what is in each block's
    pool."""

    def __init__(self) -> None:
        self.held = np.zeros((0, WARPS), np.int64)
        self.free = np.zeros(0, np.int64)
        self.executed: dict[tuple[int, int], list[Op]] = {}  # by block and warp
        self.warps = 0  # of a block
        self.lenient = self.thorough = False

    def note(self, lanes: Lanes, op: Op) -> None:
        """Remember who executes ``op``: all warps of a warpgroup have to, unless the launch lets divergence pass. That
        each executes another decrease is reported by thorough checks alone."""
        self.lenient, self.thorough = lanes.lets_pass("divergence"), lanes.is_thorough("divergence")
        warps = lanes.warps
        slots, which = (lanes.sreg(r).reshape(warps, WARP)[:, 0].tolist() for r in ("smid", "warpid"))
        for row in np.flatnonzero(lanes.active().reshape(warps, WARP).any(1)):
            self.executed.setdefault((slots[row], which[row]), []).append(op)
        threads = int(np.prod([int(np.ravel(lanes.sreg(f"ntid.{axis}"))[0]) for axis in "xyz"]))
        self.warps = -(-threads // WARP)

    def finish(self) -> None:
        """All warps have ended."""
        for (slot, warp), ops in ({} if self.lenient else self.executed).items():
            first = warp - warp % WARPGROUP_WARPS
            for other in range(first, min(first + WARPGROUP_WARPS, self.warps)):
                executed = self.executed.get((slot, other), [])
                if [o.attrs["atom"] for o in executed] != [o.attrs["atom"] for o in ops]:
                    # Undefined in PTX. On GPUs each warp may release registers that it does not need, and programs do.
                    each = len(executed) == len(ops) == 1 and not (_increases(executed[0]) or _increases(ops[0]))
                    if each and not self.thorough:
                        continue
                    op = next((o for o in ops if o not in executed), ops[0])
                    raise _left_out(op, warp, other, each)

    def change(self, lanes: Lanes, count: int, increase: bool, name: str) -> None:
        warps = lanes.warps
        slots, which = (lanes.sreg(r).reshape(warps, WARP)[:, 0].astype(np.int64) for r in ("smid", "warpid"))
        active = lanes.active().reshape(warps, WARP)
        partial = active.any(1) & ~active.all(1)
        if partial.any():
            raise lanes.fault(
                f"{name} by a part of a warp",
                np.repeat(partial, WARP) & lanes.active(),
                "let the whole warpgroup run it: branch on the warp's index, not on the lane's",
            )
        there = active.all(1)
        slots, which = slots[there], which[there]
        if slots.size and slots.max() >= self.free.size:
            more = int(slots.max()) + 1 - self.free.size
            self.held = np.concatenate([self.held, np.full((more, WARPS), lanes.registers_at_entry())])
            self.free = np.concatenate([self.free, np.zeros(more, np.int64)])
        held = self.held[slots, which]
        wrong = held > count if increase else held < count
        if increase:  # a block may begin with fewer than its threads allow: the compiler chooses
            wrong &= held != lanes.registers_at_entry()
        if wrong.any():
            bad = np.zeros(warps, bool)
            bad[np.flatnonzero(there)[wrong]] = True
            raise lanes.fault(
                f"{name} by a warp that has {int(held[wrong][0])} registers a thread",
                np.repeat(bad, WARP),
                f"a block begins with {lanes.registers_at_entry()} registers a thread; use setmaxregister_"
                f"{'decrease' if increase else 'increase'} to have {'fewer' if increase else 'more'}",
            )
        self._take(lanes, np.flatnonzero(there), slots, which, count)

    def _take(self, lanes: Lanes, rows: Any, slots: Any, which: Any, count: int) -> None:
        """Give back at once; take when the block's pool has enough for a warp, in the order of asking."""
        waiting = np.ones(rows.size, bool)

        def ready() -> Any:
            for k in np.flatnonzero(waiting):
                need = (count - self.held[slots[k], which[k]]) * WARP
                if need <= self.free[slots[k]]:
                    self.free[slots[k]] -= need
                    self.held[slots[k], which[k]] = count
                    waiting[k] = False
            every = np.ones(lanes.warps, bool)
            every[rows[waiting]] = False
            return every

        def reason(row: int) -> str:
            k = int(np.flatnonzero(rows == row)[0])
            held = int(self.held[slots[k], which[k]])
            return (
                f"{count - held} more registers a thread (it has {held}), {(count - held) * WARP} for its warp, of "
                f"which the block's pool has {int(self.free[slots[k]])}"
            )

        lanes.wait_until(
            ready,
            reason,
            fix="give back more registers (setmaxregister_decrease to fewer in other warpgroups of the "
            "block), or take fewer here",
        )


def _left_out(op: Op, warp: int, other: int, each: bool) -> SimulationError:
    """``warp`` executes ``op``, the ``other`` none; ``each``: another one."""
    what = "executes another one" if each else "does not"
    return SimulationError(
        f"{op.attrs['atom'].mnemonic()}: warp {warp} of the block executes it and warp {other} {what}, but all four "
        "warps of a warpgroup must\n"
        "  to fix: branch by warpgroup (warp_idx // 4), not by warp (check='default,-divergence' lets it pass)",
        op=op,
    )


def registers_at_entry(threads: int, blocks: int) -> int:
    """Registers of each thread when ``blocks`` blocks of ``threads`` threads share a multiprocessor.

    >>> registers_at_entry(384, 1), registers_at_entry(128, 1), registers_at_entry(256, 2)
    (168, 256, 128)
    """
    return min(MOST, REGISTERS // (-(-threads // WARP) * WARP * max(1, blocks)) // STEP * STEP)
