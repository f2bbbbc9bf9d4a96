"""Partial sums of one output tile between thread blocks: those that do not finish the tile pass theirs on through a
workspace in global memory.

    mixed     each block has a slot of the workspace and a flag. The block that finishes the tile adds the slots in the
              order of the blocks: sums do not depend on who is faster
    separate  as mixed, where the plan has reduction blocks: all blocks of the tile pass their sums on, and
              each of its reduction blocks adds up, and writes, a part of it
    shared    all blocks of the tile pass them on; when all have, each of them adds up, and writes, a part of it
    atomic    the first block of the tile puts its sums into its slot, the others add theirs atomically, as they come;
              the block that finishes the tile adds that one slot to its own

The block that waits for a flag resets it, or the last one if several do, so the next launch finds all flags as this one
did. Blocks wait for blocks that the plan numbers lower, which started earlier: nothing blocks for ever. With "shared"
they wait for all that share a tile with them, after their own shares, and all run at once.

Where clusters share tiles, the plan numbers clusters, and each block of a cluster exchanges sums with the blocks at its
place in the others: slots and flags are numbered cluster by cluster.

A block passes on the sums of at most one tile that it does not finish, so slot and flag have the block's number. Where
it also passes on those of the one that it finishes it has two slots, the first for the tile that it started, and the
flags are the reduction blocks' ("separate") or the tiles' ("shared").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import tilewright as cutlass
from tilewright import Int32, cute
from tilewright.gemm.counts import known_count
from tilewright.gemm.schedule.partials import Partials
from tilewright.gemm.schedule.shared import SharedTiles

IN_FLIGHT = 64  # of the next blocks' accumulators, where tiles are so small that one block's are fewer


@dataclass(frozen=True)
class SumPartition:
    """How a block's sums are cut into parts that several blocks add up: those of each group of ``threads`` into
    ``parts``: of every ``apart`` accumulators of a thread a part has the next ``run``, ``accumulators`` in all.
    ``scratch`` is shared memory that is not needed when sums are added up, for as much of ``at_once`` blocks."""

    threads: int
    parts: int
    run: int
    apart: int
    accumulators: int
    scratch: Any
    at_once: int

    @classmethod
    def of(cls, partials: Partials, threads: int, parts: int, apart: int, scratch: Any, smem: int) -> SumPartition:
        """``scratch`` has ``smem`` bytes."""
        accumulators = partials.accumulators // parts
        of_a_block = partials.threads * accumulators * int(partials.dtype.width) // 8
        return cls(threads, parts, apart // parts, apart, accumulators, scratch, max(1, smem // of_a_block))

    def fetched(self, partials: Partials) -> Partials:
        """The places of a part in ``scratch``."""
        return Partials(partials.threads, self.accumulators, partials.dtype)


@dataclass(frozen=True)
class Fixup:
    """``sync`` is the barrier of the threads of a block that hold ``partials``; ``cluster`` blocks work in step."""

    partials: Partials
    sync: Callable[[], None] = cute.arch.sync_threads
    cluster: int = 1

    def number(self, shared: SharedTiles) -> Any:
        """The plan's number of this block, or of its cluster."""
        block = cute.arch.block_idx()[0]
        return shared.number(block if self.cluster == 1 else block // self.cluster)

    def place(self, number: Any) -> Any:
        """The slot, and the flag, of the block at this one's place in cluster ``number``."""
        if self.cluster == 1:
            return number
        return number * self.cluster + cute.arch.block_idx()[0] % self.cluster

    @cute.jit
    def give(self, shared: SharedTiles, tile: Any, k_begin: Any, tidx: Any, acc: cute.Tensor) -> None:
        """Pass this block's sums to the block that adds up the tile."""
        block = self.place(self.number(shared))
        if cutlass.const_expr(shared.handed_over):
            self.partials.store(shared.workspace.iterator, tidx, acc, 2 * block + cute.where(k_begin == 0, 0, 1))
            self.sync()
            if cutlass.const_expr(shared.separate):
                parts = self.parts(shared)
                for part in cutlass.range(tidx, parts, self.partials.threads, unroll=1):
                    arrive(shared.flags.iterator + (tile * parts + part))
            elif tidx == 0:
                arrive(shared.flags.iterator + self.place(tile))
        elif cutlass.const_expr(shared.reduction == "atomic"):
            first = self.place(shared.first_block(tile))
            flag = shared.flags.iterator + first
            if k_begin == 0:
                self.partials.store(shared.workspace.iterator, tidx, acc, first)
            else:
                self.wait_until(flag, tidx, 1)
                self.partials.add_atomically(shared.workspace.iterator, tidx, acc, first)
            self.sync()
            if tidx == 0:
                arrive(flag)
        else:
            self.partials.store(shared.workspace.iterator, tidx, acc, block)
            self.sync()  # all threads have stored before thread 0 releases the sums of the block
            if tidx == 0:
                cute.arch.store(shared.flags.iterator + block, Int32(1), sem="release", scope="gpu")

    @cute.jit
    def take(self, shared: SharedTiles, tile: Any, tidx: Any, acc: cute.Tensor) -> None:
        """Add the sums of all other blocks that work on ``tile`` to those of the block that finishes it.

        Each flag has a thread that waits for it, and the sums of several blocks are on their way at a time: a tile of
        many blocks costs little more than the latency of a tile of two. They are added in the order of the blocks.
        """
        this = self.number(shared)
        first = shared.first_block(tile)
        if cutlass.const_expr(shared.reduction == "atomic"):
            slot = self.place(first)
            flag = shared.flags.iterator + slot
            self.wait_until(flag, tidx, (this - first) // shared.block_stride)
            if tidx == 0:
                cute.arch.store(flag, Int32(0))
            self.partials.add_to(acc, shared.workspace.iterator, tidx, slot)
        else:
            apart = shared.block_stride
            # One thread waits for each flag, so that the waits overlap. It clears the flag for the next launch.
            begin, step = known_count(first + tidx * apart), known_count(self.partials.threads * apart)
            for block in cutlass.range(begin, known_count(this), step, unroll=1):
                flag = shared.flags.iterator + self.place(block)
                while cute.arch.load(flag, sem="acquire", scope="gpu") == 0:
                    pass
                cute.arch.store(flag, Int32(0))
            self.sync()  # an acquire orders loads of its own thread only; the barrier extends it to the whole block
            at_once = max(1, IN_FLIGHT // self.partials.accumulators)
            for block in cutlass.range(first, this, apart, unroll=at_once):
                self.partials.add_to(acc, shared.workspace.iterator, tidx, self.place(block))

    @cute.jit
    def reduce(self, shared: SharedTiles, tidx: Any, sums: SumPartition, write: Callable[..., None]) -> None:
        """Wait for the blocks of a tile, and ``write(tile, group, part, sums)`` a share of what ``sums`` cuts it into:
        in a reduction block, of its tile; where blocks of a tile do it together, of each tile that this block has
        handed over. Blocks of other kinds do nothing."""
        if cutlass.const_expr(shared.separate):
            number = self.number(shared) - shared.reduce_start
            if (number >= 0) & (number < shared.plan.reduction_blocks):
                each = self.parts(shared)
                tile = number // each
                flag = shared.flags.iterator + number
                self.wait_until(flag, tidx, shared.last_block(tile) - shared.first_block(tile) + 1)
                if tidx == 0:
                    cute.arch.store(flag, Int32(0))
                self.add_up(shared, tidx, sums, write, tile, number % each, each)
        else:
            k_tiles = shared.plan.iters_per_tile
            extents = shared.share(self.number(shared), k_tiles)
            shared.pieces(*extents, k_tiles, partial(self.reduce_together, shared, tidx, sums, write, k_tiles))

    @cute.jit
    def reduce_together(
        self,
        shared: SharedTiles,
        tidx: Any,
        sums: SumPartition,
        write: Callable[..., None],
        k_tiles: Any,
        tile: Any,
        k_begin: Any,
        k_end: Any,
        state: None = None,
    ) -> None:
        """This block's share of a tile of which it has handed over k tiles [k_begin, k_end)."""
        if (k_begin > 0) | (k_end < k_tiles):
            first = shared.first_block(tile)
            blocks = (shared.last_block(tile) - first) // shared.block_stride + 1
            flag = shared.flags.iterator + self.place(tile)
            self.wait_until(flag, tidx, blocks)
            self.add_up(shared, tidx, sums, write, tile, (self.number(shared) - first) // shared.block_stride, blocks)
            # Others may still wait, for a count that does not fall: the last one to leave lowers the flag.
            if tidx == 0:
                left = cute.arch.atomic_add(flag, Int32(1))
                if left == 2 * blocks - 1:
                    cute.arch.store(flag, Int32(0))

    @cute.jit
    def add_up(
        self,
        shared: SharedTiles,
        tidx: Any,
        sums: SumPartition,
        write: Callable[..., None],
        tile: Any,
        index: Any,
        count: Any,
    ) -> None:
        """Block ``index`` of ``count``: every ``count``-th part of the tile, dealt out to the groups of the block in
        turn. Sums are those of the tile's blocks in their order."""
        apart = shared.block_stride
        first, last = shared.first_block(tile), shared.last_block(tile)
        group, groups = tidx // sums.threads, self.partials.threads // sums.threads
        for number in cutlass.range(index + count * group, sums.parts * groups, count * groups, unroll=1):
            part, whose = number // groups, number % groups
            from_slot = partial(
                self.partials.piece,
                shared.workspace.iterator,
                whose * sums.threads + tidx % sums.threads,
                part,
                sums.run,
                sums.apart,
            )
            total = cute.make_rmem_tensor(from_slot(0).shape, self.partials.dtype)
            total.fill(0)
            for begin in cutlass.range(first, last + 1, sums.at_once * apart, unroll=1):
                here = cute.min((last - begin) // apart + 1, sums.at_once)
                self.fetch(from_slot, sums, tidx, begin, here, first, apart)
                for block in cutlass.range(0, here, unroll=8):
                    sums.fetched(self.partials).add_to(total, sums.scratch, tidx, block)
            write(tile, whose, part, total)

    @cute.jit
    def fetch(
        self,
        from_slot: Callable[[Any], Any],
        sums: SumPartition,
        tidx: Any,
        begin: Any,
        count: Any,
        first: Any,
        apart: Any,
    ) -> None:
        """Copy what ``count`` blocks from ``begin`` on have for this thread to its own elements of shared memory: more
        loads are then in flight at once than a thread has registers for."""
        atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), self.partials.dtype, num_bits_per_copy=128)
        for number in cutlass.range(0, count, unroll=8):
            block = begin + number * apart
            source = from_slot(2 * self.place(block) + cute.where(block == first, 0, 1))
            target = sums.fetched(self.partials).slot(sums.scratch, tidx, number)
            cute.copy(atom, cute.group_modes(source, 1, 3), target)
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)

    def parts(self, shared: SharedTiles) -> Any:
        """Reduction blocks of a tile."""
        return shared.plan.reduction_blocks // cute.max(shared.plan.sk_tiles, 1)

    @cute.jit
    def wait_until(self, flag: Any, tidx: Any, count: Any) -> None:
        """All threads: until ``count`` blocks or more have arrived."""
        if tidx == 0:
            while cute.arch.load(flag, sem="acquire", scope="gpu") < count:
                pass
        self.sync()


@cute.jit
def arrive(flag: Any) -> None:
    """Count this block at ``flag``; what its threads wrote before a barrier is seen by those who wait for it."""
    cute.arch.atomic_add(flag, Int32(1), sem="release", scope="gpu")
