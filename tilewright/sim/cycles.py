"""The waits between warps when no warp can go on: a cycle, or a chain to a warp that has ended and never arrives.

A wait knows the warps that it waits for where that follows from what happened before: the barrier of the block or the
cluster counts all threads, and who arrived at an mbarrier in its last phase is awaited in this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.sim.barriers import BarrierWait, ConditionWait
from tilewright.sim.cluster_barrier import ClusterWait
from tilewright.sim.messages import source_line

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group


class WaitGraph:
    """``standing``: for each warp of a wave that has not ended, its group and row there."""

    def __init__(self, launch: Launch, wave: Any) -> None:
        self.wave, self.geometry = wave, launch.geometry
        self.standing: dict[int, tuple[Group, int]] = {
            int(warp): (group, row)
            for group in launch.groups
            if group.wave is wave
            for row, warp in enumerate(group.warps)
        }

    def name(self, warp: int) -> str:
        """The warp, with its block where blocks form clusters."""
        block, within = divmod(warp, self.geometry.warps)
        if self.geometry.cluster_size == 1:
            return f"warp {within}"
        return f"warp {within} of block {tuple(int(v) for v in self.wave.coords[block])}"

    def awaited(self, warp: int) -> list[int]:
        """The warps (numbers in the wave) that this one waits for."""
        group, row = self.standing[warp]
        wait, per_block = group.wait, self.geometry.warps
        if isinstance(wait, ClusterWait):
            return [int(w) for w in wait.missing(row)]
        if isinstance(wait, ConditionWait):
            first = warp // per_block // self.geometry.cluster_size * self.geometry.cluster_size
            return [(first + rank) * per_block + w for rank, w in wait.missing(row)]
        if isinstance(wait, BarrierWait):
            block = warp // per_block
            everyone = range(block * per_block, (block + 1) * per_block)
            return [w for w in everyone if not self._stands_at(w, int(wait.keys[row]))]
        return []

    def _stands_at(self, warp: int, key: int) -> bool:
        group, row = self.standing.get(warp, (None, 0))
        wait = group.wait if group is not None else None
        return isinstance(wait, BarrierWait) and int(wait.keys[row]) == key

    def report(self, start: int) -> str:
        """The cycle that ``start`` is in or leads to, or the warp at which the chain of waits ends; "" if neither is
        known."""
        path, seen = [start], {start: 0}
        while True:
            following = self.awaited(path[-1])
            # A warp that has ended never arrives: the chain ends at the cause.
            ended = [w for w in following if w not in self.standing]
            if ended:
                return self._chain([*path, ended[0]], "which has ended")
            # A warp that can still run is not part of a cycle.
            following = [w for w in following if self.standing[w][0].wait is not None]
            if not following:
                return ""
            repeated = [w for w in following if w in seen]
            if repeated:
                first = max(repeated, key=lambda w: seen[w])
                return self._chain([*path[seen[first] :], first], "which closes the cycle")
            seen[following[0]] = len(path)
            path.append(following[0])

    def _chain(self, warps: list[int], end: str) -> str:
        lines = [f"wait-for cycle: {self.name(warps[0])}" if "cycle" in end else f"{self.name(warps[0])}"]
        for warp, following in zip(warps, warps[1:], strict=False):
            group, row = self.standing[warp]
            what, where = group.wait.describe(row), source_line(group.wait.op)
            lines.append(f"  waits for the arrival of {self.name(following)} at {what}, {where}")
        return "\n  ".join([*lines, f"  {end}"])


def cycle_text(launch: Launch, group: Group) -> str:
    """The text of the first chain of waits that is known to the end, beginning with the warps of ``group``."""
    waits = WaitGraph(launch, group.wave)
    order = sorted(waits.standing, key=lambda w: (w not in set(np.asarray(group.warps).tolist()), w))
    reports = (waits.report(warp) for warp in order if waits.standing[warp][0].wait is not None)
    return next((text for text in reports if text), "") or _arrivals(launch, group)


def _arrivals(launch: Launch, group: Group) -> str:
    """Where the kernel arrives at mbarriers, for warps that wait for the first phase of one: none has arrived yet."""
    if not isinstance(group.wait, ConditionWait) or group.wait.whom is None:
        return ""
    ops = [op for node in launch.program.nodes for op in (*node.ops, node.op) if op is not None]
    calls = (op for op in ops if op.opcode == "call")
    lines = [
        source_line(op) for op in calls if any(o.release and o.through == "mbarrier" for o in op.attrs["atom"].orders)
    ]
    listing = "\n    ".join(dict.fromkeys(lines))
    return f"this kernel arrives at mbarriers\n    {listing}" if listing else "this kernel never arrives at an mbarrier"
