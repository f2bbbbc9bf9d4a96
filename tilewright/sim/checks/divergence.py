"""Barriers that not all meet as they must: ``sync_threads`` at several places at once, named barriers that two uses
share, and ``sync_warp`` masks that name lanes which do not come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.errors import SimulationError
from tilewright.ir.core import Constant, Op
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.barriers import NAMED
from tilewright.sim.checks.actors import Actor, actor_in_wave, warp_of
from tilewright.sim.checks.checker import Checker
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.sites import kernel_facts

if TYPE_CHECKING:
    from tilewright.sim.checks.order import HappensBefore
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.wave import Wave


class SecondArrival(NamedTuple):
    """A warp's second arrival in one phase, and the op of its first."""

    op: Op
    who: Actor
    first: Op


class BarrierPhase:
    """The state of one barrier: the warps that have arrived in this phase and in the last one (warp: op, and the warp's
    clock when it goes on, 0 where it does not wait), who waited in the last one, and a warp that came twice in
    either."""

    __slots__ = ("phase", "came", "waited", "last", "twice", "last_twice")

    def __init__(self) -> None:
        self.phase = 0
        self.came: dict[int, tuple[Op, int]] = {}
        self.waited: dict[int, int] = {}
        self.last: dict[int, tuple[Op, int]] = {}
        self.twice: SecondArrival | None = None
        self.last_twice: SecondArrival | None = None

    def begin(self, phase: int) -> None:
        """The first arrival of a new phase."""
        self.last, self.last_twice = self.came, self.twice
        self.waited = {w: clock for w, (_, clock) in self.came.items() if clock}
        self.phase, self.came, self.twice = phase, {}, None


class UniformBarrier:
    """The blocks of a wave at whose barrier 0 only ``sync_threads`` has come so far. All warps wait there in every
    phase, so nothing can be wrong but that some have come to another ``sync_threads``. For each block the phase, and
    the numbers of its op and of the one before; for each warp the last phase that it came to, and its clock then."""

    def __init__(self, wave: Wave) -> None:
        self.per = wave.geometry.warps
        blocks = len(wave.coords)
        self.phase, self.number, self.before = np.zeros((3, blocks), np.int64)
        self.mixed = np.zeros(blocks, bool)  # others have come, too
        self.came, self.clock = np.zeros((2, blocks * self.per), np.int64)
        self.same = np.ones(blocks * self.per, np.int64)

    def takes(self, warps: Array, target: Array, number: int, now: Array) -> bool:
        """Note that these warps come to the ``sync_threads`` of a number; False if all is to be looked at."""
        blocks = warps // self.per
        if self.mixed[blocks].any():
            return False
        fresh = self.phase[blocks] != target
        if fresh.any():
            new = blocks[fresh]
            self.before[new], self.phase[new], self.number[new] = self.number[new], target[fresh], number
        # Warps of the block came to another sync_threads in this phase: that is the mistake to be reported.
        if (self.number[blocks] != number).any():
            return False
        self.came[warps], self.clock[warps] = target, now[warps]
        return True

    def as_phase(self, block: int, ops: list[Op]) -> BarrierPhase:
        """The records of a block, whose arrivals are looked at one by one from now on."""
        self.mixed[block] = True
        found, warps = BarrierPhase(), range(block * self.per, (block + 1) * self.per)
        found.phase = int(self.phase[block])
        if found.phase:
            op = ops[self.number[block] - 1]
            found.came = {w: (op, int(self.clock[w])) for w in warps if self.came[w] == found.phase}
        if self.before[block]:
            found.last = {w: (ops[self.before[block] - 1], int(self.clock[w])) for w in warps}
            found.waited = dict.fromkeys(warps, 1)  # all did, whenever it was
        return found


class Answers:
    """Who has heard of whose request to cancel a cluster. The answer comes after the request, so that who has waited
    for it comes after what the asking warp had waited for before: as time, that is; it makes no data visible."""

    def __init__(self, order: HappensBefore) -> None:
        self.order = order
        self.at: dict[tuple[Wave, int], Array] = {}  # by mbarrier: the clocks of who asked, when it did
        self.heard: dict[tuple[Wave, int], Array] = {}  # by warp
        self.waiting: dict[tuple[Wave, int], set[int]] = {}  # by warp: mbarriers

    def mbarrier(self, group: Group, what: str, places: Array, lanes: Array, done: Array | None) -> None:
        wave = group.wave
        if what == "complete" and self.order.landing:
            effect = self.order.landing[-1]
            if effect.lane is not None and getattr(effect.op.attrs["atom"], "cancels", False):
                asked, row = effect.notes, effect.lane // WARP
                clocks = asked.rows[row].copy()
                clocks[self.order.waves[wave].own[asked.warps[row]]] = asked.now[row]
                for place in map(int, places):
                    self.at[wave, place] = clocks
        elif what in ("wait", "test"):
            kept = np.ones(places.size, bool) if what == "wait" or done is None else done
            for place, lane in zip(places[kept].tolist(), lanes[kept].tolist(), strict=True):
                key = wave, int(group.warps[lane // WARP])
                self.waiting.setdefault(key, set()).add(place)
                if what == "test":
                    self._hear(key)

    def resumes(self, group: Group) -> None:
        for warp in map(int, group.warps):
            self._hear((group.wave, warp))

    def _hear(self, key: tuple[Wave, int]) -> None:
        for place in self.waiting.pop(key, ()):
            clocks = self.at.get((key[0], place))
            if clocks is not None:
                before = self.heard.get(key)
                self.heard[key] = clocks if before is None else np.maximum(before, clocks)

    def tells(self, wave: Wave, warp: int, column: int, clock: int) -> bool:
        """Whether ``warp`` has heard of a request that came after this clock."""
        heard = self.heard.get((wave, warp))
        return heard is not None and bool(heard[column] >= clock)


class Divergence(Checker):
    uses_order = True

    def begin(self, launch: Launch) -> None:
        self.launch = launch
        # Where all barriers are sync_threads, no warp can be a phase ahead, so its clocks are not needed.
        orders = ((op, o) for op in kernel_facts(launch.program).calls for o in op.attrs["atom"].orders)
        calls = kernel_facts(launch.program).calls
        self.answers = Answers(self.order) if any(getattr(op.attrs["atom"], "cancels", False) for op in calls) else None
        self.named = any(o.through == "barrier" and not op.attrs["atom"].whole_block for op, o in orders)
        self.uniform: dict[Wave, UniformBarrier] = {}
        self.ops: list[Op] = []  # by their numbers, from 1 on, the sync_threads
        self.numbers: dict[int, int] = {}
        self.phases: dict[tuple[Wave, int], BarrierPhase] = {}
        # For each warp the masked sync_warp that some lanes have come to: mask, lanes, op.
        self.pending: dict[tuple[Wave, int], dict[int, tuple[int, Op]]] = {}

    def asks_order(self) -> bool:
        return self.named

    def wave(self, wave: Wave) -> None:
        self.uniform[wave] = UniformBarrier(wave)

    # -- barriers of the block -----------------------------------------------------------------------------------------

    def mbarrier(self, group: Group, what: str, places: Array, lanes: Array, done: Array | None) -> None:
        if self.answers is not None:
            self.answers.mbarrier(group, what, places, lanes, done)

    def resumes(self, group: Group, wait: Any) -> None:
        if self.answers is not None:
            self.answers.resumes(group)

    def barrier(self, group: Group, rows: Array, keys: Array, target: Array, waits: bool) -> None:
        """Warps arrive at a barrier: who comes twice in one phase, or joins a phase of another use of the same barrier,
        is a mistake. A whole block at ``sync_threads`` as always (``usual``) is not looked at further."""
        wave, op = group.wave, group.lanes.op
        self._warps_arrived(group, rows)
        whole = op.attrs["atom"].whole_block
        uniform = self.uniform[wave]
        if whole:
            if uniform.takes(group.warps[rows], target, self._number(op), self._now(wave)):
                return
        now, before = self._now(wave), self.order.barriers[wave].before if self.named else None
        for k, row in enumerate(rows):
            warp, key = int(group.warps[row]), (wave, int(keys[k]))
            state = self.phases.get(key)
            if state is None:
                block, number = divmod(key[1], NAMED)
                state = self.phases[key] = BarrierPhase() if number else uniform.as_phase(block, self.ops)
            phase = int(target[k])
            if phase != state.phase:
                state.begin(phase)
            if warp in state.came:
                state.twice = SecondArrival(op, warp_of(group, int(row)), state.came[warp][0])
            # An arrival that nothing orders after the last phase could have been counted in that one.
            if before is not None and state.last and not self._knows(wave, state, warp, before[k]):
                if state.last_twice is not None:
                    self._arrived_twice(state.last_twice, key[1] % NAMED)
                else:
                    self._shared(group, int(row), op, state, key[1] % NAMED)
            state.came[warp] = (op, int(now[warp]) if waits else 0)
            if whole:
                self._divergent(group, int(row), op, state)

    def _now(self, wave: Wave) -> Array:
        """The clocks of the wave's warps; where no checker asks for them, they are all the same."""
        return self.order.waves[wave].now if self.named else self.uniform[wave].same

    def _number(self, op: Op) -> int:
        found = self.numbers.get(id(op))
        if found is None:
            self.ops.append(op)
            found = self.numbers[id(op)] = len(self.ops)
        return found

    def error(self, launch: Launch, error: SimulationError) -> None:
        """Some warps wait for ever at a barrier whose last phase counted one warp twice: possibly in their place."""
        for (_, key), state in self.phases.items():
            if state.last_twice is not None and any(clock for _, clock in state.came.values()):
                self._arrived_twice(state.last_twice, key % NAMED)

    def _knows(self, wave: Wave, state: BarrierPhase, warp: int, before: Array) -> bool:
        """Whether ``warp``, which knew ``before``, knows that the last phase is over: it waited there, or a wait there
        happened before."""
        if warp in state.waited or not (state.waited or state.last_twice):
            return True
        clocks = self.order.waves[wave]
        lane_clocks = clocks.lane_clocks.get(warp)
        for other, clock in state.waited.items():
            if before[clocks.own[other]] >= clock:
                return True
            if self.answers is not None and self.answers.tells(wave, warp, int(clocks.own[other]), clock):
                return True
            if lane_clocks is not None and self.order.knows(wave, warp, other, clock):
                return True
        return False

    # A barrier counts arrivals, not warps (PTX ISA, "bar"), so a warp may arrive twice in a phase: by ``arrive``, and
    # later to wait. That is wrong where an arrival that was not counted need not come after the phase: it could have
    # been counted in place of the second one.
    def _arrived_twice(self, twice: SecondArrival, number: int) -> None:
        self.findings.add(
            Finding(
                "barrier-twice",
                f"a warp arrives a second time at barrier {number} in one phase",
                [Party("arrives", twice.op, twice.who), Party("after its arrival", twice.first)],
                None,
                "a phase counts threads, and this warp's stand for others that have not come",
                "let the warp wait for the phase (or for an answer on another barrier) before it arrives again",
            )
        )

    def _shared(self, group: Group, row: int, op: Op, state: BarrierPhase, number: int) -> None:
        other, (their, _) = next(iter(state.last.items()))
        self.findings.add(
            Finding(
                "barrier-shared",
                f"two uses of barrier {number} are not kept apart: a warp could be counted in either",
                [
                    Party("arrives", op, warp_of(group, row)),
                    Party("after a phase with", their, actor_in_wave(group.wave, other)),
                ],
                None,
                "this warp did not wait in the phase before, and nothing orders its arrival after that phase",
                "give each use a barrier id of its own, or order them by another barrier",
            )
        )

    def _divergent(self, group: Group, row: int, op: Op, state: BarrierPhase) -> None:
        """Warps of one block wait at different ``sync_threads``: the first pair is reported."""
        for other, (their, _) in state.came.items():
            if their is not op:
                self.findings.add(
                    Finding(
                        "barrier-divergent",
                        "warps of one block meet at different sync_threads",
                        [
                            Party("arrives", op, warp_of(group, row)),
                            Party("while here", their, actor_in_wave(group.wave, other)),
                        ],
                        None,
                        "sync_threads is for all threads of the block at one place of the program: in a branch, its "
                        "condition must be the same for the whole block",
                        "move the barrier out of the branch, or use named barriers (barrier_id, number_of_threads) for "
                        "the warps of each side",
                    )
                )
                return

    # -- sync_warp -----------------------------------------------------------------------------------------------------

    def ordered(self, group: Group, op: Op) -> None:
        """``sync_warp`` and others with a mask: the lanes that come must be in the mask, and all lanes of a mask must
        reach it before any of them reaches a mask that shares lanes with it. ``pending`` holds masks of which some
        lanes came."""
        if op.attrs["atom"].orders_through("warp") is None:
            return
        if group.mask is None and not op.operands and not self.pending:
            return
        active = np.ones((group.warps.size, WARP), bool) if group.mask is None else group.mask.reshape(-1, WARP)
        named = self._mask(group, op)
        there = group.existing()
        exists = np.ones((group.warps.size, WARP), bool) if there is None else there.reshape(-1, WARP)
        bits = 1 << np.arange(WARP, dtype=np.int64)
        for row in np.flatnonzero(active.any(1)):
            warp = int(group.warps[row])
            here = int((active[row] * bits).sum())
            mask = int(named[row]) & int((exists[row] * bits).sum())
            if here & ~mask:
                self._outside(group, int(row), op, here & ~mask)
            pending = self.pending.get((group.wave, warp), {})
            # A lane waits at one sync_warp at a time: if it comes to another one, the first did not wait for all.
            for other, (came, their) in list(pending.items()):
                if came & here:
                    self._absent(group, int(row), other & ~came, their)
                    del pending[other]
            came = pending.pop(mask, (0, op))[0] | here
            if mask & ~came:
                pending[mask] = came, op
            if pending:
                self.pending[(group.wave, warp)] = pending
            else:
                self.pending.pop((group.wave, warp), None)

    @staticmethod
    def _mask(group: Group, op: Op) -> Array:
        """The mask that each warp's first active lane names."""
        if not op.operands:
            return np.full(group.warps.size, 0xFFFFFFFF)
        given = op.operands[0]
        value = given.value if isinstance(given, Constant) else group.slots[group.program.slots[given]]
        by_lane = np.broadcast_to(np.asarray(value, np.int64) & 0xFFFFFFFF, (group.lanes_count,)).reshape(-1, WARP)
        if group.mask is None:
            return by_lane[:, 0]
        first = group.mask.reshape(-1, WARP).argmax(1)
        return by_lane[np.arange(first.size), first]

    def left(self, group: Group) -> None:
        self._warps_arrived(group, np.arange(group.warps.size))

    def _warps_arrived(self, group: Group, rows: Array) -> None:
        """Whole warps reach a barrier, or end: the lanes that they waited for at a sync_warp never arrived."""
        if not self.pending:
            return
        for row in rows:
            for mask, (came, op) in self.pending.pop((group.wave, int(group.warps[row])), {}).items():
                self._absent(group, int(row), mask & ~came, op)

    def _absent(self, group: Group, row: int, lanes: int, op: Op) -> None:
        missing = [n for n in range(WARP) if lanes >> n & 1]
        self.findings.add(
            Finding(
                "warp-divergent",
                f"sync_warp names lane {missing[0]}, which does not execute it",
                [Party("waits", op, warp_of(group, row))],
                None,
                f"lanes {missing} of its mask did not execute a sync_warp with that mask before the others went on",
                "move it out of the branch or loop that divides the warp, or give the mask of the lanes that go there",
            )
        )

    def _outside(self, group: Group, row: int, op: Op, lanes: int) -> None:
        self.findings.add(
            Finding(
                "warp-divergent",
                f"lane {(lanes & -lanes).bit_length() - 1} executes a sync_warp whose mask does not name it",
                [Party("waits", op, warp_of(group, row))],
                None,
                "a lane must be in the mask of the sync_warp that it executes",
                "give the mask of the lanes that come",
            )
        )
