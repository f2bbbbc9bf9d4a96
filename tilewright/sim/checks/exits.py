"""Shared memory of another block of the cluster is there from when that block begins, as long as a thread of it runs.

An access to it happens after the block has begun: after a barrier of the cluster, or something that the block has said.
And it happens before the block ends, or it may come too late. (One that did come too late is a fault of the simulator.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.ir.core import Op
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.checks.actors import actor_in_wave, lanes_of
from tilewright.sim.checks.checker import SharedChecker
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.places import flat_offsets, shared_memory
from tilewright.sim.checks.sites import kernel_facts
from tilewright.sim.shared import RANK_SHIFT, SharedBuffer

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.wave import Wave


class RemoteAccess(NamedTuple):
    """The last access of a warp to the memory of some other block."""

    clock: int
    op: Op
    lane: int
    offset: int


class Exits(SharedChecker):
    uses_order = True

    def begin(self, launch: Launch) -> None:
        self.launch = launch
        self.names = kernel_facts(launch.program).shared_names
        # For each wave and block (slot) the warps that reached into it and are not known there to have done so.
        self.reached: dict[tuple[Wave, int], dict[int, RemoteAccess]] = {}
        self.left_warps: dict[tuple[Wave, int], int] = {}
        self.met: set[tuple[Wave, int]] = set()  # blocks of which a warp has waited for the cluster
        self.begun: set[tuple[Wave, int, int]] = set()  # warps that know of a block that it has begun

    def access(
        self, verb: str, buffer: Any, group: Group, off: Array, access: Any, mask: Array | None, values: Any
    ) -> None:
        if self.order.landing or not isinstance(buffer, SharedBuffer):
            return
        if not off.size or not int(off.max()) >> RANK_SHIFT:
            return
        lanes, sites = lanes_of(group, mask), self.order.sites
        site = sites[sites.number(group.lanes.op, verb, True)]
        # The write of a release is itself what the acquirer observes: it comes before what follows the acquire.
        released = verb != "load" and site.order in ("release", "acq_rel")
        self._note(group, flat_offsets(buffer, group, off, mask), lanes, group.wave.shared.stride, released)

    def mbarrier(self, group: Group, what: str, places: Array, lanes: Array, done: Array | None) -> None:
        if what == "arrive" and lanes.size and not self.order.landing:
            stride = group.wave.shared.stride
            self._note(group, (places >> 32) * stride + (places & 0xFFFFFFFF), lanes, stride, True, True)

    def _note(
        self, group: Group, at: Array, lanes: Array, stride: int, released: bool = False, arrives: bool = False
    ) -> None:
        """``released``: the access has moved the warps' clocks on. ``arrives``: it is one at an mbarrier."""
        wave, per = group.wave, group.wave.geometry.warps
        warps = group.warps[lanes // WARP]
        blocks = at // stride
        away = blocks != warps // per
        clocks = self.order.waves[wave]
        # A release has ticked the clock already; the access itself is part of what was released.
        now = clocks.last if released else clocks.now
        for block, warp in np.unique(np.stack([blocks[away], warps[away]], 1), axis=0):
            k = int(np.flatnonzero(away & (blocks == block) & (warps == warp))[0])
            remote = RemoteAccess(int(now[warp]), group.lanes.op, int(lanes[k]) % WARP, int(at[k]) % stride)
            self.reached.setdefault((wave, int(block)), {})[int(warp)] = remote
            key = wave, int(warp), int(block)
            # An arrival needs the init of the mbarrier, which the rules of mbarriers ask for.
            if key not in self.begun and not arrives:
                if (wave, int(warp) // per) not in self.met and not clocks.know_of_block(int(warp), int(block)):
                    self._not_begun(wave, int(block), int(warp), remote)
                self.begun.add(key)

    def cluster(self, group: Group, threads: Array, waits: bool) -> None:
        if waits:  # relaxed or not: the other blocks have arrived
            per = group.wave.geometry.warps
            self.met.update((group.wave, int(block)) for block in np.unique(group.warps // per))

    def left(self, group: Group) -> None:
        wave, per = group.wave, group.wave.geometry.warps
        for warp in map(int, group.warps):
            key = wave, warp // per
            reached = self.reached.get(key)
            if reached:
                for other, remote in list(reached.items()):
                    if self.order.knows(wave, warp, other, remote.clock, remote.lane):
                        del reached[other]
            self.left_warps[key] = self.left_warps.get(key, 0) + 1
            if reached and self.left_warps[key] == per:
                for other, remote in reached.items():
                    self._not_kept(wave, warp // per, other, remote)

    def _not_begun(self, wave: Wave, block: int, warp: int, remote: RemoteAccess) -> None:
        self._add(
            "unstarted-block",
            "nothing shows that the block has begun",
            wave,
            block,
            warp,
            remote,
            "the blocks of a cluster are resident together, but do not begin together; before it begins, a block's "
            "shared memory may not be its own yet",
            "cluster_arrive(); cluster_wait() by all threads before the first access to another block's memory",
        )

    def _not_kept(self, wave: Wave, block: int, warp: int, remote: RemoteAccess) -> None:
        self._add(
            "exited-block",
            "nothing keeps that block from ending first",
            wave,
            block,
            warp,
            remote,
            "no barrier, and no release and acquire, orders the access before the end of the block whose memory it is",
            "cluster_arrive(); cluster_wait() by all threads at the end of the kernel (a pipeline's producer_tail "
            "does it for its mbarriers)",
        )

    def _add(
        self, kind: str, lack: str, wave: Wave, block: int, warp: int, remote: RemoteAccess, why: str, fix: str
    ) -> None:
        """A finding about ``remote``, an access of ``warp`` to the shared memory of ``block``."""
        owner = tuple(int(v) for v in wave.coords[block])
        self.findings.add(
            Finding(
                kind,
                f"shared memory of block {owner} is accessed by another block, and {lack}",
                [Party("access", remote.op, actor_in_wave(wave, warp, remote.lane))],
                shared_memory(remote.offset, 1, self.names),
                why,
                fix,
            )
        )
