"""The observer that makes a trace: it keeps the clocks of all warps while the simulator runs them in its own order.

The simulator's order respects what waits for what, so whatever ends a wait has its time before the warp goes on. The
order among warps that do not wait for each other is the simulator's choice, and the clocks do not depend on it, but for
who is first at a unit that both use.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.atoms.mbarrier_state import Mbarriers
from tilewright.atoms.tensor_memory import COMMIT
from tilewright.ir.core import Location, Op
from tilewright.ir.runtime import LaunchConfig
from tilewright.ir.target import WARP
from tilewright.sim.barriers import NAMED, BarrierWait
from tilewright.sim.cluster_barrier import ClusterWait
from tilewright.sim.events import Observer
from tilewright.sim.profiling import WavefrontCounter
from tilewright.sim.tracing import costs
from tilewright.sim.tracing.clocks import NO_SOURCE, WaitSource, WarpTimes
from tilewright.sim.tracing.names import with_names
from tilewright.sim.tracing.record import Arrow, LaunchRecord, Span, Trace
from tilewright.sim.tracing.rings import Rings

if TYPE_CHECKING:
    from tilewright.sim.agents import Effect
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.wave import Wave

DOES = ("loads", "multiplies", "reads", "stores")


class Tracer(Observer):
    """The tracer of one launch. Spans and arrows hold offsets of mbarriers until the end, which names them."""

    def __init__(self, trace: Trace, name: str, config: LaunchConfig) -> None:
        self.trace, self.name, self.config = trace, name, config
        self.number, self.start = len(trace.launches), trace.cycles
        self.end_time = self.start
        self.spans: list[Span] = []
        self.arrows: list[Arrow] = []
        self.phases: list[
            tuple[int, str, int | None, int, list[WaitSource]]
        ] = []  # block, name, offset, number, arrivals
        self.does: dict[tuple[int, int], set[str]] = defaultdict(set)
        self.clocks: dict[Any, WarpTimes] = {}
        self.blocks: dict[Any, np.ndarray[Any, Any]] = {}
        self.costs: dict[int, tuple[Op, float, str]] = {}
        self.banks = WavefrontCounter()
        self.latency = 0.0  # of the loads that the op that executes has made
        self.landings: dict[int, tuple[WaitSource, int | None]] = {}  # by effect: how it ends waits, and its span
        self.landing: list[tuple[WaitSource, int | None] | None] = []  # innermost last
        self.open: dict[tuple[int, int], int] = {}  # the span of a warp's products that are in no group yet
        self.ring: dict[tuple[int, int], int] = {}  # (block, warp): the mbarrier that it waited for last
        self.filled: set[int] = set()  # mbarriers that TMA completes: offsets
        self.committed: set[int] = set()  # mbarriers at which tcgen05.commit arrives: offsets
        self.waited: dict[int, set[tuple[int, int]]] = defaultdict(set)  # offset: who waits there
        self.refilled: set[int] = set()  # offsets of mbarriers that a warp has waited for last before a load by TMA
        self.of_pairs: set[int] = set()  # spans of loads for an MMA of a pair of blocks
        self.rings = Rings()
        self.copied: int | None = None  # the commit group of the cp.async that lands
        self.read: int | None = None  # the stage that the op that executes has read

    # -- the launch ----------------------------------------------------------------------------------------------------

    def begin(self, launch: Launch) -> None:
        self.warps = launch.geometry.warps
        self.grid = launch.geometry.grid

    def end(self, launch: Launch) -> None:
        # A warp that only waits for what TMA or tcgen05 brings consumes the data: its role is "reads".
        for offset in self.filled | self.committed:
            for who in self.waited[offset]:
                if not self.does[who]:
                    self.does[who].add("reads")
        spans, arrows, phases = with_names(self)
        self.trace.spans += spans
        self.trace.arrows += arrows
        self.trace.phases += phases
        self.trace.roles |= {
            (self.number, *who): ", ".join(d for d in DOES if d in does) for who, does in self.does.items()
        }
        config = self.config
        self.trace.launches.append(LaunchRecord(self.name, config.grid, config.block, self.start, self.end_time))

    def wave(self, wave: Wave) -> None:
        # A wave begins when the last one has ended: its blocks take their places on the multiprocessors.
        x, y, z = wave.coords.T.astype(np.int64)
        self.blocks[wave] = x + self.grid[0] * (y + self.grid[1] * z)
        self.clocks[wave] = WarpTimes(len(wave.coords) * self.warps, self.end_time)

    def left(self, group: Group) -> None:
        clocks = self.clocks[group.wave]
        for warp in map(int, group.warps):
            self._ran(group.wave, warp, float(clocks.now[warp]))
            self.end_time = max(self.end_time, float(clocks.now[warp]))

    def _who(self, wave: Any, warp: int) -> tuple[int, int]:
        """(block, warp in it) of a warp of the wave."""
        slot, within = divmod(int(warp), self.warps)
        return int(self.blocks[wave][slot]), within

    def _span(self, kind: str, who: tuple[int, int], start: float, end: float, name: str = "", **more: Any) -> None:
        if end > start:
            self.spans.append(Span(kind, self.number, *who, start, end, name, **more))
            self.end_time = max(self.end_time, end)

    def _ran(self, wave: Any, warp: int, until: float) -> None:
        clocks = self.clocks[wave]
        self._span("run", self._who(wave, warp), float(clocks.mark[warp]), until)
        clocks.mark[warp] = until

    # -- instructions --------------------------------------------------------------------------------------------------

    def executed(self, group: Group, op: Op) -> None:
        """The active warps spend the time of ``op``; ``access`` has already been called for its accesses to memory."""
        # The op is kept in the entry, so that its id is not given to another one.
        remembered = self.costs.get(id(op))
        if remembered is None:
            remembered = self.costs[id(op)] = (op, costs.cycles(op), costs.agent_of(op))
        _, cost, agent = remembered
        warps = _active(group, group.mask)
        clocks = self.clocks[group.wave]
        if agent:
            self._begin(group, op, warps, agent)
        elif op.opcode == "call":
            self._operands(group, op, warps, cost)
        if agent == costs.CP_ASYNC:  # the warp goes on; the latency is in the copy's span
            self.latency = 0.0
        clocks.now[warps] += cost + self.latency
        self.latency = 0.0
        if op.opcode == "call":
            for order in op.attrs["atom"].orders:
                if order.through == "group":
                    self._grouped(group, op, warps, order)

    def access(self, verb: str, buffer: Any, group: Group, off: Any, access: Any, mask: Any, values: Any) -> None:
        if self.landing:  # an asynchronous unit's, whose time is in its span
            if self.copied is not None and verb == "store" and buffer.word == "shared":
                self.rings.written(off, self.copied)
            return
        warps = _active(group, mask)
        if buffer.word == "shared":
            cost = self.banks.of(group, off, access, mask)[1] / max(1, warps.size)
            latency = costs.SHARED_LATENCY
            self.read = self.rings.read(off) if verb != "store" else None
        else:
            cost = off.size * access.nbytes / max(1, warps.size) / costs.GLOBAL_BYTES
            latency = costs.GLOBAL_LATENCY
        self.clocks[group.wave].now[warps] += cost
        # A store is over for the warp when it is issued. Loads of one op overlap: the latency counts once.
        if verb != "store":
            self.latency = latency

    def _begin(self, group: Group, op: Op, warps: Any, agent: str) -> None:
        """An instruction hands work to an agent that ends it later (loads by TMA: see ``issue``)."""
        clocks = self.clocks[group.wave]
        for warp in map(int, warps):
            now, who = float(clocks.now[warp]), self._who(group.wave, warp)
            groups = clocks.groups[warp, agent]
            if agent == costs.WGMMA:
                duration = costs.wgmma_cycles(op)
                # The four warps of a warpgroup are on the four quarters of the multiprocessor, each with a tensor core.
                unit = clocks.units["tensor cores", who[0], warp % 4]
                start = unit.take(max(now, groups.open), duration)
                groups.open = start + duration
                self._matrix("wgmma", who, op, start, groups.open, now)
                self.does[who].add("multiplies")
            elif agent == costs.TCGEN05:
                duration = costs.tcgen05_cycles(op)
                # One tensor core for the whole block, and what a thread has begun there ends in its order.
                start = clocks.units["tensor core", who[0]].take(max(now, groups.open), duration)
                groups.open = start + duration
                self._matrix("tcgen05", who, op, start, groups.open, now)
                if op.attrs["atom"].ctas == 2:
                    self._of_peer(who, int(self.blocks[group.wave][warp // self.warps ^ 1]))
                self.does[who].add("multiplies")
            elif agent in costs.TENSOR_MEMORY:
                groups.open = max(groups.open, now + costs.tensor_memory_cycles(op))
                name = op.attrs["atom"].mnemonic()
                self._span("tensor memory", who, now, groups.open, name, loc=op.loc, begun=now)
                if agent == costs.TENSOR_MEMORY[0]:
                    self.does[who].add("reads")
            elif agent in costs.STORES:
                size = costs.stored_bytes(op)
                start = clocks.units["TMA", who[0]].take(now + costs.TMA_ISSUE, costs.transfer_cycles(size))
                # The source may be overwritten once it has been read; the sum or store is visible a latency later.
                read = start + costs.transfer_cycles(size)
                clocks.groups[warp, costs.READS].open = read
                clocks.groups[warp, costs.WRITES].open = read + costs.TMA_LATENCY
                self._span(
                    "store",
                    who,
                    start,
                    read + costs.TMA_LATENCY,
                    op.attrs["atom"].mnemonic(),
                    loc=op.loc,
                    begun=now,
                    bytes=size,
                )
                self.does[who].add("stores")
            elif agent == costs.CP_ASYNC:
                # cp.async has no unit that its copies queue at: the warps share the load path with ordinary loads.
                groups.open = now + costs.GLOBAL_LATENCY
                self._span(
                    "cp.async",
                    who,
                    now,
                    groups.open,
                    op.attrs["atom"].mnemonic(),
                    loc=op.loc,
                    begun=now,
                    stage=self.rings.commits[who],
                )
                self.does[who].add("loads")

    def _operands(self, group: Group, op: Op, warps: Any, cost: float) -> None:
        """Registers that come from a stage of a ring, and the mma.sync that multiply them."""
        atom, stage = op.attrs["atom"], self.read
        self.read = None
        multiplies = costs.on_tensor_cores(atom) and "a_offset" in op.attrs
        if not multiplies and (stage is None or "registers" not in op.attrs):
            return
        for warp in map(int, warps):
            now, who = float(self.clocks[group.wave].now[warp]), self._who(group.wave, warp)
            if multiplies:
                stage = self.rings.of_operand(who, op.operands[1], op.attrs["a_offset"])
                self._span("mma", who, now, now + cost, atom.mnemonic(), stage=stage, loc=op.loc)
                self.does[who].add("multiplies")
            elif stage is not None:
                self.rings.loaded(who, op.operands[0], chain.from_iterable(op.attrs["registers"]), stage)
                if (name := atom.mnemonic()).startswith("ldmatrix"):
                    self._span("ldmatrix", who, now, now + cost + self.latency, name, stage=stage, loc=op.loc)

    def _matrix(self, kind: str, who: tuple[int, int], op: Op, start: float, end: float, now: float) -> None:
        """Neighbouring instructions of one group of a warp are one span: those up to a commit."""
        stage, known = self.ring.get(who), self.open.get(who)
        name = op.attrs["atom"].mnemonic()
        # The unit of tcgen05 copies, too, in order with its products.
        if known is not None and (kind == "wgmma" or self.spans[known].name == name):
            self.spans[known] = replace(self.spans[known], end=end)
        else:
            self.open[who] = len(self.spans)
            self._span(kind, who, start, end, name, stage=stage, loc=op.loc, begun=now)

    def _of_peer(self, who: tuple[int, int], peer: int) -> None:
        """The other block of a pair multiplies its half in the same time: a copy behind the warp's open span."""
        made = self.open[who]
        span = replace(self.spans[made], block=peer, source=who[0])
        self.spans[made + 1 : made + 2] = [span]

    def _grouped(self, group: Group, op: Op, warps: Any, order: Any) -> None:
        clocks = self.clocks[group.wave]
        for warp in map(int, warps):
            groups = clocks.groups[warp, order.agent]
            if order.release:
                groups.commit(float(clocks.now[warp]))
                self.open.pop(self._who(group.wave, warp), None)
                if order.agent == costs.CP_ASYNC:
                    self.rings.commits[self._who(group.wave, warp)] += 1
            if order.acquire:
                until = WaitSource(groups.wait(op.attrs["atom"].pending))
                self._resume(group.wave, warp, until, op.attrs["atom"].mnemonic(), op.loc)

    # -- waits ---------------------------------------------------------------------------------------------------------

    def _resume(
        self,
        wave: Any,
        warp: int,
        source: WaitSource,
        name: str,
        loc: Location | None,
        offset: int | None = None,
        phase: int | None = None,
    ) -> None:
        """A wait is over; nothing is noted of one that took no time."""
        clocks, who = self.clocks[wave], self._who(wave, warp)
        now, until = float(clocks.now[warp]), source.time + (costs.BARRIER_LATENCY if source.block >= 0 else 0.0)
        if until <= now:
            return
        self._ran(wave, warp, now)
        self._span("wait", who, now, until, name, stage=offset, loc=loc, phase=phase)
        clocks.now[warp] = clocks.mark[warp] = until
        if source.block >= 0:
            self.arrows.append(
                Arrow(self.number, source.kind, source.block, source.warp, source.time, *who, until, name, offset)
            )

    def resumes(self, group: Group, wait: Any) -> None:
        wave, clocks = group.wave, self.clocks[group.wave]
        loc = wait.op.loc if wait.op is not None else None
        for row, warp in enumerate(map(int, group.warps)):
            if isinstance(wait, BarrierWait):
                key = int(wait.keys[row])
                source = clocks.meetings.get((key, int(wait.target[row])), NO_SOURCE)
                self._resume(wave, warp, source, f"barrier {key % NAMED}", loc)
            elif isinstance(wait, ClusterWait):
                # Warps that exit count as arrived: a phase that they complete has no arrival here, and takes no time.
                source = clocks.meetings.get(("cluster", int(wait.cluster[row]), int(wait.target[row])), NO_SOURCE)
                self._resume(wave, warp, source, "barrier of the cluster", loc)
            else:
                for place in clocks.awaited.pop(warp, []):
                    self._passed(wave, warp, place, loc)

    def _passed(self, wave: Any, warp: int, place: int, loc: Location | None) -> None:
        """The warp has seen the phase that the mbarrier completed last."""
        table: Mbarriers = wave.kept[Mbarriers]
        row = int(table.rows(np.array([place]))[0])
        # The waiting warp may be more than a parity behind only by a mistake: the last complete phase is what it saw.
        phase = int(table.completed[row]) - 1
        source = self.clocks[wave].phases.get((place, phase), NO_SOURCE)
        # A place is (slot of the block in the wave) << 32 | offset in its shared memory.
        offset = place & 0xFFFFFFFF
        who = self._who(wave, warp)
        self.ring[who] = offset
        self.waited[offset].add(who)
        self._resume(wave, warp, source, "mbarrier", loc, offset, phase)

    # -- arrivals ------------------------------------------------------------------------------------------------------

    def barrier(self, group: Group, rows: Any, keys: Any, target: Any, waits: bool) -> None:
        clocks = self.clocks[group.wave]
        for row, key, at in zip(rows, keys, target, strict=True):
            warp = int(group.warps[row])
            clocks.meet((int(key), int(at)), self._source(group.wave, warp))
        completed = group.wave.barriers.completed
        for key, at in sorted(set(zip(keys.tolist(), target.tolist(), strict=True))):
            if completed[key] >= at and (came := clocks.came.pop((key, at), None)):
                block = int(self.blocks[group.wave][key // NAMED])
                self.phases.append((block, f"barrier {key % NAMED}", None, at - 1, came))

    def cluster(self, group: Group, threads: Any, waits: bool) -> None:
        if waits:
            return
        barriers, clocks = group.wave.clusters, self.clocks[group.wave]
        for warp in map(int, np.unique(threads // WARP)):
            number = warp * WARP // barriers.per_cluster
            target = int(barriers.target[warp * WARP : (warp + 1) * WARP].max())
            clocks.meet(("cluster", number, target), self._source(group.wave, warp, costs.CLUSTER_LATENCY))
            if barriers.completed[number] >= target and (came := clocks.came.pop(("cluster", number, target), None)):
                block = int(self.blocks[group.wave][number * barriers.per_cluster // (self.warps * WARP)])
                self.phases.append((block, "barrier of the cluster", None, target - 1, came))

    def _source(self, wave: Any, warp: int, after: float = 0.0) -> WaitSource:
        return WaitSource(float(self.clocks[wave].now[warp]) + after, "run", *self._who(wave, warp))

    def mbarrier(self, group: Group, what: str, places: Any, lanes: Any, done: Any) -> None:
        wave, clocks = group.wave, self.clocks[group.wave]
        if what == "wait":
            # Each place once for a warp, however many of its lanes wait.
            for lane, place in zip(lanes, places, strict=True):
                awaited = clocks.awaited.setdefault(int(group.warps[lane // WARP]), [])
                if int(place) not in awaited:
                    awaited.append(int(place))
        elif what == "test":
            warps = group.warps[lanes // WARP]
            for warp, place in sorted(set(zip(warps[done].tolist(), places[done].tolist(), strict=True))):
                self._passed(wave, warp, place, group.lanes.op.loc)
        elif what in ("arrive", "complete"):
            for i, place in enumerate(map(int, places)):
                # Bytes of a copy arrive, not a thread: the copy is the source, and fills the stage of this mbarrier.
                landing = self.landing[-1] if self.landing else None
                if landing is not None:
                    source, span = landing
                    if span is not None:
                        self._fills(span, int(self.blocks[wave][place >> 32]), place & 0xFFFFFFFF)
                    elif source.kind == "tcgen05":
                        self.committed.add(place & 0xFFFFFFFF)
                else:
                    warp = int(group.warps[lanes[i] // WARP])
                    far = place >> 32 != warp // self.warps
                    source = self._source(wave, warp, costs.CLUSTER_LATENCY if far else 0.0)
                clocks.arrive(place, source)
            table: Mbarriers = wave.kept[Mbarriers]
            for place in map(int, np.unique(places[done])):
                row = int(table.rows(np.array([place]))[0])
                phase = int(table.completed[row]) - 1
                clocks.complete(place, phase)
                block, offset = int(self.blocks[wave][place >> 32]), place & 0xFFFFFFFF
                self.phases.append((block, "mbarrier", offset, phase, clocks.came.pop(place, [])))

    def _fills(self, span: int, block: int, offset: int) -> None:
        """A load by TMA arrives at the mbarrier of a block: its own, or one that the load is multicast to."""
        self.filled.add(offset)
        loaded = self.spans[span] = replace(self.spans[span], stage=offset)
        if span in self.of_pairs and block % 2 == 0:
            # The bytes count at the pair's first block, and land in that of the same rank as the loading one.
            block += loaded.block % 2
        if block != loaded.block:
            self.spans.append(replace(loaded, kind="multicast", block=block, source=loaded.block))

    # -- asynchronous effects that tell an mbarrier --------------------------------------------------------------------

    def issue(self, group: Group, effect: Effect) -> None:
        agent = costs.agent_of(effect.op)
        clocks = self.clocks[group.wave]
        if effect.lane is not None and agent == costs.TMA:
            warp = int(group.warps[effect.lane // WARP])
            now, who = float(clocks.now[warp]), self._who(group.wave, warp)
            duration = costs.transfer_cycles(effect.size)
            start = clocks.units["TMA", who[0]].take(now + costs.TMA_ISSUE, duration)
            end = start + duration + costs.TMA_LATENCY
            self.landings[id(effect)] = WaitSource(end, "load", *who), len(self.spans)
            if getattr(effect.op.attrs["atom"], "pair", False):
                self.of_pairs.add(len(self.spans))
            if who in self.ring:
                self.refilled.add(self.ring[who])
            self._span(
                "load",
                who,
                start,
                end,
                effect.op.attrs["atom"].mnemonic(),
                loc=effect.op.loc,
                begun=now,
                bytes=effect.size,
            )
            self.does[who].add("loads")
        elif agent == costs.CP_ASYNC:
            self.rings.issued(effect, self._who(group.wave, int(_active(group, effect.mask)[0])))
        elif effect.op.attrs["atom"].name == COMMIT:  # arrives when all that the warp's thread has begun is done
            warp = int(_active(group, effect.mask)[0])
            done, who = clocks.groups[warp, costs.TCGEN05].open, self._who(group.wave, warp)
            self.open.pop(who, None)
            self.landings[id(effect)] = WaitSource(max(float(clocks.now[warp]), done), "tcgen05", *who), None
        # These arrive at an mbarrier when the copies that the warp has issued so far have landed.
        elif agent not in (costs.WGMMA, costs.TCGEN05, *costs.TENSOR_MEMORY, *costs.STORES):
            # cp.async.mbarrier.arrive, st.async
            warps = _active(group, effect.mask)
            waits = [clocks.groups[int(w), costs.CP_ASYNC].open for w in warps]
            time = max([float(clocks.now[warps].max()), *waits])
            self.landings[id(effect)] = WaitSource(time, "run", *self._who(group.wave, int(warps[0]))), None

    def land(self, effect: Effect, begins: bool) -> None:
        if begins:
            self.landing.append(self.landings.pop(id(effect), None))
            self.copied = self.rings.landing(effect)
        else:
            self.landing.pop()
            self.copied = None


def _active(group: Group, mask: Any) -> Any:
    """The numbers in the wave of the warps with an active lane."""
    return group.warps if mask is None else group.warps[mask.reshape(-1, WARP).any(1)]
