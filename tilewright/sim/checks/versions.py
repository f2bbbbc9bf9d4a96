"""What a loop that waits for a flag may have read: an earlier value than the newest one, if that ends the loop as well.

In the simulator a poll reads what memory holds. On a GPU it may read any value that is not older than what its thread
knows to have been written (PTX ISA, "Coherence-Order"). So a wait for too few (a count, a head of a queue) may be over
before the last of several releases that have come by now, and only the first value that ends the loop has surely been
acquired. That is done where the program learns nothing else from the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.ir.core import Constant
from tilewright.sim.checks.kinds import Wait
from tilewright.sim.geometry import WARP

if TYPE_CHECKING:
    from tilewright.ir.core import Op
    from tilewright.sim.checks.clocks import Clocks, Layout
    from tilewright.sim.checks.knowledge import Know
    from tilewright.sim.group import Group
    from tilewright.sim.program import Closure, Program

KEPT = 64  # of the newest values of a place
Place = tuple[int, int]
Released = dict[tuple[int, int], "Know"]


class Version(NamedTuple):
    """A value of a place, what those who acquire it learn, and who (unit * 32 + lane) wrote it at which clock."""

    released: Released
    who: int
    clock: int


class Flag:
    """The versions of one place, oldest first, of which the first has the number ``first``. ``values``: theirs (None:
    not known), but that of the last one, which memory holds."""

    __slots__ = ("versions", "values", "first", "read")

    def __init__(self) -> None:
        self.versions: list[Version] = []
        self.values: list[Any] = []
        self.first = 0
        self.read: dict[int, int] = {}  # by block: the newest version that one of its threads has read

    def add(self, version: Version) -> None:
        self.versions.append(version)
        if len(self.versions) > KEPT:
            del self.versions[0], self.values[0]
            self.first += 1


class Versions:
    def __init__(self, layout: Layout, waits: dict[Op, Wait], program: Program) -> None:
        self.layout, self.waits, self.slots = layout, waits, program.slots
        self.flags: dict[Place, Flag] = {}
        # By op, what the program does to compute the bounds of loops inside of them.
        wanted = {op for wait in waits.values() for op in wait.steps}
        ops = ((op, step) for node in program.nodes for op, step in zip(node.ops, node.steps, strict=True))
        self.steps: dict[Op, Closure] = {op: step for op, step in ops if op in wanted} if wanted else {}

    def written(self, place: Place, held: Any, released: Released, clocks: Clocks, warp: int, lane: int | None) -> None:
        """A strong write to a place that holds ``held`` (None: nobody knows) before it."""
        flag = self.flags.get(place)
        if flag is None:
            flag = self.flags[place] = Flag()
            flag.add(Version({}, -1, 0))
        flag.values.append(held)
        flag.add(Version(dict(released), int(clocks.unit[warp]) * WARP + (lane or 0), int(clocks.now[warp])))

    def acquired(
        self, op: Op, place: Place, held: Any, newest: Released, clocks: Clocks, group: Group, warp: int,
        lane: int | None,
    ) -> Released:  # fmt: skip
        """What has surely been acquired by who reads ``held`` now; ``newest``: what that releases."""
        flag, block = self.flags.get(place), clocks.first + warp // self.layout.warps
        if flag is None:
            return newest
        last = flag.first + len(flag.versions) - 1
        wait = self.waits.get(op)
        bound = None if wait is None else self._bound(wait, group, warp, lane)
        if wait is None or bound is None or wait.holds(held, bound):
            flag.read[block] = last
            return newest
        oldest = max(flag.first, flag.read.get(block, 0))
        number = last
        while number > oldest and not self._knows(clocks, warp, lane, flag.versions[number - flag.first]):
            number -= 1
        while number < last:
            value = flag.values[number - flag.first]
            if value is not None and not wait.holds(value, bound):
                break
            number += 1
        flag.read[block] = number
        return newest if number == last else flag.versions[number - flag.first].released

    def apart(self, op: Op | None, group: Group) -> bool:
        """Whether the lanes of a warp wait for different values."""
        wait = None if op is None else self.waits.get(op)
        held = None if wait is None else self._held(wait, group)
        if held is None or np.ndim(held) == 0:
            return False
        by_warp = held.reshape(-1, WARP)
        return bool((by_warp != by_warp[:, :1]).any())

    def _held(self, wait: Wait, group: Group) -> Any:
        """What the register of the bound holds; None if nobody knows."""
        slot = self.slots.get(wait.bound)
        if slot is None:
            return None
        # Arithmetic of this turn may stand behind the read. Done now it gives the same, and has no other effect.
        for op in wait.steps:
            if op not in self.steps:
                return None
            self.steps[op](group, group.slots)
        return group.slots[slot]

    def _bound(self, wait: Wait, group: Group, warp: int, lane: int | None) -> Any:
        """What a lane (or a whole warp, if it is the same for all) compares with."""
        if isinstance(wait.bound, Constant):
            return wait.bound.value
        held = self._held(wait, group)
        if held is None or np.ndim(held) == 0:
            return held
        start = int(np.searchsorted(group.warps, warp)) * WARP
        if lane is not None:
            return held[start + lane]
        mine = held[start : start + WARP]
        return mine[0] if (mine == mine[0]).all() else None

    def _knows(self, clocks: Clocks, warp: int, lane: int | None, version: Version) -> bool:
        """Whether a write happened before what the lane (or any of the warp) does now."""
        unit = version.who // WARP
        if unit == clocks.unit[warp] and (lane is None or version.who % WARP == lane):
            return True
        cluster, columns = unit // self.layout.cluster, self.layout.columns(version.who)
        if cluster == clocks.cluster[warp] and int(clocks.clocks[warp, columns].max()) >= version.clock:
            return True
        loose = clocks.loose.get(warp)
        return loose is not None and loose.all().knows(cluster, columns, version.who, version.clock)
