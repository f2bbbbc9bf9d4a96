"""Fences between proxies in global memory: what threads write there, and TMA of the same launch then reads or writes.

The end of a launch orders everything, so this concerns arrays only that one kernel both writes by threads and hands to
TMA or bulk copies. A ``fence.proxy.async`` somewhere on the way from the write to the copy counts (PTX ISA, "Causality
order"): by the thread that wrote, or by one of the block that issues the copy. That the way itself is ordered is for
the checker of races.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.ir.core import Op
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.checks.actors import actor_in_wave, lanes_of
from tilewright.sim.checks.buffers import buffers_of
from tilewright.sim.checks.checker import Checker
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.places import global_memory
from tilewright.sim.checks.sites import kernel_facts
from tilewright.sim.shared import SharedBuffer

if TYPE_CHECKING:
    from tilewright.sim.agents import Effect
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.wave import Wave

LANE = 20  # bits of a lane's number in its wave; above it the number of the write
LARGEST = 1 << 30  # bytes of an array that is looked at


class Write(NamedTuple):
    """One write by the threads of a group: the op, their wave, and how many fences and writes came before it."""

    op: Op
    wave: Wave
    tick: int


class GlobalProxies(Checker):
    def begin(self, launch: Launch) -> None:
        self.launch, facts = launch, kernel_facts(launch.program)
        both = buffers_of(launch, facts.by_threads) & buffers_of(launch, facts.by_async_proxy)
        self.shift = facts.granules[False].bit_length() - 1
        # For each cell its last write by a thread (number + 1, and the lane), which no asynchronous one has replaced.
        self.written = {b: np.zeros((b.bytes.size >> self.shift) + 1, np.int64) for b in both if b.bytes.size < LARGEST}
        self.writes: list[Write] = []
        self.tick = 0
        self.fenced: dict[Wave, Array] = {}  # for each lane of a wave the tick of its last fence
        self.issued: dict[int, tuple[Effect, int]] = {}
        self.landing: list[Effect] = []
        if not self.written and launch.events is not None:
            launch.events.dismiss([self])

    def wave(self, wave: Wave) -> None:
        self.fenced[wave] = np.full(len(wave.coords) * wave.geometry.warps * WARP, -1, np.int64)

    # -- writes and fences ---------------------------------------------------------------------------------------------

    def pointed(
        self, verb: str, buffer: Any, group: Group, pointer: Any, access: Any, mask: Array | None, values: Any
    ) -> None:
        if buffer in self.written:
            off = np.broadcast_to(np.asarray(pointer.off, np.int64), (group.lanes_count,))
            self.access(verb, buffer, group, off if mask is None else off[mask], access, mask, None)

    def access(
        self, verb: str, buffer: Any, group: Group, off: Array, access: Any, mask: Array | None, values: Any
    ) -> None:
        written = None if isinstance(buffer, SharedBuffer) else self.written.get(buffer)
        if written is None or verb == "load" or self.landing:
            return
        self.tick += 1
        self.writes.append(Write(group.lanes.op, group.wave, self.tick))
        lanes = lanes_of(group, mask)
        write = (len(self.writes) << LANE) + group.warps[lanes // WARP] * WARP + lanes % WARP
        cells = off >> self.shift
        for step in range(max(1, access.nbytes >> self.shift)):
            written[cells + step] = write

    def ordered(self, group: Group, op: Op) -> None:
        if op.attrs["atom"].fences_async_proxy("global"):
            self.tick += 1
            lanes = (group.warps[:, None] * WARP + np.arange(WARP)).reshape(-1)
            self.fenced[group.wave][lanes if group.mask is None else lanes[group.mask]] = self.tick

    # -- the async proxy -----------------------------------------------------------------------------------------------

    def issue(self, group: Group, effect: Effect) -> None:
        self.issued[id(effect)] = effect, self.tick

    def land(self, effect: Effect, begins: bool) -> None:
        if begins:
            self.landing.append(effect)
        else:
            self.landing.pop()
            self.issued.pop(id(effect), None)

    def stretch(
        self, group: Group, memory: str, start: int, shape: tuple[int, ...], strides: tuple[int, ...], writes: bool
    ) -> None:
        if memory != "global" or not self.landing:
            return
        for buffer, written in self.written.items():
            if buffer.base + buffer.low <= start < buffer.base + buffer.high:
                cells = np.zeros(1, np.int64)
                for extent, stride in zip(shape[:-1], strides[:-1], strict=True):
                    cells = (cells[:, None] + np.arange(extent) * stride).reshape(-1)
                cells = (cells[:, None] + (start - buffer.base) + np.arange(0, shape[-1], 1 << self.shift)).reshape(-1)
                cells >>= self.shift
                self._check(group, buffer, written, cells, writes)
                if writes:
                    written[cells] = 0

    def _check(self, group: Group, buffer: Any, written: Array, cells: Array, writes: bool) -> None:
        effect, found = self.landing[-1], written[cells]
        known = self.issued.get(id(effect))
        if known is None or not found.any():
            return
        lane = effect.issuer
        warp = int(group.warps[lane // WARP])
        per = group.wave.geometry.warps * WARP
        block = warp * WARP // per
        there = self.fenced[group.wave][block * per : (block + 1) * per]
        theirs = int(np.max(np.where(there <= known[1], there, -1)))  # the last fence of the block that issues
        for entry in np.unique(found[found > 0]):
            write, writer = self.writes[(int(entry) >> LANE) - 1], int(entry) & ((1 << LANE) - 1)
            own = int(self.fenced[write.wave][writer])
            if max(theirs, own) > write.tick:
                continue
            at = int(cells[np.argmax(found == entry)]) << self.shift
            does = "writes" if writes else "reads"
            self._report(group, effect, warp, does, write, writer, buffer, at)
            return

    def _report(
        self, group: Group, effect: Effect, warp: int, does: str, write: Write, writer: int, buffer: Any, at: int
    ) -> None:
        """The copy ``effect`` that ``warp`` issued ``does`` the cell at ``at``, which ``writer`` wrote in ``write``."""
        wrote = actor_in_wave(write.wave, writer // WARP, writer % WARP)
        issuer = actor_in_wave(group.wave, warp, None if effect.lane is None else effect.lane % WARP)
        self.findings.add(
            Finding(
                "proxy-fence",
                f"TMA {does} global memory that threads of this kernel wrote and "
                "no fence has made visible to the async proxy",
                [Party("issued", effect.op, issuer), Party("after a write", write.op, wrote)],
                global_memory(write.op, buffer, at, 1 << self.shift),
                "no fence.proxy.async is between the write and the copy: the async proxy may see what was there before",
                'cute.arch.fence_proxy("async.global") by every thread that writes, after its writes and before the '
                "barrier or flag that the issuing thread waits for",
            )
        )
