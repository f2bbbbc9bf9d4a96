"""The finding of a data race: who did what at which bytes, why nothing orders the two, and what would."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.checks.accessors import Accessors
from tilewright.sim.checks.actors import Actor, actor
from tilewright.sim.checks.early_reads import READERS, Copy, Reader
from tilewright.sim.checks.explain import explain
from tilewright.sim.checks.findings import Finding, Findings, Party
from tilewright.sim.checks.order import HappensBefore
from tilewright.sim.checks.places import global_memory, shared_memory
from tilewright.sim.checks.shadow import NEVER, Shadow, clock_of, site_of, who_of
from tilewright.sim.checks.sites import KernelFacts, Site, kernel_facts

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch

DOES = {"load": "read", "store": "write", "atomic": "atomic"}
DID = {"load": "after a read", "store": "after a write", "atomic": "after an atomic"}


class CellAccess(NamedTuple):
    """An access to the cells ``[n]`` of one buffer, lane by lane: what it does (``load``, ``store``, ``atomic``), the
    number of its site, and its accessor. ``values``: (buffer, access, values, offsets) of a store, or None."""

    verb: str
    number: int
    shadow: Shadow
    cells: Array
    acting: Accessors
    values: Any


class RaceFindings:
    """``owners``: the buffers of the shadows of global memory; other shadows are of shared memory."""

    def __init__(self, findings: Findings, order: HappensBefore, launch: Launch, facts: KernelFacts) -> None:
        self.findings, self.order, self.launch = findings, order, launch
        self.names, self.results_used = facts.shared_names, facts.results_used
        self.owners: dict[Shadow, Any] = {}

    def _report(self, access: CellAccess, bad: Array, before: Array) -> None:
        """Report that the accesses ``bad`` race with the entries ``before``, once for each pair of lines."""
        number, acting = access.number, access.acting
        then = site_of(before[bad])
        for other in np.unique(then):
            mine = bad[then == other]
            key = "data-race", *sorted(str(self.order.sites[n].place) for n in (number, int(other)))
            # The pair whose threads are farthest apart says what orders all pairs of these lines.
            units = np.stack([acting.thread[mine], who_of(before[mine])]) // WARP
            blocks = units // self.order.layout.block
            apart = (units[0] != units[1]).astype(int) + (blocks[0] != blocks[1])
            farthest = int(np.argmax(apart))
            if not self.findings.counted(key, mine.size, int(apart[farthest])):
                found = self._finding(access, int(mine[farthest]), int(other), before)
                self.findings.add(replace(found, count=int(mine.size), apart=int(apart[farthest])), key)

    def _finding(self, access: CellAccess, k: int, other: int, before: Array) -> Finding:
        """The finding of the ``k``-th access and the entry before it, which the site ``other`` left."""
        shadow, acting = access.shadow, access.acting
        wave = acting.group.wave
        now_site, then_site = self.order.sites[access.number], self.order.sites[other]
        shared = shadow not in self.owners
        offset = shadow.cell(int(access.cells[k])) << shadow.shift
        stages = self.order.stages if shared else None
        copy = None if stages is None else self._copy_that_arrives(acting, k) or stages.copy_at(wave, offset)
        parties = [
            Party(DOES[access.verb], now_site.op, self._who(int(acting.identity[k]), now_site, copy)),
            Party(DID[then_site.verb], then_site.op, self._who(int(who_of(before[k])), then_site, copy)),
        ]
        if shared:
            offset %= wave.shared.stride
            memory = shared_memory(offset, 1 << shadow.shift, self.names)
        else:
            memory = global_memory(now_site.op, self.owners[shadow], offset, 1 << shadow.shift)
        threads = [int(acting.thread[k]), int(who_of(before[k]))]
        early = None if copy is None else self._missing_wait(copy, now_site, then_site, acting, before, k)
        if early is not None:
            if then_site.verb == "load":  # the reader is at fault
                parties = [replace(parties[1], does="read"), replace(parties[0], does="before a write")]
            what, why, fix = early
            return Finding("data-race", f"data race in shared memory: {what}", parties, memory, why, fix, early=True)
        why, fix = explain(self.order.layout, now_site, then_site, threads, shared, kernel_facts(self.launch.program))
        what = f"data race in {'shared' if shared else 'global'} memory: nothing orders these two accesses"
        return Finding("data-race", what, parties, memory, why, fix)

    def _missing_wait(
        self, copy: Copy, now: Site, then: Site, acting: Accessors, before: Array, k: int
    ) -> tuple[str, str, str] | None:
        """(what, why, fix) where one of the two is the write of ``copy`` and the other reads without a wait for it, or
        after a wait that did not count its bytes."""
        stages, clocks, layout, group = self.order.stages, acting.clocks, self.order.layout, acting.group
        assert stages is not None
        now_writes = now.verb == "store" and now.agent in ("tma", "cp.async")
        read, write = (then, now) if now_writes else (now, then)
        copies = write.agent == "tma" or (now_writes and write.agent == "cp.async")
        if not copies or (write.verb, read.verb) != ("store", "load") or read.agent not in READERS:
            return None
        # The reader is who waited, or did not: its warp and clock are in the entry if the copy came second.
        if now_writes:
            unit = int(acting.identity[k]) // WARP
            block, within, agent = layout.describe(int(who_of(before[k])) // WARP)
            warp, clock = (block - clocks.first) * layout.warps + within, int(clock_of(before[k]))
            if agent:  # the clock is the number of its group
                known = stages.issued_at(group.wave, layout.agents.index(agent), warp, clock)
                clock = NEVER if known is None else known
        else:
            unit, warp = int(who_of(before[k])) // WARP, int(group.warps[acting.rows[k]])
            clock = int(clocks.now[warp] if acting.snapshot is None else acting.snapshot.now[acting.rows[k]])
        column = unit - int(clocks.base[warp])
        known_then = acting.snapshot.rows[acting.rows[k]] if read is now and acting.snapshot else clocks.clocks[warp]
        knows = int(known_then[column]) if 0 <= column < known_then.size else 0
        found = stages.missing_wait(Reader(group.wave, warp, clock, knows), copy)
        if found is not None:
            return "bytes of a copy are read before a wait for the copy", *found
        over = stages.not_announced(group.wave, copy) if now_writes and now.agent == "tma" else None
        return None if over is None else ("bytes of a copy come after the phase that should wait for them", *over)

    def _copy_that_arrives(self, acting: Accessors, k: int) -> Copy | None:
        """The copy by ``cp.async`` that lands because an arrival at an mbarrier stands for it."""
        landing = self.order.landing
        if len(landing) < 2 or (places := landing[-2].places) is None:
            return None
        arrival, row, lane = landing[-2], int(acting.rows[k]), int(acting.thread[k]) % WARP
        warp = int(landing[-1].notes.warps[row])
        lanes = np.flatnonzero(
            np.ones(arrival.lanes.group.warps.size * WARP, bool) if arrival.mask is None else arrival.mask
        )
        mine = np.flatnonzero(arrival.notes.warps[lanes // WARP] == warp)
        return Copy(0, 0, int(places[mine[0]]), warp, lane) if mine.size else None

    def _who(self, identity: int, site: Site, copy: Copy | None = None) -> Actor:
        unit, lane = divmod(identity, WARP)
        block, warp, agent = self.order.layout.describe(unit)
        for clocks_wave, clocks in self.order.waves.items():
            if clocks.first <= block < clocks.first + len(clocks_wave.coords):
                coords = clocks_wave.coords[block - clocks.first]
                if agent == "tma":  # all whose bytes count at an mbarrier
                    name = "st.async" if site.agent == "st.async" else "TMA"
                    if copy is None:  # the thread that issued it, where it is known, may be of another block
                        return Actor(tuple(int(v) for v in coords), agent=name)
                    own, warp = divmod(copy.warp, self.order.layout.warps)
                    return actor(self.launch, clocks_wave.coords[own], warp, copy.lane, name, clocks.role(copy.warp))
                role = clocks.role((block - clocks.first) * self.order.layout.warps + warp)
                return actor(self.launch, coords, warp, lane, agent, role)
        return Actor((block,))
