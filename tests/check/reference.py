"""A slow, plain checker for data races: one thread at a time, straight from the PTX ISA's memory consistency model.

Every thread has a vector clock (what happened before its next operation), every cell of four bytes all its accesses.
Two accesses to a cell race if they are of different agents, one writes, they are not morally strong (both strong, with
scopes that cover both threads), and neither happened before the other. It is the oracle of ``tilewright.sim.checks``:
no short cuts, no warps that stand for their lanes. It knows one wave of blocks without clusters, and ``cp.async``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from tilewright.ir.effects import SCOPES
from tilewright.sim.checks.places import flat_offsets
from tilewright.sim.events import Observer
from tilewright.sim.shared import SharedBuffer

WARP = 32
Clock = np.ndarray[Any, Any]
CTA, GPU = SCOPES.index("cta"), SCOPES.index("gpu")
VERBS = {"load": ("read", "update"), "store": ("write", "update"), "atomic": ("update",)}


class Access(NamedTuple):
    """``agent``: a thread, or the copies of one; ``scope``: 0 for a weak access."""

    agent: int
    clock: int
    writes: bool
    scope: int
    line: str
    effect: Any


class Released(NamedTuple):
    """What a strong write released: the block and the scope of the release, and all that happened before it."""

    block: int
    scope: int
    clock: Clock


class Reference(Observer):
    """``races``: pairs of Python lines, the later one first."""

    def __init__(self) -> None:
        self.races: set[tuple[str, str]] = set()

    def begin(self, launch: Any) -> None:
        self.per = launch.geometry.warps * WARP
        self.threads = launch.geometry.blocks * self.per
        # Agent n < threads is thread n; agent threads + n are its copies, whose clock is the number of their group.
        self.known = np.zeros((self.threads, 2 * self.threads), np.int64)
        self.known[np.arange(self.threads), np.arange(self.threads)] = 1
        self.cells: dict[Any, list[Access]] = defaultdict(list)
        self.phases: dict[Any, Clock] = defaultdict(self._nothing)  # what has been released at barriers and mbarriers
        self.waits: dict[int, Any] = {}  # by thread: the phase that it waits for
        self.flags: dict[Any, list[Released]] = defaultdict(list)
        self.fences: list[list[Released]] = [[] for _ in range(self.threads)]  # of each thread, with its clock then
        self.fenced: list[list[int]] = [[] for _ in range(self.threads)]
        self.seen: list[list[tuple[int, Released]]] = [[] for _ in range(self.threads)]  # by relaxed loads
        self.group = np.ones(self.threads, np.int64)  # the group of copies that is open
        self.issued: dict[int, tuple[Any, Clock, Clock]] = {}  # effects: what each thread knew, and its open group
        self.landing: Any = None

    def _nothing(self) -> Clock:
        return np.zeros(2 * self.threads, np.int64)

    # -- threads -------------------------------------------------------------------------------------------------------

    def _threads(self, group: Any, mask: Any = None) -> list[int]:
        rows = np.arange(group.lanes_count) if mask is None else np.flatnonzero(mask)
        found = [int(group.warps[row // WARP]) * WARP + int(row) % WARP for row in rows]
        for thread in found:
            self._resume(thread)
        return found

    def _resume(self, thread: int) -> None:
        """A thread that waited acts again: its wait has ended, so that it has acquired what that phase released."""
        if thread in self.waits:
            self._acquire(thread, self.phases[self.waits.pop(thread)])

    def _acquire(self, thread: int, clock: Clock) -> None:
        np.maximum(self.known[thread], clock, out=self.known[thread])

    def _release(self, thread: int) -> Clock:
        """What happened before now, for others to acquire; what the thread does next comes after that."""
        clock = self.known[thread].copy()
        self.known[thread, thread] += 1
        return clock

    # -- memory --------------------------------------------------------------------------------------------------------

    def access(self, verb: str, buffer: Any, group: Any, off: Any, access: Any, mask: Any, values: Any) -> None:
        op, shared = group.lanes.op, isinstance(buffer, SharedBuffer)
        stated = _stated(op, verb, shared)
        scope = 0 if stated is None or stated.order == "weak" else SCOPES.index(stated.scope)
        where = flat_offsets(buffer, group, off, mask) if shared else off
        copies = self.landing is not None
        rows = np.arange(group.lanes_count) if mask is None else np.flatnonzero(mask)
        threads = [int(group.warps[row // WARP]) * WARP + int(row) % WARP for row in rows]
        for thread, at in zip(threads, where.tolist(), strict=True):
            if copies:
                _, every, open_group = self.issued[id(self.landing)]
                agent, clock, known = self.threads + thread, int(open_group[thread]), every[thread]
            else:
                self._resume(thread)
                agent, clock, known = thread, int(self.known[thread, thread]), self.known[thread]
            for cell in range(at // 4, (at + access.nbytes + 3) // 4):
                mine = Access(agent, clock, verb != "load", scope, _line(op), self.landing)
                place = "shared" if shared else id(buffer), cell
                self._check(self.cells[place], mine, known)
                self.cells[place].append(mine)
            if scope:
                self._strong(thread, ("shared" if shared else id(buffer), at), verb, scope, stated.order)

    def _check(self, before: list[Access], mine: Access, known: Clock) -> None:
        for other in before:
            ordered = other.clock <= known[other.agent] or (mine.effect is not None and other.effect is mine.effect)
            if (mine.writes or other.writes) and not ordered and not self._morally_strong(mine, other):
                self.races.add((mine.line, other.line))

    def _morally_strong(self, one: Access, other: Access) -> bool:
        return min(one.scope, other.scope) >= self._covers(self._block(one.agent), self._block(other.agent))

    def _block(self, agent: int) -> int:
        return agent % self.threads // self.per

    @staticmethod
    def _covers(one: int, other: int) -> int:
        """The scope that two blocks need."""
        return CTA if one == other else GPU

    def _strong(self, thread: int, place: Any, verb: str, scope: int, order: str) -> None:
        """A flag: a release pattern synchronizes with an acquire pattern that observes it."""
        block, flag = self._block(thread), self.flags[place]
        if verb != "store":
            for released in list(flag):
                level = min(released.scope, scope)
                if level < self._covers(released.block, block):
                    continue
                if order in ("acquire", "acq_rel"):
                    self._acquire(thread, released.clock)
                else:
                    item = Released(released.block, level, released.clock)
                    self.seen[thread].append((int(self.known[thread, thread]), item))
        if verb == "load":
            return
        if verb == "store":
            flag.clear()  # an atomic carries on what was released before; a store does not
        if order in ("release", "acq_rel"):
            flag.append(Released(block, scope, self._release(thread)))
            return
        first = block * self.per
        for other in range(first, first + self.per):  # fences of this thread, and of those known to have fenced
            for when, fence in zip(self.fenced[other], self.fences[other], strict=True):
                if other == thread or when <= self.known[thread, other]:
                    flag.append(Released(block, min(fence.scope, scope), fence.clock))

    # -- synchronisation -----------------------------------------------------------------------------------------------

    def ordered(self, group: Any, op: Any) -> None:
        threads = self._threads(group, group.mask)
        for order in op.attrs["atom"].orders:
            if order.through == "warp":
                mask = int(op.operands[0].value) if op.operands else -1  # of the lanes that meet: a literal
                self._warps_meet([thread for thread in threads if mask >> thread % WARP & 1])
            elif order.through == "group":
                for thread in threads:
                    if order.release:
                        self.group[thread] += 1
                    else:
                        over = self.group[thread] - 1 - int(op.attrs["atom"].pending)
                        copies = self.threads + thread
                        self.known[thread, copies] = max(self.known[thread, copies], over)
            elif not order.through and order.proxies == ("generic",):
                for thread in threads:
                    self._fence(thread, SCOPES.index(order.scope))

    def _warps_meet(self, threads: list[int]) -> None:
        for warp in {thread // WARP for thread in threads}:
            lanes = [thread for thread in threads if thread // WARP == warp]
            together = np.maximum.reduce([self._release(lane) for lane in lanes])
            for lane in lanes:
                self._acquire(lane, together)

    def _fence(self, thread: int, scope: int) -> None:
        block = self._block(thread)
        first, acquired = block * self.per, set[int]()
        for other in range(first, first + self.per):
            for when, released in self.seen[other]:
                if id(released.clock) in acquired:  # most threads have seen the same releases
                    continue
                if other == thread or when <= self.known[thread, other]:
                    if min(scope, released.scope) >= self._covers(released.block, block):
                        self._acquire(thread, released.clock)
                        acquired.add(id(released.clock))
        self.fenced[thread].append(int(self.known[thread, thread]))
        self.fences[thread].append(Released(block, scope, self._release(thread)))

    def barrier(self, group: Any, rows: Any, keys: Any, target: Any, waits: bool) -> None:
        for row, key, phase in zip(rows.tolist(), keys.tolist(), target.tolist(), strict=True):
            for lane in range(WARP):
                thread = int(group.warps[row]) * WARP + lane
                self._resume(thread)
                place = "barrier", key, phase
                np.maximum(self.phases[place], self._release(thread), out=self.phases[place])
                if waits:
                    self.waits[thread] = place

    def mbarrier(self, group: Any, what: str, places: Any, lanes: Any, done: Any) -> None:
        """Each mbarrier is used for one phase."""
        mask = np.zeros(group.lanes_count, bool)
        mask[lanes] = True
        for k, thread in enumerate(self._threads(group, mask)):
            place = "mbarrier", int(places[k])
            if what == "arrive":
                np.maximum(self.phases[place], self._release(thread), out=self.phases[place])
            elif what == "wait" or (what == "test" and done[k]):
                self.waits[thread] = place

    def issue(self, group: Any, effect: Any) -> None:
        threads, known, opened = self._threads(group, effect.mask), self.known.copy(), self.group.copy()
        for thread in threads:
            known[thread] = self._release(thread)
        self.issued[id(effect)] = effect, known, opened

    def land(self, effect: Any, begins: bool) -> None:
        self.landing = effect if begins else None


def _stated(op: Any, verb: str, shared: bool) -> Any:
    """What the class of an instruction says of its access of this kind."""
    if op.opcode != "call":
        return None
    accesses = [a for a in op.attrs["atom"].accesses if a.does in VERBS[verb] and a.role != "mbarrier"]
    mine = [a for a in accesses if any(space.value in ("smem", "dsmem") for space in a.memories) == shared]
    return next(iter(mine or accesses), None)


def _line(op: Any) -> str:
    return str(op.loc)
