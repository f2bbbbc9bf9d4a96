"""Records of accesses to shared memory that touch no byte of earlier ones (:mod:`.pending`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.ir.lanes import Array
from tilewright.sim.checks.reach import Ranges, Reach, Threads
from tilewright.sim.checks.shadow import GROUPS, NEVER, OTHERS, THREADS

if TYPE_CHECKING:
    from tilewright.sim.checks.accessors import Accessors
    from tilewright.sim.group import Group

FEW = 16  # accesses of a record, of which each is looked at
PARTS = 1024  # accesses that one record stands for
NEAR = 1024  # bytes between accesses that one record may stand for
RecordedAccess = tuple[int, Any, "Accessors"]  # number of the site; Reach or SimilarLoads; who


class SimilarLoads(NamedTuple):
    """Loads of ``nbytes`` by threads at each of these distances from a pointer. Their cells are computed only when they
    are asked for, which mostly does not happen."""

    pointer: Any
    distances: Sequence[int]
    nbytes: int
    mask: Array | None

    def each(self, group: Group) -> Iterator[Threads]:
        return (Threads(group, self.pointer.plus(at), self.nbytes, self.mask) for at in self.distances)

    def together(self, group: Group) -> Threads:
        """One access that reaches all bytes from the first to the last of each lane."""
        low, high = min(self.distances), max(self.distances)
        return Threads(group, self.pointer.plus(low), high - low + self.nbytes, None)


class AccessRecord:
    """Writes, or loads, to neighbouring bytes at one moment of one group; or to the same bytes of several blocks.
    ``parts``: the accesses, None when they are in the cells; ``numbers``: of writes, in the order of all."""

    __slots__ = (
        "low",
        "high",
        "blocks",
        "bytes",
        "load",
        "kind",
        "newest",
        "floor",
        "moment",
        "parts",
        "numbers",
        "last",
        "needs",
        "_ranges",
    )

    def __init__(
        self, reach: Reach, load: bool, acting: Accessors | None, parts: list[RecordedAccess] | None, moment: Any
    ) -> None:
        self.low, self.high, self.blocks, self.bytes = reach.low, reach.high, reach.blocks, reach.bytes
        self.load, self.parts, self.moment = load, parts, moment
        self.numbers: list[int] = []
        self.last = 0  # the number of the last write before its last access
        self.kind, self.newest, self.floor = OTHERS, NEVER, 0
        self.needs: list[Accessors] | Array | None = None
        self._ranges: tuple[int, Ranges | None] | None = None
        if acting is not None:
            self.kind, self.newest, self.floor = acting.kind, acting.newest, acting.floors[0]
            self.needs = [acting]

    def join(self, reach: Reach, part: RecordedAccess, acting: Accessors) -> None:
        """Take one more access of the same kind."""
        assert self.parts is not None
        self.low, self.high = min(self.low, reach.low), max(self.high, reach.high)
        self.blocks, self.bytes = self.blocks | reach.blocks, self.bytes + reach.bytes
        self.newest, self.floor = max(self.newest, acting.newest), min(self.floor, acting.floors[0])
        if isinstance(self.needs, list):
            self.needs.append(acting)
        elif self.needs is not None:
            self.needs = np.maximum(self.needs, acting.needs)
        self.parts.append(part)

    def accepts(self, reach: Reach, acting: Accessors, load: bool, moment: Any) -> bool:
        """Whether one more access may be added. Invariant: a record says of its accesses only what holds for all of
        them (the range of bytes, the greatest clocks), so that it says "apart" less often than each of them would."""
        if self.load != load or self.kind != acting.kind or self.parts is None or len(self.parts) >= PARTS:
            return False
        if self.kind == OTHERS and self.low == reach.low and self.high == reach.high:
            return not self.blocks & reach.blocks or self.moment == moment
        return self.is_near(reach, acting, load, moment)

    def is_near(self, reach: Reach, acting: Accessors, load: bool, moment: Any) -> bool:
        """Whether one more access is like this, at the same moment to neighbouring bytes."""
        if self.load != load or self.kind != acting.kind or self.blocks != reach.blocks or self.moment != moment:
            return False
        return reach.low <= self.high + NEAR and self.low <= reach.high + NEAR

    def older_than(self, floor: int, copies: int) -> bool:
        """Whether it was before the tick ``floor``, or is of the first ``copies`` groups of cp.async. Invariant: clocks
        of threads are ticks of the launch, so one number says for all warps what a barrier of the block has ordered."""
        return (self.kind == THREADS and self.newest < floor) or (self.kind == GROUPS and self.newest <= copies)

    def happened_before(self, acting: Accessors) -> bool:
        """Whether it is plain that all of it happened before what is done now."""
        return self.older_than(*acting.floors) or self.is_known(acting)

    def is_known(self, acting: Accessors) -> bool:
        """Whether the clocks of those who act say so."""
        needs = self.needs  # made into one array when it is asked for first: most records never are
        if needs is None:
            return False
        if isinstance(needs, list):
            needs = self.needs = np.asarray(np.maximum.reduce([one.needs for one in needs]))
        return acting.know(needs)

    @property
    def dense(self) -> bool:
        """Whether all of the bytes are written, in all of the blocks."""
        return self.bytes >= (self.high - self.low) * self.blocks.bit_count()

    def happened_before_by_warp(self, acting: Accessors, ours: Ranges) -> bool:
        """Whether all of it happened before what is done now, where only warps count that reach the same bytes.
        ``ours``: the ranges of the warps that act now."""
        theirs = self.ranges()
        if theirs is not None:
            return acting.know_by_warp(theirs, ours)
        hit = (ours.low < self.high) & (ours.high > self.low)
        return isinstance(self.needs, np.ndarray) and acting.know(self.needs, hit)

    def ranges(self) -> Ranges | None:
        """The range that each warp reaches, where that is known."""
        if self.parts is None or self.kind != THREADS or len(self.parts) > FEW:
            return None
        if self._ranges is not None and self._ranges[0] == len(self.parts):
            return self._ranges[1]
        first, found = self.parts[0][2], None
        for _, part, who in self.parts:
            if who.group is not first.group or who.now is not first.now or who.listed:
                return None
            here = (part.together(who.group) if isinstance(part, SimilarLoads) else part).ranges(who)
            found = here if found is None else found.join(here)
        self._ranges = len(self.parts), found
        return found
