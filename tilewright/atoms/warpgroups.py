"""The simulator's state of every warpgroup: the wgmma that its warps have issued, and how far they have come.

``wgmma`` is one operation of four warps. It begins when all four have issued it; the groups that a warp commits and
waits for are groups of such operations, so a warp that waits has also waited for the other three to issue theirs
(PTX ISA, "wgmma.mma_async": ``.aligned``, all threads of the warpgroup execute the same instruction, and the operation
is theirs together; "wgmma.wait_group": until the groups are complete). The operands are read and the accumulators
written at the latest moment at which that can be: when a warp waits for the group.

Until then the accumulators are not in the registers, which hold poison, but here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.errors import SimulationError
from tilewright.ir.core import Op
from tilewright.ir.instruction import HeldRegisters, Lanes
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARPGROUP_WARPS

if TYPE_CHECKING:
    from tilewright.atoms.wgmma import WgmmaAtom

Act = Callable[[Callable[[], None]], None]
GROUPS = 16  # a wait names one of the newest eight; older ones are never named


class Issue:
    """One call as the warps of some lanes have issued it together. ``a`` and ``b``: the low words of the descriptors
    of each row (warp), or None where A is in registers; ``act`` does something as these lanes."""

    __slots__ = ("atom", "op", "lanes", "act", "a", "b")

    def __init__(self, atom: WgmmaAtom, op: Op, lanes: Lanes, act: Act, a: Array | None, b: Array) -> None:
        self.atom, self.op, self.lanes, self.act, self.a, self.b = atom, op, lanes, act, a, b


class Accumulators:
    """The accumulators of one warpgroup while instructions on them are in flight.

    ``values [64 * RestM, n * RestN]``: None before the first instruction that overwrites them. ``pending``: the number
    of instructions that are issued and not yet done; ``last``: the number of the newest one. A warp gets its part into
    its registers (``held``, None after that) when it has itself waited for the newest one.
    """

    __slots__ = ("key", "values", "held", "pending", "last")

    def __init__(self, key: Any) -> None:
        self.key = key
        self.values: Array | None = None
        self.held: list[HeldRegisters | None] = [None] * WARPGROUP_WARPS
        self.pending = 0
        self.last = 0


class WarpgroupOperation:
    """One operation of a warpgroup. For each of its warps: the call that issued it, the row there, and the registers of
    A and of its metadata (``e``) where it reads some. ``group``: the number of the group that it belongs to."""

    __slots__ = ("op", "keep", "group", "accumulators", "issues", "rows", "a", "e")

    def __init__(self, op: Op, keep: bool, group: int, accumulators: Accumulators) -> None:
        self.op, self.keep, self.group, self.accumulators = op, keep, group, accumulators
        self.issues: list[Issue | None] = [None] * WARPGROUP_WARPS
        self.rows = [0] * WARPGROUP_WARPS
        self.a: list[HeldRegisters | None] = [None] * WARPGROUP_WARPS
        self.e: list[HeldRegisters | None] = [None] * WARPGROUP_WARPS


class Warpgroup:
    """``first``: the number of its first warp. ``issued``: operations, by warp; ``done`` of them have taken place, and
    ``steps`` are the others. ``groups``: by warp, how many operations had been issued at each of its last commits."""

    __slots__ = ("first", "block_warp", "steps", "issued", "done", "groups", "committed", "accumulators")

    def __init__(self, first: int, block_warp: int) -> None:
        self.first, self.block_warp = first, block_warp
        self.steps: list[WarpgroupOperation] = []
        self.issued = [0] * WARPGROUP_WARPS
        self.done = 0
        self.groups: list[list[int]] = [[] for _ in range(WARPGROUP_WARPS)]
        self.committed = [0] * WARPGROUP_WARPS
        self.accumulators: list[Accumulators] = []

    def begin(
        self, place: int, op: Op, keep: bool, key: Any, fragment: Array, lane: int
    ) -> tuple[WarpgroupOperation, bool]:
        """The operation that warp ``place`` issues next, and whether its accumulators must be taken from registers."""
        number = self.issued[place] - self.done
        self.issued[place] += 1
        fresh = False
        if number == len(self.steps):
            accumulators = self._of(place, key, fragment, lane)
            if accumulators is None:
                accumulators, fresh = Accumulators(key), True
                self.accumulators.append(accumulators)
            accumulators.pending += 1
            accumulators.last = self.issued[place]
            self.steps.append(WarpgroupOperation(op, keep, self.committed[place], accumulators))
        step = self.steps[number]
        return step, fresh or step.accumulators.held[place] is None

    def _of(self, place: int, key: Any, fragment: Array, lane: int) -> Accumulators | None:
        """The accumulators in flight that these registers hold, or None."""
        for accumulators in self.accumulators:
            held = accumulators.held[place]
            if accumulators.key is key and held is not None and held.array is fragment and held.lane == lane:
                return accumulators
        return None

    def commit(self, place: int) -> None:
        groups = self.groups[place]
        groups.append(self.issued[place])
        self.committed[place] += 1
        del groups[:-GROUPS]

    def boundary(self, place: int, pending: int) -> int:
        """How many operations must be done when warp ``place`` waits for all groups but the newest ``pending``."""
        groups = self.groups[place]
        return groups[-1 - pending] if len(groups) > pending else 0

    def finished(self, place: int, count: int) -> list[Accumulators]:
        """The accumulators that warp ``place`` gets when it has waited for the first ``count`` operations."""
        return [a for a in self.accumulators if not a.pending and a.last <= count and a.held[place] is not None]

    def late(self, count: int) -> list[int]:
        """The warps of the block that have issued fewer than ``count`` operations."""
        return [self.block_warp + k for k in range(WARPGROUP_WARPS) if self.issued[k] < count]

    def take(self, count: int) -> list[WarpgroupOperation]:
        """The operations up to the ``count``-th, which are done now."""
        due = self.steps[: count - self.done]
        del self.steps[: len(due)]
        self.done += len(due)
        return due


class Warpgroups:
    """The warpgroups of all resident blocks."""

    def __init__(self) -> None:
        self.known: dict[int, Warpgroup] = {}

    def places(self, lanes: Lanes, issued: str = "") -> list[tuple[int, Warpgroup, int]]:
        """(row, warpgroup, place in it) of each active warp of the lanes. ``issued``: the name of the instruction that
        they issue, for which the block must have all four warps."""
        numbers, ids = lanes.warp_numbers(), np.asarray(lanes.sreg("warpid"))[::32]
        rows = range(lanes.warps) if lanes.mask is None else np.flatnonzero(lanes.mask.reshape(-1, 32).any(1)).tolist()
        places = []
        for row in rows:
            number, within = int(numbers[row]), int(ids[row])
            place = within % WARPGROUP_WARPS
            group = self.known.get(number - place)
            if group is None:
                if issued:
                    _check_whole(lanes, within - place, issued)
                group = self.known[number - place] = Warpgroup(number - place, within - place)
            places.append((row, group, place))
        return places

    def finish(self) -> None:
        """All warps have ended. Operations without a wait have no effect any more; one that only some warps issued is
        an error."""
        for group in self.known.values():
            if len(set(group.issued)) > 1:
                step = group.steps[min(group.issued) - group.done]
                raise SimulationError(
                    f"{step.op.attrs['atom'].mnemonic()} at {step.op.loc}: warps "
                    f"{group.late(max(group.issued))} of the warpgroup never execute it, but all four must\n"
                    "  to fix: branch by warpgroup (warp_idx // 4), not by warp"
                )


def _check_whole(lanes: Lanes, first: int, issued: str) -> None:
    """A Fault where the block has not all warps of the warpgroup that begins with warp ``first``."""
    threads = int(np.prod([int(lanes.sreg(f"ntid.{axis}")[0]) for axis in "xyz"]))
    if threads < 32 * (first + WARPGROUP_WARPS):
        raise lanes.fault(
            f"{issued}: a warpgroup of {32 * WARPGROUP_WARPS} threads executes it, and the block of {threads} threads "
            f"has {threads - 32 * first} from warp {first} on",
            lanes.active(),
            "launch blocks of a multiple of 128 threads (block=), or let whole warpgroups alone execute it",
        )
