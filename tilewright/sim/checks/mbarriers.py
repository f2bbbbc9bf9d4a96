"""mbarriers: initialised where all who use them see it, the right number of bytes, and no data in their place.

What an mbarrier refuses at once (more arrivals than it counts, a use before any init, a second init) is a fault of the
simulator (``atoms/mbarrier_state.py``); here is what depends on who knows what, and on when bytes come.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.atoms.mbarrier_state import Mbarriers
from tilewright.errors import SimulationError, byte_count
from tilewright.ir.core import Op
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.checks.actors import Actor, actor, actor_in_wave, lanes_of, thread_of
from tilewright.sim.checks.checker import SharedChecker
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.places import MemoryPlace, flat_offsets, shared_memory
from tilewright.sim.checks.sites import kernel_facts
from tilewright.sim.shared import RANK_SHIFT, SharedBuffer

if TYPE_CHECKING:
    from tilewright.sim.agents import Effect
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.wave import Wave

BYTES = 8


class Barrier:
    """One mbarrier: who initialised it, when, and what others may know of that."""

    __slots__ = ("op", "warp", "lane", "clock", "fenced", "phase", "users", "expects", "brings", "arrives", "partial")

    def __init__(self, op: Op, warp: int, lane: int, clock: int) -> None:
        self.op, self.warp, self.lane, self.clock = op, warp, lane, clock
        self.fenced = False  # by fence.mbarrier_init (or a proxy fence) of the initialising thread
        self.phase = -1  # of the cluster's barrier that this thread arrived at after the fence
        self.users: set[int] = set()  # threads of the wave that were seen to know of it, or reported
        self.expects: Op | None = None  # what announced bytes last, and what brought some
        self.brings: Op | None = None
        self.arrives: tuple[int, Op] | None = None  # the last arrival that completed no phase, and in which it was
        self.partial = -1  # the last phase of whose bytes only some had come

    def used_first_by(self, warp: int, lane: int) -> bool:
        """Whether this is the first use by a thread: whether it knows of the init is asked then only."""
        thread = warp * WARP + lane % WARP
        first = thread not in self.users
        self.users.add(thread)
        return first


class MbarrierRules(SharedChecker):
    uses_order, each_effect = True, False

    def begin(self, launch: Launch) -> None:
        self.launch = launch
        self.names = kernel_facts(launch.program).shared_names
        self.known: dict[Wave, dict[int, Barrier]] = {}
        self.span: dict[Wave, tuple[int, int]] = {}  # the bytes of a block between the first and the last mbarrier
        self.counted: dict[int, bool] = {}  # by an op's id: whether what it brings counts at an mbarrier
        self.passed: dict[Wave, Array] = {}  # for each warp the phase of the cluster's barrier it waited for last

    def wave(self, wave: Wave) -> None:
        self.known[wave] = {}
        self.span[wave] = (1 << 60, -1)
        self.passed[wave] = np.zeros(len(wave.coords) * wave.geometry.warps, np.int64)

    def _place(self, wave: Wave, place: int) -> MemoryPlace:
        return shared_memory(place & 0xFFFFFFFF, BYTES, self.names)

    # -- init, and who sees it -----------------------------------------------------------------------------------------

    def mbarrier(self, group: Group, what: str, places: Array, lanes: Array, done: Array | None) -> None:
        wave, op = group.wave, group.lanes.op
        if what == "init":
            return self._init(group, op, places, lanes)
        known = self.known[wave]
        if what == "inval":
            for place in places:
                known.pop(int(place), None)
            return None
        if what == "complete":
            return self._bytes_come(group, op, places, lanes)
        table = wave.kept[Mbarriers]
        fresh = np.ones(places.size, bool)  # the first lane of each warp, and of each place in it
        fresh[1:] = (places[1:] != places[:-1]) | (lanes[1:] // WARP != lanes[:-1] // WARP)
        firsts = zip(places[fresh][::-1].tolist(), lanes[fresh][::-1].tolist(), strict=True)
        by_warp = {(place, lane // WARP): lane for place, lane in firsts}
        expects, warps = op.attrs["atom"].expects_bytes, group.warps.tolist()
        arrived = [place for place, _ in by_warp] if what == "arrive" and not expects else []
        counted = dict(zip(arrived, table.rows(np.array(arrived)).tolist(), strict=True)) if arrived else {}
        for (place, row), lane in by_warp.items():
            barrier = known.get(place)
            if barrier is None:
                continue
            if expects:
                barrier.expects = op
            elif what == "arrive":
                number = counted[place]
                if table.pending[number] < table.expected[number]:
                    barrier.arrives = int(table.completed[number]), op
            warp = warps[row]
            if barrier.used_first_by(warp, lane) and not self._sees(wave, barrier, warp, lane % WARP):
                self._init_not_visible(group, op, barrier, place, lane)
        return None

    def _init(self, group: Group, op: Op, places: Array, lanes: Array) -> None:
        wave, clocks = group.wave, self.order.waves[group.wave]
        low, high = self.span[wave]
        for place, lane in zip(map(int, places), map(int, lanes), strict=True):
            warp = int(group.warps[lane // WARP])
            self.known[wave][place] = Barrier(op, warp, lane % WARP, int(clocks.now[warp]))
            start = place & 0xFFFFFFFF
            low, high = min(low, start), max(high, start + BYTES)
        self.span[wave] = low, high

    def _sees(self, wave: Wave, barrier: Barrier, warp: int, lane: int) -> bool:
        clocks = self.order.waves[wave]
        if warp == barrier.warp and lane == barrier.lane:
            return True
        if warp // clocks.layout.warps == barrier.warp // clocks.layout.warps and clocks.floor[warp] > barrier.clock:
            return True  # all threads of the block have met since
        if self.order.knows(wave, warp, barrier.warp, barrier.clock, barrier.lane):
            return True
        return 0 <= barrier.phase <= int(self.passed[wave][warp])

    def _saw_at_issue(self, wave: Wave, effect: Effect, barrier: Barrier, lane: int) -> bool:
        """Whether lane ``lane`` of the group that issued an effect knew of the init when it did."""
        snapshot, clocks, row = effect.notes, self.order.waves[wave], lane // WARP
        warp = int(snapshot.warps[row])
        if warp == barrier.warp and lane % WARP == barrier.lane:
            return True
        identity, cluster = int(clocks.unit[barrier.warp]) * WARP + barrier.lane, int(clocks.cluster[barrier.warp])
        columns, known = self.order.layout.columns(identity), snapshot.lane_clocks.get(warp)
        if int(snapshot.rows[row, columns].max()) >= barrier.clock:
            return True
        if known is not None and known.knows(cluster, columns, identity, barrier.clock):
            return True
        phases = snapshot.phases
        return phases is None or 0 <= barrier.phase <= int(phases[1][row])

    def _init_not_visible(self, group: Group, op: Op, barrier: Barrier, place: int, lane: int) -> None:
        """Report a thread to which the init need not be visible; across blocks of a cluster the repair differs."""
        wave, per = group.wave, group.wave.geometry.warps
        same = barrier.warp // per == int(group.warps[lane // WARP]) // per
        waits = (
            "sync_threads() by all"
            if same
            else "cluster_arrive_relaxed(); cluster_wait() by all threads of the cluster"
        )
        self.findings.add(
            Finding(
                "mbarrier-init",
                "an mbarrier is used by a thread to which its init need not be visible",
                [
                    Party("used", op, thread_of(group, lane)),
                    Party("after the init", barrier.op, actor_in_wave(wave, barrier.warp, barrier.lane)),
                ],
                self._place(wave, place),
                "no barrier orders the init before this use",
                f"mbarrier_init_fence() by the thread that initialises, then {waits}",
            )
        )

    def ordered(self, group: Group, op: Op) -> None:
        if op.attrs["atom"].publishes_init:
            unfenced = [barrier for barrier in self.known[group.wave].values() if not barrier.fenced]
            active = None if group.mask is None else group.mask
            rows = {w: row for row, w in enumerate(group.warps.tolist())} if unfenced else {}
            for barrier in unfenced:
                row = rows.get(barrier.warp)
                if row is not None and (active is None or active[row * WARP + barrier.lane]):
                    barrier.fenced = True

    def cluster(self, group: Group, threads: Array, waits: bool) -> None:
        wave = group.wave
        target = wave.clusters.target
        if waits:
            self.passed[wave][np.unique(threads // WARP)] = target[threads[0]]
            return
        warps = set(map(int, np.unique(threads // WARP)))
        for barrier in self.known[wave].values():
            if barrier.fenced and barrier.phase < 0 and barrier.warp in warps:
                barrier.phase = int(target[barrier.warp * WARP + barrier.lane])

    # -- bytes ---------------------------------------------------------------------------------------------------------

    def issue(self, group: Group, effect: Effect) -> None:
        self.issued_together(group, [effect])

    def issued_together(self, group: Group, effects: Sequence[Effect]) -> None:
        # Effects of one op have one snapshot, and between them no phase is completed.
        effect = effects[0]
        table = group.wave.kept.get(Mbarriers)
        counted = self.counted.get(id(effect.op))
        if counted is None:
            counted = any(a.role == "mbarrier" for a in effect.op.attrs["atom"].accesses)
            self.counted[id(effect.op)] = counted
        if table is None or not counted:
            return
        completed, passed = table.completed, self.passed[group.wave][group.warps]
        notes, known = effect.notes, effect.notes.phases
        if known is not None and not (np.array_equal(known[0], completed) and np.array_equal(known[1], passed)):
            notes, known = copy(notes), None
            self.order.snapshots.add(notes)
            for one in effects:
                one.notes = notes
        if known is None:
            notes.phases = completed.copy(), passed

    def _bytes_come(self, group: Group, op: Op, places: Array, lanes: Array) -> None:
        """Bytes of asynchronous copies count at the mbarriers ``places``: was the initialisation visible to the copy's
        proxy and to the warp that issued it, and are bytes expected in this phase? ``lanes``: the issuer of each, where
        several copies land together."""
        wave, table = group.wave, group.wave.kept[Mbarriers]
        effect = self.order.landing[-1] if self.order.landing else None
        rows = dict(zip(places.tolist(), table.rows(places).tolist(), strict=True))
        joint = lanes.tolist() if effect is not None and effect.together else []
        for k, place in enumerate(places.tolist()):
            barrier = self.known[wave].get(place)
            if barrier is None:
                continue
            barrier.brings = op
            row = rows[place]
            if row >= 0 and table.bytes[row]:
                barrier.partial = int(table.completed[row])
            if effect is None:
                continue
            lane = joint[k] if joint else effect.issuer
            warp = int(group.warps[lane // WARP])
            if not barrier.fenced:
                self._unfenced(wave, op, barrier, place, actor_in_wave(wave, warp, lane % WARP))
            if barrier.used_first_by(warp, lane) and not self._saw_at_issue(wave, effect, barrier, lane):
                self._init_not_visible(group, op, barrier, place, lane)
            self._check_phase_is_open(wave, table, effect, op, barrier, place, row)

    def _unfenced(self, wave: Wave, op: Op, barrier: Barrier, place: int, issuer: Actor) -> None:
        self.findings.add(
            Finding(
                "mbarrier-init",
                "TMA signals an mbarrier whose init it need not see",
                [
                    Party("signalled", op, issuer),
                    Party("after the init", barrier.op, actor_in_wave(wave, barrier.warp, barrier.lane)),
                ],
                self._place(wave, place),
                "no fence makes the init visible to the async proxy",
                "cute.arch.mbarrier_init_fence() by the thread that initialises, after mbarrier_init and before the "
                "barrier",
            )
        )

    def _check_phase_is_open(
        self, wave: Wave, table: Mbarriers, effect: Effect, op: Op, barrier: Barrier, place: int, row: int
    ) -> None:
        """Bytes that come when the phase in which they were asked for is over."""
        known = effect.notes.phases
        if known is None or row < 0 or row >= known[0].size:
            return
        # ``settle`` has counted this arrival of bytes already: a phase that it completed was open until now.
        before = int(known[0][row])
        if int(table.bytes[row]) < 0 and int(table.completed[row]) > before:
            why = "the phase was complete before all the bytes came: fewer were announced than copies bring"
            self._wrong_bytes(wave, barrier, place, op, why)

    def _wrong_bytes(self, wave: Wave, barrier: Barrier, place: int, op: Op | None, why: str) -> None:
        parties = [Party("announced", barrier.expects)] if barrier.expects is not None else []
        if (op or barrier.brings) is not None:
            parties.append(Party("bytes come", op or barrier.brings))
        parties = parties or [Party("initialised", barrier.op)]
        self.findings.add(
            Finding(
                "mbarrier-bytes",
                "the bytes that an mbarrier's phase waits for are not those that come",
                parties,
                self._place(wave, place),
                why,
                "expect the sum of the bytes of all copies that name this mbarrier in one phase (boxes count whole, "
                "also where they hang over the edge; multicast counts what each block receives): size_in_bytes(dtype, "
                "layout) for each",
            )
        )

    def end(self, launch: Launch) -> None:
        self._left_over("when the kernel ends")

    def error(self, launch: Launch, error: SimulationError) -> None:
        if str(error).startswith("deadlock"):
            self._left_over("when nothing can go on")

    def _left_over(self, when: str) -> None:
        """Bytes that were not expected or that never came, and phases that only some have arrived for.

        A phase that is only announced when the kernel ends (a barrier made ready for a next time) is not among these.
        """
        ended = when.startswith("when the kernel")
        for wave, barriers in self.known.items():
            table = wave.kept.get(Mbarriers)
            if table is None:
                continue
            for place, barrier in barriers.items():
                row = int(table.rows(np.array([place]))[0])
                if row < 0:
                    continue
                left, phase = int(table.bytes[row]), int(table.completed[row])
                if left < 0 or (left and (not ended or barrier.partial == phase)):
                    awaited = f"{byte_count(left)} {'is' if left == 1 else 'are'} still awaited"
                    text = awaited if left > 0 else f"{byte_count(-left)} more came than announced"
                    self._wrong_bytes(wave, barrier, place, None, f"{text} {when}: {table.describe(row)}")
                elif self.thorough and ended and table.pending[row]:
                    if barrier.arrives is not None and barrier.arrives[0] == phase:
                        self._unfinished(wave, table, barrier, place, row, barrier.arrives[1])

    def _unfinished(self, wave: Wave, table: Mbarriers, barrier: Barrier, place: int, row: int, last: Op) -> None:
        """A phase that never completes, and that no wait has shown to hang, since no later wait is for it."""
        block = (place >> 32) - (place >> 32) % self.launch.geometry.cluster_size
        missing = [
            actor(self.launch, wave.coords[block + rank], warp)
            for rank, warp in table.absent(row)
            if block + rank < len(wave.coords)
        ]
        who = "; arrived in the last phase and not in this one: " + ", ".join(map(str, missing[:4])) if missing else ""
        self.findings.add(
            Finding(
                "mbarrier-arrivals",
                "a phase of an mbarrier is begun and never completed",
                [Party("last arrival", last), Party("initialised", barrier.op)],
                self._place(wave, place),
                f"the kernel ends with {table.describe(row)}{who}: a wait for this phase would never end",
                "the count of mbarrier_init (the groups of a pipeline) is the number of arrivals of each phase; let "
                "all participants arrive equally often",
            )
        )

    # -- data in their place -------------------------------------------------------------------------------------------

    def pointed(
        self, verb: str, buffer: Any, group: Group, pointer: Any, access: Any, mask: Array | None, values: Any
    ) -> None:
        if isinstance(buffer, SharedBuffer):
            low, high = self.span[group.wave]
            least, most, _ = pointer.root.range
            remote = most + pointer.add >> RANK_SHIFT
            if remote or (least + pointer.add < high and most + pointer.add + access.nbytes > low):
                super().pointed(verb, buffer, group, pointer, access, mask, values)

    def access(
        self, verb: str, buffer: Any, group: Group, off: Array, access: Any, mask: Array | None, values: Any
    ) -> None:
        """Ordinary accesses to the eight bytes of an mbarrier in use are mistakes."""
        low, high = self.span.get(group.wave, (0, -1))
        if high < 0 or not isinstance(buffer, SharedBuffer):
            return
        at = flat_offsets(buffer, group, off, mask)
        stride, known = group.wave.shared.stride, self.known[group.wave]
        within = at % stride
        near = (within < high) & (within + access.nbytes > low)
        if not near.any():
            return
        touched: dict[int, list[tuple[Barrier, int]]] = {}  # by place: the mbarriers that an access there touches
        for place in set(at[near].tolist()):  # mostly all lanes of a block read one word beside the mbarriers
            block, start = divmod(place, stride)
            cells = range(start // BYTES, (start + access.nbytes - 1) // BYTES + 1)
            found = ((known.get((block << 32) + cell * BYTES), cell * BYTES) for cell in cells)
            touched[place] = [(barrier, cell) for barrier, cell in found if barrier is not None]
        if not any(touched.values()):
            return
        for k in np.flatnonzero(near):
            for barrier, start in touched[int(at[k])]:
                self._used_as_data(group, verb, int(lanes_of(group, mask)[k]), barrier, start)

    def _used_as_data(self, group: Group, verb: str, lane: int, barrier: Barrier, start: int) -> None:
        op = group.lanes.op
        self.findings.add(
            Finding(
                "mbarrier-memory",
                "the bytes of an mbarrier are accessed as data while it is in use",
                [
                    Party("read" if verb == "load" else "write", op, thread_of(group, lane)),
                    Party("an mbarrier since", barrier.op),
                ],
                shared_memory(start, BYTES, self.names),
                "the bytes of an mbarrier are opaque until mbarrier.inval",
                "give data and mbarriers memory of their own; mbarrier.inval ends an mbarrier's life",
            )
        )
