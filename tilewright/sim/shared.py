"""Shared memory: one buffer for all blocks of a wave; offsets are relative to the block, as on the machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.errors import byte_count
from tilewright.ir.types import ScalarType
from tilewright.sim.access import VectorAccess
from tilewright.sim.faults import Fault
from tilewright.sim.memory import U64, AddressSpace, Buffer, Mask

RANK_SHIFT = 24  # an offset with (rank + 1) << 24 added reaches into block `rank` of the cluster (mapa)
# 0xFF and 0x7F in turns are a NaN in every float type, and neither 0 nor -1 in any integer type; what is known to hold
# integers is 0xCDCD...
POISON_RAW, POISON_INT = (0xFF, 0x7F), 0xCD


class PieceReads:
    """Pieces of 16 bytes that an asynchronous unit reads: at ``offsets [units, n]`` in the memory of the ``blocks
    [units]`` of a wave, each of which has ``stride`` bytes."""

    def __init__(self, offsets: np.ndarray, blocks: np.ndarray, stride: int) -> None:
        self.offsets, self.blocks, self.stride = offsets.reshape(len(offsets), -1), blocks, stride

    @cached_property
    def span(self) -> tuple[int, int]:
        """From where to where they reach in their blocks."""
        return int(np.minimum.reduce(self.offsets, axis=None)), int(np.maximum.reduce(self.offsets, axis=None)) + 16

    @cached_property
    def start(self) -> np.ndarray:
        """``[units, n]``: where they begin in the wave's shared memory."""
        return self.offsets + (self.blocks * self.stride)[:, None]


class SharedBuffer(Buffer):
    """``size`` bytes for each of ``blocks`` blocks. ``integers``: the byte ranges that hold integers (for the
    poison)."""

    word = "shared"
    bounds_fix = "the offset leaves the dynamic shared memory of the launch: check the layout, or raise smem="

    def __init__(
        self, size: int, blocks: int, cluster: int, integers: Sequence[tuple[int, int]], space: AddressSpace
    ) -> None:
        self.stride = -(-size // 128) * 128
        data = np.tile(np.array(POISON_RAW, np.uint8), (blocks, self.stride // 2))
        for start, stop in integers:
            data[:, start:stop] = POISON_INT
        super().__init__(data.reshape(-1), 0, size, AddressSpace.WINDOW, space)
        self.cluster = cluster
        self.ended: Any = np.zeros(blocks, bool)  # blocks all of whose threads have ended

    def _base(self, group: Any) -> Any:
        return group.smem_base

    def load(self, group: Any, off: Any, access: VectorAccess, mask: Mask) -> Any:
        if type(off) is int and (type(group.smem_base) is not int or off > self.high):
            # One offset means another byte in each block, or leads into other blocks: so it is spread over the lanes.
            off = np.full(group.lanes_count, off, np.int64)
        return super().load(group, off, access, mask)

    def store(self, group: Any, off: Any, value: Any, access: VectorAccess, mask: Mask) -> None:
        if type(off) is int and (type(group.smem_base) is not int or off > self.high):
            off = np.full(group.lanes_count, off, np.int64)
        super().store(group, off, value, access, mask)

    def _one(self, group: Any, off: int, access: VectorAccess, verb: str, mask: Mask, value: Any = None) -> int:
        return super()._one(group, off, access, verb, mask, value) + int(group.smem_base)

    def _many(
        self, group: Any, off: np.ndarray, access: VectorAccess, verb: str, mask: Mask, value: Any = None
    ) -> np.ndarray:
        """As :meth:`Buffer._many`, from the start of each lane's block. Observers get the program's offsets."""
        if not off.size:
            return off
        base, named = group.smem_base, off
        if type(base) is not int and mask is not None:
            base = base[mask]
        if int(np.maximum.reduce(off.view(U64))) >> RANK_SHIFT:
            off, base = self._mapped(off, base)
        if group.checks and (
            int(np.maximum.reduce(off.view(U64))) > self.high - access.nbytes
            or (access.shift and int(np.bitwise_or.reduce(off)) & (access.width - 1))
        ):
            self.complain(off, access, verb, mask)
        if group.events is not None:
            group.events.access(verb, self, group, named, access, mask, value)
        return self._items(off + base, access)

    def places(self, group: Any, off: Any, access: VectorAccess, mask: Mask, rank: Any = None) -> np.ndarray:
        """``[L]`` block number times 2^32 plus offset, checked for the active lanes (0 for the others). ``rank``: the
        same offset in that block of the cluster."""
        off = np.array(np.broadcast_to(np.asarray(off, np.int64), (group.lanes_count,)))
        if mask is not None:
            off[~mask] = 0
        if rank is not None:
            ranks = rank.astype(np.int64)
            wrong = (ranks < 0) if mask is None else (ranks < 0) & mask
            if wrong.any():
                raise Fault(f"a shared address names block {int(ranks[wrong][0])} of the cluster", wrong)
            moved = (ranks + 1) << RANK_SHIFT
            off += moved if mask is None else np.where(mask, moved, 0)
        base = np.asarray(group.smem_base, np.int64)
        if int(np.maximum.reduce(off.view(U64))) >> RANK_SHIFT:
            off, base = self._mapped(off, base)
        active = off if mask is None else off[mask]
        if active.size and (active.min() < 0 or active.max() > self.high - access.nbytes or (active & 7).any()):
            self.complain(active, access, "access", mask)
        return (base // self.stride << 32) + off

    def mapped(self, off: Any, rank: Any, mask: Mask) -> Any:
        """Offset(s) that lead to the same place in the blocks ``rank`` of the cluster."""
        here = np.asarray(rank) if mask is None or np.ndim(rank) == 0 else np.asarray(rank)[mask]
        if here.size and (here.min() < 0 or here.max() >= self.cluster):
            wrong = int(here.min() if here.min() < 0 else here.max())
            bad = (np.asarray(rank) < 0) | (np.asarray(rank) >= self.cluster)
            raise Fault(
                f"block {wrong} of a cluster of {self.cluster} blocks does not exist",
                None if bad.ndim == 0 else bad if mask is None else bad & mask,
                fix="ranks are 0 to cute.arch.cluster_size() - 1; launch with cluster=(x, y, z)",
            )
        if type(off) is int and np.ndim(rank) == 0:
            return off + ((int(rank) + 1) << RANK_SHIFT)
        ranks = np.asarray(rank).astype(np.int64)
        if mask is not None and ranks.ndim:
            ranks = np.where(mask, ranks, 0)  # lanes that rest may hold anything
        return off + ((ranks + 1) << RANK_SHIFT)

    def pieces(self, group: Any, off: np.ndarray, base: Any) -> np.ndarray:
        """``[units, n, 16]`` bytes at the offsets ``[units, n]`` of blocks that start at ``base``, checked."""
        low, high = int(off.min()), int(off.max())
        if group.checks and (low < 0 or high > self.high - 16):
            raise Fault(
                f"an operand in shared memory out of bounds: byte offset {high if high > self.high - 16 else low} "
                f"in {self.high} bytes of dynamic shared memory",
                fix=self.bounds_fix,
            )
        units = self.views[4].take((off + base) >> 4, mode="clip")
        return units[..., None].view(np.uint8)

    def stretch(self, place: int, size: int) -> np.ndarray:
        """The live bytes of one block from a place on."""
        block, off = place >> 32, place & 0xFFFFFFFF
        if self.ended[block]:
            raise Fault(
                "an asynchronous copy reaches the shared memory of a block whose threads have all ended",
                fix="let a thread of the block wait until the copy is done before the kernel ends: mbarrier_wait for "
                "one that brings bytes (expect_tx of all of them), cp_async_bulk_commit_group() and "
                "cp_async_bulk_wait_group(0) by the thread that issued a store, producer_tail of a pipeline "
                "(check='default,-exits' lets it pass)",
            )
        if off + size > self.stride:
            raise Fault(
                f"{self.word} access of {byte_count(size)} out of bounds: byte offset {off} {self.extent(None)}",
                fix=self.bounds_fix,
            )
        return self.bytes[block * self.stride + off : block * self.stride + off + size]

    def _mapped(self, off: np.ndarray, base: Any) -> tuple[np.ndarray, np.ndarray]:
        """Offsets and block bases of addresses in the shared memory of other blocks of the cluster."""
        rank = (off >> RANK_SHIFT) - 1
        # rank + 1 is what mapa added: 0 is the own block, by an ordinary offset.
        here = (rank < 0) | (off < 0)
        if int(np.maximum.reduce(rank)) >= self.cluster:
            raise Fault(f"a shared address names block {int(rank.max())} of a cluster of {self.cluster} blocks")
        block = base // self.stride
        first = block - block % self.cluster
        there = np.where(here, base, (first + rank) * self.stride)
        gone = ~here & self.ended[there // self.stride] if self.stride else np.zeros(1, bool)
        if gone.any():
            raise Fault(
                f"the shared memory of block {int(rank[gone][0])} of the cluster is touched, but all threads of that "
                "block have ended",
                fix="keep every block running until the last access to its shared memory: cluster_arrive(); "
                "cluster_wait() at the end of the kernel (a pipeline's producer_tail does it for its barriers)",
            )
        return np.where(here, off, off & ((1 << RANK_SHIFT) - 1)), there

    def extent(self, access: VectorAccess | None) -> str:
        return f"in {self.high} bytes of dynamic shared memory"


def integer_ranges(allocations: Sequence[tuple[int, int, ScalarType]]) -> list[tuple[int, int]]:
    """The byte ranges of the (offset, bytes, element type) allocations that hold integers. Those of u8 may be bytes for
    anything."""
    return [(offset, offset + size) for offset, size, elem in allocations if not elem.is_float and elem.name != "u8"]
