"""Vector clocks with few entries: what happened before, as far as the clocks of whole warps do not say it.

A *unit* is what acts in an order of its own: a warp's threads, a warp's copies by one asynchronous agent, or what comes
to one mbarrier. Its clock counts; an access bears its unit, its lane and the clock. Knowing ``unit: clock`` is: all its
accesses up to that clock happened before.
"""

from __future__ import annotations

import numpy as np

from tilewright.ir.lanes import Array


class SparseClock:
    """``rows``: for each cluster the clocks of its units, all lanes; ``lanes``: of single lanes (unit * 32 + lane)."""

    __slots__ = ("rows", "lanes")

    def __init__(self, rows: dict[int, Array] | None = None, lanes: dict[int, int] | None = None) -> None:
        self.rows = rows or {}
        self.lanes = lanes or {}

    def copy(self) -> SparseClock:
        return SparseClock(dict(self.rows), dict(self.lanes))

    def join(self, other: SparseClock) -> None:
        """Learn what ``other`` knows. Invariant: an array that is in a clock is never written to, so that clocks may
        share it."""
        for cluster, row in other.rows.items():
            mine = self.rows.get(cluster)
            self.rows[cluster] = row if mine is None or mine is row else np.maximum(mine, row)
        for who, clock in other.lanes.items():
            if self.lanes.get(who, 0) < clock:
                self.lanes[who] = clock

    def knows(self, cluster: int, columns: list[int], who: int, clock: int) -> bool:
        """``columns``: see :meth:`ClockColumns.columns`."""
        row = self.rows.get(cluster)
        if row is not None and any(int(row[column]) >= clock for column in columns):
            return True
        return self.lanes.get(who, 0) >= clock

    def knows_of_any(self, cluster: int, columns: list[int], identities: range, clock: int) -> bool:
        """:meth:`knows` of any of ``identities``; ``columns`` are those of all of them."""
        row = self.rows.get(cluster)
        if row is not None and any(row[column] >= clock for column in columns):
            return True
        return bool(self.lanes) and any(self.lanes.get(who, 0) >= clock for who in identities)


class LaneClocks:
    """What a warp knows beside its row of clocks: ``know`` all its lanes, ``extras`` single lanes until the warp
    synchronises."""

    __slots__ = ("know", "extras")

    def __init__(self) -> None:
        self.know = SparseClock()
        self.extras: dict[int, SparseClock] = {}

    def learn(self, know: SparseClock, lane: int | None = None) -> None:
        """All lanes, or one, learn something."""
        (self.know if lane is None else self.extras.setdefault(lane, SparseClock())).join(know)

    def all(self) -> SparseClock:
        """The clocks that any lane knows."""
        found = self.know.copy()
        for extra in self.extras.values():
            found.join(extra)
        return found

    def merge(self) -> None:
        """The lanes have synchronised: what one knew all know."""
        for extra in self.extras.values():
            self.know.join(extra)
        self.extras.clear()
