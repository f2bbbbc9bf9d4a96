"""The short cuts of the checks, each with the plain rule that may stand in its place.

A short cut makes a check faster and must change no finding. A row names it, the attribute that it is, and what takes
its place. ``test_short_cuts.py`` compares the findings with and without it; ``bench/short_cuts.py`` measures what it
gains. Where the invariant of a short cut is stated, is ``where``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from tilewright.sim.checks import race_cells, registry
from tilewright.sim.checks.accessors import Accessors
from tilewright.sim.checks.barrier_clocks import BarrierClocks, MbarrierClocks
from tilewright.sim.checks.clocks import ClockColumns, Clocks
from tilewright.sim.checks.flags import Flags
from tilewright.sim.checks.mbarriers import MbarrierRules
from tilewright.sim.checks.order import HappensBefore
from tilewright.sim.checks.pending import PendingAccesses
from tilewright.sim.checks.proxies import Proxies
from tilewright.sim.checks.race_cells import CellCheck
from tilewright.sim.checks.races import Races
from tilewright.sim.checks.reach import Boxes, Pieces, Reach
from tilewright.sim.checks.records import AccessRecord
from tilewright.sim.checks.shadow import Shadow
from tilewright.sim.checks.sparse_clock import SparseClock
from tilewright.sim.checks.tensor_memory import TensorMemoryOrder
from tilewright.sim.checks.uninitialised import Uninitialised
from tilewright.sim.checks.written_cells import WrittenCells
from tilewright.sim.events import Events, Observer
from tilewright.sim.group import Group


class ShortCut(NamedTuple):
    """``plain``: what takes the place of the attributes ``names`` of ``owner`` (or of several owners)."""

    name: str
    owner: Any
    names: tuple[str, ...]
    plain: Any

    @contextlib.contextmanager
    def off(self) -> Iterator[None]:
        """Without it, inside the block."""
        with contextlib.ExitStack() as stack:
            for owner in self.owner if isinstance(self.owner, list) else [self.owner]:
                for name in self.names:
                    stack.enter_context(mock.patch.object(owner, name, self.plain))
            yield


class Forgetting(dict[Any, Any]):
    """A dictionary that knows nothing of what checks have found out about a group."""

    def get(self, key: Any, default: Any = None) -> Any:
        name = key[0] if isinstance(key, tuple) else key
        return default if str(name).startswith("check.") else super().get(key, default)


def no(*_: Any) -> bool:
    return False


def yes(*_: Any) -> bool:
    return True


def nothing(*_: Any) -> None:
    pass


_init, _issue, _set_observers = Group.__init__, HappensBefore.issued_together, Events._set_observers
_together: dict[type, Any] = {observer: observer.issued_together for observer in (HappensBefore, MbarrierRules)}
_arrive, _read, _begin, _flags = BarrierClocks.arrive, Shadow.read, Uninitialised.begin, Flags.access


def forgetful(group: Group, *rest: Any) -> None:
    _init(group, *rest)
    group.registers = Forgetting()


def one_by_one(check: CellCheck, access: Any, before: Any, bad: Any) -> Any:
    return np.array([k for k in bad.tolist() if not check._happened_before(access, before, k)], np.int64)


def all_one_by_one(check: CellCheck, access: Any, before: Any) -> Any:
    return one_by_one(check, access, before, np.flatnonzero(before))


def merged_at_once(shadow: Shadow, read: Any) -> None:
    _read(shadow, read)
    shadow.merge_reads()


def agents_of(clocks: Clocks, warps: Any, rows: Any) -> None:
    """As ``Clocks.agents_of``, lane by lane."""
    for a in range(len(clocks.layout.agents)):
        if not clocks.layout.by_warpgroup[a]:
            known = np.broadcast_to(clocks.open[warps, a][:, None] - 1, (warps.size, 32))
            issued, waited = clocks.issued[a][warps], clocks.waited[a][warps]
            at = np.arange(warps.size), clocks.columns[a][warps]
            rows[at] = np.maximum(rows[at], np.where(issued > waited, waited, known).min(1))


def barrier_by_barrier(barriers: BarrierClocks, group: Group, rows: Any, keys: Any, target: Any, waits: bool) -> None:
    before = barriers.clocks.release(group.warps[rows])
    for key in np.unique(keys):
        mine = keys == key
        _arrive(barriers, group, rows[mine], keys[mine], target[mine], waits)
    barriers.before = before


def joined(clock: SparseClock, other: SparseClock) -> None:
    for cluster, row in other.rows.items():
        mine = clock.rows.get(cluster)
        clock.rows[cluster] = row.copy() if mine is None else np.maximum(mine, row)
    for who, when in other.lanes.items():
        clock.lanes[who] = max(clock.lanes.get(who, 0), when)


def issued_alone(order: HappensBefore, group: Group, effects: Any) -> None:
    for effect in effects:
        order.issuing = None
        _issue(order, group, [effect])


def issued_one_by_one(observer: HappensBefore | MbarrierRules, group: Group, effects: Any) -> None:
    for effect in effects:
        _together[type(observer)](observer, group, [effect])


def read_again(flags: Flags, *rest: Any, **more: Any) -> None:
    flags.acquired.clear()
    _flags(flags, *rest, **more)


def fences_asked_again(flags: Flags, access: Any, warp: int, lane: Any) -> Any:
    return flags.released_by_fence(access.clocks, warp, lane, access.site.scope)


def awake(check: Uninitialised, launch: Any) -> None:
    _begin(check, launch)
    if check.asleep:
        check.wake()


def least_cells(check: Uninitialised, launch: Any) -> None:
    _begin(check, launch)
    check._divide_cells(1)


def offset_by_offset(events: Events, observers: Any) -> None:
    _set_observers(events, observers)
    events.quick = None


def all_fragments_watched(check: Uninitialised, launch: Any) -> None:
    _begin(check, launch)
    if check.thorough:
        check.maybe_unwritten = {op for op in launch.program.function.walk() if op.opcode == "frag.alloc"}


SHORT_CUTS = [
    ShortCut("accesses kept without a look at their cells", PendingAccesses, ("cannot_race", "add_similar_loads"), no),
    ShortCut("loads like the one before", PendingAccesses, ("add_similar_loads",), no),
    ShortCut("reads by an agent like those before", PendingAccesses, ("add_similar_reads",), no),
    ShortCut("writes to other lines", PendingAccesses, ("_maybe_same_lines",), lambda _, reach, met: met),
    ShortCut("last writers of lines", PendingAccesses, ("_last_writers",), lambda _, reach, met: met),
    ShortCut("warps that reach the same bytes", PendingAccesses, ("_after_by_warp",), no),
    ShortCut("tiles read as rectangles", Pieces, ("numbers",), Reach.numbers),
    ShortCut("cells of a few accesses", PendingAccesses, ("_other_cells",), no),
    ShortCut("records written over", PendingAccesses, ("_drop_overwritten",), nothing),
    ShortCut("records known to all", PendingAccesses, ("_prune",), nothing),
    ShortCut("records of several accesses", AccessRecord, ("accepts",), no),
    ShortCut("records before a barrier", AccessRecord, ("older_than",), no),
    ShortCut("entries before a barrier", race_cells, ("_older",), no),
    ShortCut("one entry for each warp", CellCheck, ("_known_by_warps",), no),
    ShortCut("rows of clocks", CellCheck, ("_unordered",), all_one_by_one),
    ShortCut("each pair asked once", CellCheck, ("_ask_lanes",), one_by_one),
    ShortCut("reads kept in a list", Shadow, ("read",), merged_at_once),
    ShortCut("issues told together", [HappensBefore, MbarrierRules], ("issued_together",), issued_one_by_one),
    ShortCut("effects of several blocks land together", HappensBefore, ("each_landing",), True),
    ShortCut("boxes of several blocks as one access", Boxes, ("alike",), staticmethod(no)),
    ShortCut("accesses told together", [Races, Uninitialised], ("pointed_together",), Observer.pointed_together),
    ShortCut("loads of several ops told together", [Races, Uninitialised], ("loaded",), Observer.loaded),
    ShortCut("accesses through several pointers", [Races, Uninitialised], ("pointed_each",), Observer.pointed_each),
    ShortCut("stores of an op kept as one", Races, ("_apart",), no),
    ShortCut("one effect for a call of cp.async", [HappensBefore, Races, Uninitialised], ("each_effect",), True),
    ShortCut("stores of whole rows", Races, ("_fills_rows",), no),
    ShortCut("entries of a warp from one", Accessors, ("by_mask",), no),
    ShortCut("facts of a group found once", Group, ("__init__",), forgetful),
    ShortCut("lanes with something unfinished", Clocks, ("agents_of",), agents_of),
    ShortCut("columns of elected lanes", ClockColumns, ("elect",), no),
    ShortCut("lanes that issue alone", Clocks, ("issues_alone",), no),
    ShortCut("whole warps at mbarriers", MbarrierClocks, ("_of_whole_warps",), staticmethod(nothing)),
    ShortCut("barriers that are reached together", BarrierClocks, ("arrive",), barrier_by_barrier),
    ShortCut("rows that clocks share", SparseClock, ("join",), joined),
    ShortCut("one snapshot for the copies of an op", HappensBefore, ("issued_together",), issued_alone),
    ShortCut("flags that are read again", Flags, ("access",), read_again),
    ShortCut("fences asked once for a warp", Flags, ("_by_fence_once",), fences_asked_again),
    ShortCut("accumulators written again", TensorMemoryOrder, ("_writes_again",), no),
    ShortCut("all warps fenced", Proxies, ("_plainly_fenced",), no),
    ShortCut("writes of a warp fenced as one", Proxies, ("_fenced_by_all",), no),
    ShortCut("places accessed again", Uninitialised, ("_again",), no),
    ShortCut("cells known to be written", WrittenCells, ("has", "known"), no),
    ShortCut("asleep until something is undefined", Uninitialised, ("begin",), awake),
    ShortCut("cells of 16 bytes", Uninitialised, ("begin",), least_cells),
    ShortCut("copies of defined values", Uninitialised, ("_fills",), no),
    ShortCut("fragments proved to be written", Uninitialised, ("begin",), all_fragments_watched),
    ShortCut("checks that concern the kernel", registry.Row, ("concerns",), yes),
    ShortCut("pointers in place of offsets", Events, ("_set_observers",), offset_by_offset),
]
