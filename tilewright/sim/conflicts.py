"""Shared-memory wavefronts: how many passes the 32 four-byte banks need for the accesses of a warp.

A warp's access of up to 4 bytes a lane is one request; 8 bytes a lane are served by half-warps and 16 bytes by
quarter-warps. A request takes as many wavefronts as the busiest bank has different words to give.
"""

from __future__ import annotations

import numpy as np

BANKS = 32
LANES = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}  # lanes served together, by the width of the access in bytes


def wavefronts(offsets: np.ndarray, width: int) -> tuple[int, int]:
    """``(requests, wavefronts)`` of one access of ``width`` bytes a lane; ``offsets`` ``[W, 32]`` bytes, -1 for idle
    lanes."""
    together = LANES[width]
    words = (offsets >> 2).reshape(-1, together)
    idle = (offsets < 0).reshape(-1, together)
    if width > 4:
        steps = np.arange(width // 4)
        words = (words[:, :, None] + steps).reshape(words.shape[0], -1)
        idle = np.repeat(idle, width // 4, axis=1)
    words = np.sort(np.where(idle, -1, words), axis=1)
    fresh = words >= 0
    fresh[:, 1:] &= words[:, 1:] != words[:, :-1]
    rows = np.broadcast_to(np.arange(words.shape[0])[:, None], words.shape)
    counts = np.bincount((rows * BANKS + (words & (BANKS - 1)))[fresh], minlength=words.shape[0] * BANKS)
    most = counts.reshape(-1, BANKS).max(1)
    return int(np.count_nonzero(most)), int(most.sum())
