"""The barrier of every resident cluster (``barrier.cluster``), counted thread by thread for all clusters at once.

A phase is complete when every thread of the cluster has arrived or ended; a thread arrives once in a phase and then
waits for it once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.barriers import whole_warps
from tilewright.sim.faults import Fault
from tilewright.sim.geometry import Geometry


class ClusterBarriers:
    """``arrived``, ``exited``: for each thread of the wave, whether it is counted in the current phase, and whether it
    has ended (or never existed). ``target``: the phase that it arrived at last; ``owes``: it has yet to wait for it."""

    def __init__(self, geometry: Geometry, blocks: int) -> None:
        self.geometry = geometry
        self.per_cluster = geometry.cluster_size * geometry.warps * WARP
        threads = blocks * geometry.warps * WARP
        existing = geometry.existing(np.arange(blocks * geometry.warps))
        self.exited = np.zeros(threads, bool) if existing is None else ~existing
        self.arrived, self.owes = np.zeros((2, threads), bool)
        self.target = np.zeros(threads, np.int64)
        self.completed = np.zeros(threads // self.per_cluster, np.int64)

    def threads(self, group: Any, mask: Any, aligned: bool) -> Array:
        """The numbers in the wave of the threads that take part."""
        if aligned:
            whole_warps(group, mask)
        lanes = (group.warps[:, None] * WARP + np.arange(WARP)).reshape(-1)
        return lanes if mask is None else lanes[mask]

    def lenient(self, group: Any) -> bool:
        """Whether threads may arrive twice and then wait twice, which counts once. PTX leaves that undefined."""
        passes: bool = group.wave.launch.options.lets_pass("divergence")
        return passes

    def arrive(self, group: Any, mask: Any, aligned: bool) -> Array:
        """Gives the threads that have arrived."""
        threads = self.threads(group, mask, aligned)
        again = self.owes[threads]
        if again.any() and not self.lenient(group):
            raise Fault(
                "cluster_arrive a second time, without cluster_wait in between",
                _lanes(again, mask),
                fix="arrive and wait at the cluster's barrier in turns: cluster_arrive(); cluster_wait() (the check "
                "'default,-divergence' takes both for one arrival)",
            )
        new = threads[~again]
        clusters = new // self.per_cluster
        self.arrived[new] = self.owes[new] = True
        self.target[new] = self.completed[clusters] + 1
        self.settle(np.unique(clusters))
        return threads

    def wait(self, group: Any, mask: Any, aligned: bool, op: Any) -> ClusterWait:
        threads = self.threads(group, mask, aligned)
        early = ~self.owes[threads]
        if early.any() and not self.lenient(group):
            raise Fault(
                "cluster_wait without a cluster_arrive before it",
                _lanes(early, mask),
                fix="every thread arrives at the cluster's barrier before it waits: cluster_arrive(); cluster_wait()",
            )
        self.owes[threads] = False
        return ClusterWait(self, group.warps, mask, op)

    def leave(self, warps: Array) -> None:
        """These warps have ended: the barrier no longer waits for them."""
        self.exited.reshape(-1, WARP)[warps] = True
        if self.arrived.any():  # else there is no phase to complete
            self.settle(np.unique(warps * WARP // self.per_cluster))

    def settle(self, clusters: Array) -> None:
        """Complete the phases that all threads which have not ended have arrived at."""
        arrived = self.arrived.reshape(-1, self.per_cluster)
        # A cluster whose threads have all ended, none of them waiting, completes no phase.
        finished = np.all(arrived | self.exited.reshape(-1, self.per_cluster), axis=1) & np.any(arrived, axis=1)
        done = clusters[np.asarray(finished)[clusters]]
        self.completed[done] += 1
        arrived[done] = False

    def missing(self, cluster: int) -> Array:
        """The warps (numbers in the wave) that the current phase still waits for."""
        span = slice(cluster * self.per_cluster, (cluster + 1) * self.per_cluster)
        absent = ~self.arrived[span] & ~self.exited[span]
        return np.flatnonzero(absent.reshape(-1, WARP).any(1)) + cluster * (self.per_cluster // WARP)


class ClusterWait:
    """Warps that wait at the cluster's barrier."""

    def __init__(self, barriers: ClusterBarriers, warps: Array, mask: Any, op: Any) -> None:
        self.barriers, self.warps, self.mask, self.op = barriers, warps, mask, op
        lanes = (warps[:, None] * WARP + np.arange(WARP)).reshape(-1)
        targets = barriers.target[lanes]
        if mask is not None:
            targets = np.where(mask, targets, 0)
        self.target = targets.reshape(-1, WARP).max(1)
        self.cluster = warps * WARP // barriers.per_cluster

    def ready(self) -> Array:
        return self.barriers.completed[self.cluster] >= self.target

    def take(self, rows: Array) -> ClusterWait:
        mask = None if self.mask is None else self.mask.reshape(-1, WARP)[rows].reshape(-1)
        # Copied, not computed again: a thread may have arrived at a later phase since.
        new = ClusterWait.__new__(ClusterWait)
        new.barriers, new.warps, new.mask, new.op = self.barriers, self.warps[rows], mask, self.op
        new.target, new.cluster = self.target[rows], self.cluster[rows]
        return new

    def missing(self, row: int) -> Array:
        return self.barriers.missing(int(self.cluster[row]))

    def describe(self, row: int) -> str:
        barriers, cluster = self.barriers, int(self.cluster[row])
        span = slice(cluster * barriers.per_cluster, (cluster + 1) * barriers.per_cluster)
        there = int(barriers.arrived[span].sum())
        return (
            f"the barrier of its cluster (in phase {int(barriers.completed[cluster])}: {there} of "
            f"{int((~barriers.exited[span]).sum())} threads have arrived)"
        )


def _lanes(bad: Array, mask: Any) -> Array:
    if mask is None:
        return bad
    lanes = np.zeros(mask.shape, bool)
    lanes[mask] = bad
    return lanes
