"""What a loop that waits for a flag may have read: an earlier value than the newest one, if that ends the loop as well.

In the simulator a poll reads what memory holds. On a GPU it may read any value that is not older than what its thread
knows to have been written (PTX ISA, "Coherence-Order"). So a wait for too few (a count, a head of a queue) may be over
before the last of several releases that have come by now, and only the first value that ends the loop has surely been
acquired. That is done where the program learns nothing else from the value. Atomics that commute (add, max, or...) and
that nothing else orders may have come in another order than in this launch; what is acquired in every order counts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.ir.core import Constant, Value
from tilewright.ir.target import WARP
from tilewright.ir.types import element_of
from tilewright.sim.checks.kinds import PollingLoop
from tilewright.sim.checks.sparse_clock import SparseClock

if TYPE_CHECKING:
    from tilewright.ir.core import Op
    from tilewright.sim.checks.clocks import ClockColumns, Clocks
    from tilewright.sim.group import Group
    from tilewright.sim.program import Closure, Program

KEPT = 64  # of the newest values of a place
# Atomics that give the same value in whatever order they come.
COMMUTE: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "max": max,
    "min": min,
    "or": operator.or_,
    "and": operator.and_,
    "xor": operator.xor,
}
FlagPlace = tuple[int, int]  # the id of the buffer (0: shared memory) and the offset in it
Released = dict[tuple[int, int], "SparseClock"]


class Update(NamedTuple):
    """An atomic that commutes with others of its kind: what it does to a value, what it has released itself, and the
    numbers of the versions that come before it in every order."""

    act: Callable[[int], int]
    own: Released
    after: frozenset[int]


class Version(NamedTuple):
    """A value of a place, what those who acquire it learn, and who (unit * 32 + lane) wrote it at which clock.
    ``update``: where an atomic wrote it that may as well have come before or after others."""

    released: Released
    who: int
    clock: int
    update: Update | None = None


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
    def __init__(self, layout: ClockColumns, loops: dict[Op, PollingLoop], program: Program) -> None:
        self.layout, self.loops, self.slots = layout, loops, program.slots
        self.flags: dict[FlagPlace, Flag] = {}
        # By op, what the program does to compute the bounds of loops inside of them.
        wanted = {op for loop in loops.values() for op in loop.steps}
        ops = ((op, step) for node in program.nodes for op, step in zip(node.ops, node.steps, strict=True))
        self.steps: dict[Op, Closure] = {op: step for op, step in ops if op in wanted} if wanted else {}

    def update(
        self, op: Op, place: FlagPlace, clocks: Clocks, group: Group, warp: int, lane: int | None
    ) -> Update | None:
        """What an atomic by one lane is, if it commutes with others; None if that is not known. To be asked before it
        acquires anything itself: what it learns by taking its turn at the place, it knows in this order only."""
        kind = op.attrs["atom"].atomic
        if lane is None or kind not in COMMUTE or not element_of(op.operands[1].type).is_integer:
            return None
        operand = self._operand(op.operands[1], group, warp, lane)
        if operand is None:
            return None
        after, flag = frozenset[int](), self.flags.get(place)
        if flag is not None:
            read, versions = flag.read.get(clocks.first + warp // self.layout.warps, 0), enumerate(flag.versions)
            numbered = ((flag.first + k, version) for k, version in versions)
            after = frozenset(n for n, v in numbered if n <= read or self._knows(clocks, warp, lane, v))
        return Update(partial(COMMUTE[kind], int(operand)), {}, after)

    def written(
        self,
        place: FlagPlace,
        held: Any,
        released: Released,
        clocks: Clocks,
        warp: int,
        lane: int | None,
        update: Update | None = None,
    ) -> None:
        """A strong write to a place that holds ``held`` (None: not known) before it."""
        flag = self.flags.get(place)
        if flag is None:
            flag = self.flags[place] = Flag()
            flag.add(Version({}, -1, 0))
        flag.values.append(held)
        who = int(clocks.unit[warp]) * WARP + (lane or 0)
        flag.add(Version(dict(released), who, int(clocks.now[warp]), update))

    def acquired(
        self,
        op: Op,
        place: FlagPlace,
        held: Any,
        newest: Released,
        clocks: Clocks,
        group: Group,
        warp: int,
        lane: int | None,
    ) -> Released:
        """What a thread that reads ``held`` now has surely acquired; ``newest``: what that releases."""
        flag, block = self.flags.get(place), clocks.first + warp // self.layout.warps
        if flag is None:
            return newest
        last = flag.first + len(flag.versions) - 1
        loop = self.loops.get(op)
        bound = None if loop is None else self._operand(loop.bound, group, warp, lane, loop)
        if loop is None or bound is None or loop.holds(held, bound):
            flag.read[block] = last
            return newest if loop is None or bound is None else {}  # on a GPU the loop may never see this value
        # Reads of one block do not go backwards (coherence): it has seen this version, and cannot read an older one.
        oldest = max(flag.first, flag.read.get(block, 0))
        known = {
            n for n, v in enumerate(flag.versions, flag.first) if n <= oldest or self._knows(clocks, warp, lane, v)
        }
        values = [*flag.values, held]

        def ends(value: Any) -> bool:
            return value is not None and not loop.holds(value, bound)

        # The versions after ``base`` are updates that commute: those may have come in any order that their own
        # happens-before allows. Before it, the order is the one in which the simulator made them.
        base = last
        while base > oldest and flag.versions[base - flag.first].update is not None:
            base -= 1
        base = last if values[base - flag.first] is None else base
        number = max((n for n in known if n <= base), default=oldest)
        while number < base and not ends(values[number - flag.first]):
            number += 1
        flag.read[block] = number
        if number < base or number == last:
            return newest if number == last else flag.versions[number - flag.first].released
        return self._sure(flag, base, known, int(values[base - flag.first]), ends)

    def _sure(self, flag: Flag, base: int, known: set[int], value: int, ends: Callable[[Any], bool]) -> Released:
        """What the loop has acquired in every order of the updates after version ``base``, which holds ``value``.

        An update is sure to have been read if the loop cannot end in an order in which it comes last (with those that
        must come after it)."""
        updates = [(n, v.update) for n, v in enumerate(flag.versions, flag.first) if n > base and v.update is not None]
        for number, update in updates:
            if number in known:
                value = update.act(value)
        found = {k: know.copy() for k, know in flag.versions[base - flag.first].released.items()}
        for last, mine in updates:
            # Play the updates in the order that keeps this one as late as its happens-before allows.
            late, here, over = {last}, value, ends(value)
            for number, update in updates:
                if over:
                    break
                if number == last or not late.isdisjoint(update.after):
                    late.add(number)
                elif number not in known:
                    here = update.act(here)
                    over = ends(here)
            if not over or last in known:
                for key, know in mine.own.items():
                    found.setdefault(key, SparseClock()).join(know)
        return found

    def differ_by_lane(self, op: Op | None, group: Group) -> bool:
        """Whether the lanes of a warp wait for different values."""
        loop = None if op is None else self.loops.get(op)
        held = None if loop is None else self._held(loop, group)
        if held is None or np.ndim(held) == 0:
            return False
        by_warp = held.reshape(-1, WARP)
        return bool((by_warp != by_warp[:, :1]).any())

    def _held(self, loop: PollingLoop, group: Group) -> Any:
        """The value in the register of the bound; None if it is unknown."""
        slot = self.slots.get(loop.bound)
        if slot is None:
            return None
        # Arithmetic of this iteration may follow the read. Done now it gives the same, and has no other effect.
        for op in loop.steps:
            if op not in self.steps:
                return None
            self.steps[op](group, group.slots)
        return group.slots[slot]

    def _operand(self, value: Value, group: Group, warp: int, lane: int | None, loop: PollingLoop | None = None) -> Any:
        """The contents of a value for a lane (or a whole warp, if it is the same for all); of a polling loop, its
        bound."""
        if isinstance(value, Constant):
            return value.value
        slot = self.slots.get(value)
        held = self._held(loop, group) if loop is not None else None if slot is None else group.slots[slot]
        if held is None or np.ndim(held) == 0:
            return held
        start = int(np.searchsorted(group.warps, warp)) * WARP
        if lane is not None:
            return held[start + lane]
        mine = held[start : start + WARP]
        return mine[0] if (mine == mine[0]).all() else None

    def _knows(self, clocks: Clocks, warp: int, lane: int | None, version: Version) -> bool:
        """Whether a write happened before what the lane (or any of the warp) does now."""
        if version.who < 0:
            return False
        unit = version.who // WARP
        if unit == clocks.unit[warp] and (lane is None or version.who % WARP == lane):
            return True
        cluster, columns = unit // self.layout.cluster, self.layout.columns(version.who)
        if cluster == clocks.cluster[warp] and int(clocks.clocks[warp, columns].max()) >= version.clock:
            return True
        lane_clocks = clocks.lane_clocks.get(warp)
        return lane_clocks is not None and lane_clocks.all().knows(cluster, columns, version.who, version.clock)
