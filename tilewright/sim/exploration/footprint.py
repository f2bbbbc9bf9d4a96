"""The effect of one step of a launch on the places where agents meet: mbarriers, barriers, and memory under strong
accesses. Two steps of different agents may change places without an effect unless their footprints clash.

A place that counts (an mbarrier, a barrier of a block or cluster) goes through phases. Arrivals of one phase may change
places with each other; an arrival that completes a phase clashes with a test that found it incomplete, and, on
mbarriers, which name a phase by its parity, one that completes the next phase clashes with a wait for the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tilewright.atoms.mbarrier_state import Mbarriers
from tilewright.atoms.wgmma_flow import AGENT as WGMMA
from tilewright.ir.core import Op
from tilewright.ir.target import WARP, WARPGROUP_WARPS
from tilewright.sim.agents import Effect
from tilewright.sim.barriers import BarrierWait
from tilewright.sim.cluster_barrier import ClusterWait
from tilewright.sim.events import Mask, Observer
from tilewright.sim.group import Group
from tilewright.sim.shared import RANK_SHIFT, SharedBuffer
from tilewright.sim.wave import Wave

CELL = 4  # bytes
ADD, PASSED, TESTED, UNPASSED, READ, WRITE = "add", "passed", "tested", "unpassed", "read", "write"


class PhaseAccess(NamedTuple):
    """``what`` was done in ``phase`` of the place; ``done``: it completed the phase."""

    what: str
    phase: int = 0
    done: bool = False


Footprint = dict[Any, list[PhaseAccess]]
APART, ORDERED, RACE = 0, 1, 2


def relation(first: PhaseAccess, second: PhaseAccess, place: str) -> int:
    """The relation of two accesses in this order: ``APART`` (the order does not matter), ``ORDERED`` (the second needs
    the first), ``RACE`` (they might have come in the other order, with another effect). ``place``: what is there."""
    kinds = {first.what, second.what}
    if place == "wgmma":  # instructions are numbered; a wait for some of them is over when all four warps issued them
        return ORDERED if (first.what, second.what) == (ADD, PASSED) and first.phase <= second.phase else APART
    # Initialising an mbarrier, or a strong store or atomic: whatever else happens there sees another state.
    if WRITE in kinds:
        return RACE
    if kinds <= {PASSED, TESTED, UNPASSED, READ}:
        return APART
    # Arrivals at one phase only add up. One that belongs to the next phase needs the last arrival of this one.
    if kinds == {ADD}:
        return RACE if first.phase != second.phase else APART
    if first.what == ADD:
        # Before an arrival that completed a phase, the parity that was tested named the phase before: complete.
        if second.what == UNPASSED:
            return RACE if first.done else APART
        # An arrival at a later phase does not matter to a wait that this phase has ended already.
        if first.phase > second.phase:
            return APART
        # A wait cannot pass before the arrival that completes its phase; a test could, with the answer "not yet".
        return RACE if second.what == TESTED and first.done and first.phase == second.phase else ORDERED
    if first.what == UNPASSED:
        return RACE if second.done and second.phase == first.phase else APART
    # A wait names its phase by parity: had the next phase been completed before it, it would wait for the one after.
    return RACE if place == "mbarrier" and second.done and second.phase > first.phase else APART


def strongest_relation(first: Footprint, second: Footprint) -> int:
    """The strongest relation of two steps in this order."""
    strongest = APART
    # Most steps touch few places: look for those of the smaller footprint in the larger.
    small, large = (first, second) if len(first) < len(second) else (second, first)
    for place in small:
        if place in large:
            for a in first[place]:
                for b in second[place]:
                    strongest = max(strongest, relation(a, b, place[0]))
                    if strongest == RACE:
                        return RACE
    return strongest


def clash(a: Footprint, b: Footprint) -> bool:
    """Whether the order of two steps matters."""
    return strongest_relation(a, b) != APART or strongest_relation(b, a) != APART


def touches_meeting_place(op: Op) -> bool:
    """Whether ``op`` may touch a place where agents meet."""
    if op.opcode != "call":
        return False
    atom = op.attrs["atom"]
    if atom.blocking or any(order.through in ("barrier", "cluster barrier", "mbarrier") for order in atom.orders):
        return True
    return any(_strong(access) for access in atom.accesses)


def _strong(access: Any) -> bool:
    return not access.agent and (access.role == "mbarrier" or (access.order != "weak" and bool(access.memories)))


class Footprints(Observer):
    """Gathers the footprint of the current step in ``now``."""

    def __init__(self) -> None:
        self.now: Footprint = {}
        self.waves: list[Wave] = []  # their numbers are the same in each run, unlike their addresses
        self.awaited: dict[tuple[int, int], list[Any]] = {}
        self.products: dict[tuple[int, int], int] = {}  # that each warp has issued
        self.committed: dict[tuple[int, int], list[int]] = {}  # how many of them its groups reach to

    def taken(self) -> Footprint:
        taken, self.now = self.now, {}
        return taken

    def wave(self, wave: Wave) -> None:
        self.waves.append(wave)

    def _add(self, place: Any, touch: PhaseAccess) -> None:
        self.now.setdefault(place, []).append(touch)

    # -- mbarriers -----------------------------------------------------------------------------------------------------

    def mbarrier(self, group: Group, what: str, places: np.ndarray, lanes: np.ndarray, done: np.ndarray | None) -> None:
        wave = self.waves.index(group.wave)
        if what == "wait":
            self.awaited[wave, group.tag] = list(dict.fromkeys(int(p) for p in places))
            return
        completed = self._completed(group, places)
        for k, at in enumerate(places):
            place, over = ("mbarrier", wave, int(at)), done is not None and bool(done[k])
            if what in ("init", "inval"):
                self._add(place, PhaseAccess(WRITE))
            elif what == "test":
                self._add(place, PhaseAccess(TESTED, completed[k] - 1) if over else PhaseAccess(UNPASSED, completed[k]))
            else:
                self._add(place, PhaseAccess(ADD, completed[k] - over, over))

    @staticmethod
    def _completed(group: Group, places: np.ndarray) -> list[int]:
        table: Mbarriers = group.wave.kept[Mbarriers]
        rows = table.rows(places)
        return [int(table.completed[row]) if row >= 0 else 0 for row in rows]

    # -- barriers of blocks and clusters -------------------------------------------------------------------------------

    def barrier(self, group: Group, rows: np.ndarray, keys: np.ndarray, target: np.ndarray, waits: bool) -> None:
        completed, wave = group.wave.barriers.completed, self.waves.index(group.wave)
        for key, goal in zip(keys, target, strict=True):
            self._add(("barrier", wave, int(key)), PhaseAccess(ADD, int(goal) - 1, bool(completed[key] >= goal)))

    def cluster(self, group: Group, threads: np.ndarray, waits: bool) -> None:
        if waits:
            return
        state, wave = group.wave.clusters, self.waves.index(group.wave)
        for thread in threads[::WARP]:
            cluster, goal = int(thread) // state.per_cluster, int(state.target[thread])
            self._add(("cluster", wave, cluster), PhaseAccess(ADD, goal - 1, bool(state.completed[cluster] >= goal)))

    def left(self, group: Group) -> None:
        state = group.wave.clusters
        if group.wave.geometry.cluster_size > 1:
            wave = self.waves.index(group.wave)
            for cluster in set((group.warps * WARP // state.per_cluster).tolist()):
                self._add(("cluster", wave, cluster), PhaseAccess(ADD, int(state.completed[cluster]), True))

    def resumes(self, group: Group, wait: Any) -> None:
        wave = self.waves.index(group.wave)
        if isinstance(wait, BarrierWait):
            for key, goal in zip(wait.keys, wait.target, strict=True):
                self._add(("barrier", wave, int(key)), PhaseAccess(PASSED, int(goal) - 1))
        elif isinstance(wait, ClusterWait):
            for cluster, goal in zip(wait.cluster, wait.target, strict=True):
                self._add(("cluster", wave, int(cluster)), PhaseAccess(PASSED, int(goal) - 1))
        elif wait.op.attrs["atom"].orders_through("group", WGMMA) is not None:
            self._products(group, wave, wait.op.attrs["atom"].pending)
        else:
            places = np.array(self.awaited.pop((wave, group.tag), []), np.int64)
            for at, completed in zip(places, self._completed(group, places) if places.size else (), strict=True):
                self._add(("mbarrier", wave, int(at)), PhaseAccess(PASSED, completed - 1))

    # -- wgmma: four warps issue each instruction together -------------------------------------------------------------

    def issue(self, group: Group, effect: Effect) -> None:
        if effect.op.attrs["atom"].in_flight and not effect.op.attrs["atom"].copies:
            wave = self.waves.index(group.wave)
            for warp in group.warps.tolist():
                number = self.products[wave, warp] = self.products.get((wave, warp), 0) + 1
                self._add(("wgmma", wave, warp // WARPGROUP_WARPS), PhaseAccess(ADD, number))

    def ordered(self, group: Group, op: Op) -> None:
        end = op.attrs["atom"].orders_through("group", WGMMA)
        if end is not None and end.release:
            wave = self.waves.index(group.wave)
            for warp in group.warps.tolist():
                self.committed.setdefault((wave, warp), []).append(self.products.get((wave, warp), 0))

    def _products(self, group: Group, wave: int, pending: int) -> None:
        for warp in group.warps.tolist():
            groups = self.committed.get((wave, warp), [])
            if len(groups) > pending:
                self._add(("wgmma", wave, warp // WARPGROUP_WARPS), PhaseAccess(PASSED, groups[-1 - pending]))

    # -- memory --------------------------------------------------------------------------------------------------------

    def access(
        self, verb: str, buffer: Any, group: Group, off: np.ndarray, access: Any, mask: Mask, values: Any
    ) -> None:
        op = group.lanes.op
        if op is None or op.opcode != "call" or buffer is None:
            return
        if not any(_strong(a) for a in op.attrs["atom"].accesses):
            return
        touch = PhaseAccess(READ if verb == "load" else WRITE)
        wave = self.waves.index(group.wave) if isinstance(buffer, SharedBuffer) else -1
        for start in set(_absolute(buffer, group, off, mask)):
            for cell in range(start // CELL, (start + access.nbytes - 1) // CELL + 1):
                self._add(("memory", wave, cell), touch)


def _absolute(buffer: Any, group: Group, off: np.ndarray, mask: Mask) -> Iterator[int]:
    """The address of each active lane's access, different for the shared memory of each block."""
    if not isinstance(buffer, SharedBuffer):
        yield from (int(o) + buffer.base for o in off)
        return
    base = np.broadcast_to(np.asarray(group.smem_base, np.int64), (group.lanes_count,))
    base = base if mask is None else base[mask]
    for o, b in zip(off, base, strict=False):
        rank, block = (int(o) >> RANK_SHIFT) - 1, int(b) // max(buffer.stride, 1)
        if rank >= 0:
            block = block - block % buffer.cluster + rank
        yield buffer.base + block * buffer.stride + (int(o) & ((1 << RANK_SHIFT) - 1))
