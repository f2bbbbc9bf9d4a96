"""Shared memory that threads wrote and have not yet fenced for the async proxy.

A TMA store reads through another proxy than the threads that wrote its buffer: without ``fence.proxy.async`` by the
writers it may read what was there before. So each 16 bytes remember the warp that wrote them last, until it fences.
Only launches of kernels with TMA stores keep this.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir.core import Function
from tilewright.ir.types import MemSpace
from tilewright.sim.geometry import WARP

GRANULE = 4  # log2 of the bytes that are told apart: TMA's boxes are made of 16 bytes
Array = np.ndarray[Any, Any]


def needed(function: Function) -> bool:
    """Whether the kernel has instructions that read shared memory in bulk groups through the async proxy."""
    return any(
        access.proxy == "async" and access.reads and access.agent.startswith("cp.async.bulk")
        and MemSpace.SMEM in access.spaces
        for op in function.walk() if op.opcode == "call"
        for _, access in op.attrs["atom"].accessed(op)
    )  # fmt: skip


class Unfenced:
    """``writer``: for each 16 bytes of the wave's shared memory the warp (number in the wave, plus 1) whose write is
    not fenced, or 0."""

    def __init__(self, size: int) -> None:
        self.writer = np.zeros((size >> GRANULE) + 1, np.int32)

    def wrote(self, group: Any, at: Any, nbytes: int, mask: Any) -> None:
        """The active lanes of ``group`` wrote ``nbytes`` at the bytes ``at`` (an int, or one for each active lane)."""
        warps = np.repeat(group.warps.astype(np.int32) + 1, WARP)
        who = warps if mask is None else warps[mask]
        for step in range(0, nbytes, 1 << GRANULE):
            self.writer[(at + step) >> GRANULE] = who if np.ndim(at) else who[-1]

    def fence(self, warps: Array) -> None:
        """These warps have fenced what they wrote."""
        mine = np.flatnonzero(self.writer)
        self.writer[mine[np.isin(self.writer[mine], warps + 1)]] = 0

    def writer_of(self, start: int, size: int) -> int:
        """A warp (number in the wave) whose write of these bytes is not fenced, or -1."""
        return int(self.writer[start >> GRANULE : -(-(start + size) >> GRANULE)].max(initial=0)) - 1
