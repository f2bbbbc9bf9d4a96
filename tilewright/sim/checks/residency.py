"""Waiting for a block that need not be resident.

A GPU begins the blocks of a grid in order, as many as it holds at once; the others begin when earlier ones end. A block
that waits for one of those may keep it from ever beginning. So a loop that polls global memory may wait for blocks that
are resident with it from the start, or that come before it. The simulated GPU has ``sim.options(sms=...)``
multiprocessors; how many blocks each holds, threads and shared memory decide, and tensor memory: a block that waits for
columns to be freed does nothing until another one has ended, or freed its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.atoms.tensor_memory import COLUMNS
from tilewright.ir.core import Op
from tilewright.ir.lanes import Array
from tilewright.ir.target import MOST_SMEM, SMEM_RESERVED, WARP
from tilewright.sim.checks.actors import actor, lanes_of
from tilewright.sim.checks.checker import Checker
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.places import global_memory
from tilewright.sim.checks.sites import kernel_facts
from tilewright.sim.faults import Fault
from tilewright.sim.shared import SharedBuffer

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.wave import Wave

MOST_BLOCKS, MOST_THREADS = 32, 2048  # of a multiprocessor
CELL = 2  # log2 of the bytes that flags are told apart by
LARGEST = 1 << 26  # bytes of an array that is looked at


def resident_blocks_of(launch: Launch) -> int:
    """Blocks of the launch that the simulated GPU holds at once, as far as threads and the memories decide."""
    columns = kernel_facts(launch.program).columns
    return resident_blocks(launch.geometry.warps, launch.smem, launch.options.sms, columns)


def resident_blocks(warps: int, smem: int, sms: int, columns: int = 0) -> int:
    """How many blocks of ``warps`` warps, ``smem`` bytes of shared memory and ``columns`` of tensor memory ``sms``
    multiprocessors hold at once."""
    per = min(MOST_BLOCKS, MOST_THREADS // (warps * WARP), (MOST_SMEM + SMEM_RESERVED) // (smem + SMEM_RESERVED))
    return sms * max(1, min(per, COLUMNS // columns) if columns else per)


class Poll:
    """Who waits, and who writes, at the cells of one array; ``writer`` has numbers of blocks, plus 1."""

    def __init__(self, size: int) -> None:
        cells = (size >> CELL) + 1
        self.writer = np.zeros(cells, np.int32)
        self.looked: set[tuple[int, int]] = set()  # (cell, block): looked at once, which need not be a wait
        self.waiting: dict[int, set[int]] = {}  # by cell: the blocks that have looked again and not written since
        self.locks = np.zeros(cells, bool)  # exchanged: who waits there waits for one that runs
        self.wrote: dict[int, tuple[Op, int, int]] = {}  # by block: its last write, warp and lane
        self.waits: dict[int, tuple[Op, int, int]] = {}


class Residency(Checker):
    def begin(self, launch: Launch) -> None:
        self.launch, geometry = launch, launch.geometry
        self.polling_reads = kernel_facts(launch.program).polling_reads
        self.held = max(geometry.cluster_size, resident_blocks_of(launch))
        self.all_resident = geometry.blocks <= self.held
        if self.all_resident and launch.events is not None:  # nothing can wait for a block that is not there
            launch.events.dismiss([self])
        self.first: dict[Wave, int] = {}
        self.blocks = 0
        self.places: dict[Any, Poll] = {}

    def wave(self, wave: Wave) -> None:
        self.first[wave] = self.blocks
        self.blocks += len(wave.coords)

    def pointed(
        self, verb: str, buffer: Any, group: Group, pointer: Any, access: Any, mask: Array | None, values: Any
    ) -> None:
        if (
            not self.all_resident
            and not isinstance(buffer, SharedBuffer)
            and (verb != "load" or group.lanes.op in self.polling_reads)
        ):
            off = np.broadcast_to(np.asarray(pointer.off, np.int64), (group.lanes_count,))
            self.access(verb, buffer, group, off if mask is None else off[mask], access, mask, None)

    def access(
        self, verb: str, buffer: Any, group: Group, off: Array, access: Any, mask: Array | None, values: Any
    ) -> None:
        """Note who writes, and who polls, each cell of global memory: a poll whose writer is in a block that is not
        resident yet may never end."""
        if self.all_resident or isinstance(buffer, SharedBuffer) or buffer.bytes.size > LARGEST:
            return
        op = group.lanes.op
        poll = self.places.get(buffer)
        polling = op in self.polling_reads
        if verb == "load" and not polling:
            return
        if poll is None:
            poll = self.places[buffer] = Poll(buffer.bytes.size)
        lanes, cells = lanes_of(group, mask), off >> CELL
        blocks = self.first[group.wave] + group.warps[lanes // WARP] // group.wave.geometry.warps
        if polling:
            self._read(group, op, poll, buffer, off, lanes, cells, blocks)
        else:
            self._wrote(group, op, poll, buffer, off, lanes, cells, blocks, verb)

    def _read(
        self, group: Group, op: Op, poll: Poll, buffer: Any, off: Array, lanes: Array, cells: Array, blocks: Array
    ) -> None:
        for cell, block in set(zip(cells.tolist(), blocks.tolist(), strict=True)):
            if (cell, block) in poll.looked:
                poll.waiting.setdefault(cell, set()).add(block)
            poll.looked.add((cell, block))
        for block, k in zip(*np.unique(blocks, return_index=True), strict=True):
            poll.waits[int(block)] = op, int(group.warps[lanes[k] // WARP]), int(lanes[k]) % WARP
        writer = poll.writer[cells] - 1
        bad = np.flatnonzero((writer > blocks) & (writer >= self.held) & ~poll.locks[cells])
        if bad.size:
            k = int(bad[0])
            self._report(op, poll.wrote[int(writer[k])][0], int(blocks[k]), int(writer[k]), poll, buffer, int(off[k]))

    def _wrote(
        self,
        group: Group,
        op: Op,
        poll: Poll,
        buffer: Any,
        off: Array,
        lanes: Array,
        cells: Array,
        blocks: Array,
        verb: str,
    ) -> None:
        if verb == "atomic" and op.attrs["atom"].atomic in ("cas", "exch"):
            poll.locks[cells] = True
        poll.writer[cells] = np.maximum(poll.writer[cells], blocks + 1)
        for block, k in zip(*np.unique(blocks, return_index=True), strict=True):
            poll.wrote[int(block)] = op, int(group.warps[lanes[k] // WARP]), int(lanes[k]) % WARP
        for k, (cell, block) in enumerate(zip(cells.tolist(), blocks.tolist(), strict=True)):
            waiting = poll.waiting.get(cell)
            if waiting is None:
                continue
            waiting.discard(block)  # it has come past its own wait
            if block >= self.held and not poll.locks[cell] and waiting and min(waiting) < block:
                waiter = min(waiting)
                self._report(poll.waits[waiter][0], op, waiter, block, poll, buffer, int(off[k]))
                return

    def _report(self, waits: Op, writes: Op, waiter: int, writer: int, poll: Poll, buffer: Any, off: int) -> None:
        grid = self.launch.geometry
        columns = kernel_facts(self.launch.program).columns
        each = f", where each has {columns} of {COLUMNS} columns of tensor memory" if columns else ""
        who = []
        for block, known in ((waiter, poll.waits), (writer, poll.wrote)):
            x, rest = block % grid.grid[0], block // grid.grid[0]
            coords = (x, rest % grid.grid[1], rest // grid.grid[1])
            _, warp, lane = known[block]
            who.append(actor(self.launch, coords, warp % grid.warps, lane))
        self.findings.add(
            Finding(
                "residency",
                f"block {who[0].block} waits for block {who[1].block}, which need not be resident",
                [Party("waits", waits, who[0]), Party("written", writes, who[1])],
                global_memory(waits, buffer, off, 1 << CELL),
                f"the grid has {grid.blocks} blocks, of which the GPU ({self.launch.options.sms} multiprocessors) "
                f"holds {self.held} at once{each}; a later block begins when an earlier one ends",
                "wait for earlier blocks only, let the last one that arrives do the work (a ticket), or launch no more "
                "blocks than are resident (persistent blocks); sim.options(sms=...) says how large the GPU is",
            )
        )
        # A grid of such blocks may take the simulator long, and the GPU forever: the launch ends here.
        raise Fault(f"block {who[0].block} waits for block {who[1].block}, which need not be resident")
