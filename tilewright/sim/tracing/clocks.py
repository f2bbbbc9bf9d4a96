"""The clocks of a wave: how far every warp is in the model's time, and when units and barriers are free."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np


class WaitSource(NamedTuple):
    """What ended a wait: a warp that arrived, or an asynchronous ``kind`` that landed, and when."""

    time: float
    kind: str = "run"
    block: int = -1
    warp: int = -1


NO_SOURCE = WaitSource(-1.0)


class SerialUnit:
    """A unit that does one thing at a time. The simulator may run one warp far ahead of another, so a request takes the
    first gap that is long enough, not the end of the queue."""

    def __init__(self) -> None:
        self.starts: list[float] = []
        self.ends: list[float] = []

    def take(self, at: float, duration: float) -> float:
        """When a request of ``duration`` cycles that comes at ``at`` begins."""
        # ``starts`` and ``ends`` are sorted and do not overlap: behind the gap before ``i`` everything starts later.
        i = bisect_right(self.ends, at)
        while i < len(self.starts) and self.starts[i] < at + duration:
            at = max(at, self.ends[i])
            i += 1
        # Requests without a gap between them are joined: the lists stay short.
        if i and self.ends[i - 1] == at:
            self.ends[i - 1] = at + duration
        else:
            self.starts.insert(i, at)
            self.ends.insert(i, at + duration)
        return at


@dataclass
class CommitGroups:
    """What one warp has handed to one agent: the end of what it has not committed, and the ends of its groups."""

    open: float = 0.0
    ends: list[float] = field(default_factory=list)

    def commit(self, now: float) -> None:
        # Groups of one agent end in the order in which they were committed.
        self.ends.append(max(now, self.open, self.ends[-1] if self.ends else 0.0))
        self.open = 0.0

    def wait(self, pending: int) -> float:
        """When all but the newest ``pending`` groups have ended."""
        cut = len(self.ends) - pending
        end = self.ends[cut - 1] if cut > 0 else 0.0
        if cut > 0:
            # Later waits ask for groups that are at least as new.
            del self.ends[:cut]
        return end


class WarpTimes:
    """The times of one wave. ``now [W]``: of each warp; ``mark``: since when it has been running."""

    def __init__(self, warps: int, start: float) -> None:
        self.now = np.full(warps, start)
        self.mark = np.full(warps, start)
        self.groups: dict[tuple[int, str], CommitGroups] = defaultdict(CommitGroups)
        self.units: dict[Any, SerialUnit] = defaultdict(SerialUnit)
        self.current: dict[int, WaitSource] = {}
        """For each mbarrier the last arrival of the phase that is not complete."""
        self.phases: dict[tuple[int, int], WaitSource] = {}
        """For each (mbarrier, phase) that is complete what completed it."""
        self.meetings: dict[Any, WaitSource] = {}
        """The same for barriers of blocks and clusters, by (barrier, completion)."""
        self.awaited: dict[int, list[int]] = {}
        """For each warp the mbarriers that it waits for."""
        self.came: dict[Any, list[WaitSource]] = defaultdict(list)
        """For each mbarrier, and each completion of a barrier, the arrivals of the phase that is not complete."""

    def arrive(self, row: int, source: WaitSource) -> None:
        self.came[row].append(source)
        self.current[row] = max(self.current.get(row, NO_SOURCE), source, key=lambda s: s.time)

    def meet(self, key: Any, source: WaitSource) -> None:
        self.came[key].append(source)
        self.meetings[key] = max(self.meetings.get(key, NO_SOURCE), source, key=lambda s: s.time)

    def complete(self, row: int, phase: int) -> None:
        self.phases[row, phase] = self.current.pop(row, NO_SOURCE)
