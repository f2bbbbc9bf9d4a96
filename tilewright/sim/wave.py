"""A wave: the blocks that are resident together, with their shared memory, barriers and first groups of warps."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.errors import SimulationError
from tilewright.sim.agents import CommitQueues
from tilewright.sim.barriers import Barriers
from tilewright.sim.cluster_barrier import ClusterBarriers
from tilewright.sim.group import Group
from tilewright.sim.messages import source_line
from tilewright.sim.shared import SharedBuffer

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.progress import LoopProgress

TAGS = 4  # most sets of warps that the seeded schedule runs separately; the cost of a launch grows with them


class Wave:
    """``coords`` ``[B, 3]``: the blocks' coordinates in the grid."""

    def __init__(self, launch: Launch, coords: np.ndarray) -> None:
        self.launch = launch
        self.geometry = launch.geometry
        self.coords = coords
        self.checks = launch.options.checks
        self.events = launch.events
        self.barriers = Barriers(len(coords), self.geometry.warps)
        self.clusters = ClusterBarriers(self.geometry, len(coords))
        self.remaining = np.full(len(coords), self.geometry.warps)  # warps of each block that have not ended
        self.shared = SharedBuffer(launch.smem, len(coords), self.geometry.cluster_size, launch.integers, launch.space)
        self.kept: dict[Any, Any] = {}  # state of instruction families that is not in shared memory
        self.turning: dict[Any, LoopProgress] = {}  # loops that warps have run many iterations of: (op, first warp)
        # Memory of blocks that have ended is gone, unless the program asks to let that pass.
        self.outlives = launch.options.lets_pass("exits")
        self.clock = 0
        self.left: list[CommitQueues] = []  # what warps that have ended did not wait for

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def leave(self, group: Group) -> None:
        """``group`` has ended. Effects that it did not wait for land when all warps of the wave have ended."""
        self.left.append(group.queues)
        self.clusters.leave(group.warps)
        np.subtract.at(self.remaining, group.warps // self.geometry.warps, 1)
        if not self.outlives:
            self.shared.ended = self.remaining == 0
        if not any(g.wave is self for g in self.launch.groups):
            for queues in self.left:
                queues.land_all()
            for state in self.kept.values():
                if hasattr(state, "finish"):
                    self._finish(state)

    def _finish(self, state: Any) -> None:
        """End the state that an instruction keeps outside of shared memory. Its errors get the place of their op."""
        try:
            state.finish()
        except SimulationError as error:
            if error.op is None or "\n  in kernel " in str(error):  # it says where already
                raise
            what, *rest = str(error).split("\n")
            where = f"  in kernel {self.launch.program.name!r} {source_line(error.op)}"
            raise SimulationError("\n".join([what, where, *rest]), op=error.op) from None

    def cannot_merge(self, group: Group) -> bool:
        """Whether no other group can still reach and merge with ``group``."""
        return not any(g is not group and g.wave is self and g.tag == group.tag for g in self.launch.groups)

    def start(self, slots: list[Any]) -> list[Group]:
        """The groups that begin the wave: all warps together, or those of each tag."""
        warps = np.arange(len(self.coords) * self.geometry.warps)
        groups = []
        for tag, mine in enumerate(self.launch.sets(self, warps)):
            if mine.size:
                group = Group(self, self.launch.program, mine, slots.copy(), tag)
                group.mask = group.existing()
                groups.append(group)
        return groups

    def partition(self, warps: np.ndarray, choice: random.Random) -> list[np.ndarray]:
        """The sets of warps that the seeded schedule runs apart."""
        together = self.geometry.warps * self.geometry.cluster_size  # warps that can wait for each other
        clusters = len(self.coords) // self.geometry.cluster_size
        if self.launch.options.schedule == "lockstep":
            return [warps]
        if self.launch.holds_back and clusters > 1:
            # Where blocks wait for each other by polling memory, the last block starts late: if the program counts one
            # block too few, the others continue without it, and the checks see it.
            sets = self._drawn(warps[:-together], clusters - 1, together, choice)
            self.launch.held_back.add((id(self), len(sets)))
            return [*sets, warps[-together:]]
        return self._drawn(warps, clusters, together, choice)

    @staticmethod
    def _drawn(warps: np.ndarray, clusters: int, together: int, choice: random.Random) -> list[np.ndarray]:
        if together == 1:
            return [warps]
        tags = min(together, TAGS if clusters < TAGS else TAGS // 2)  # many clusters are many draws
        rng = np.random.default_rng(choice.getrandbits(32))
        shuffled = rng.permuted(np.tile(np.arange(together), (clusters, 1)), axis=1)
        tag = (shuffled + rng.integers(0, tags, (clusters, 1))) % tags
        tag = (tag - tag[0, 0]) % tags  # the first warp of the first block in the first set
        return [warps[tag.reshape(-1) == t] for t in range(tags)]
