"""The banks of shared memory: how many passes the accesses of a warp need.

There are 32 banks of 4-byte words. A warp's access of up to 4 bytes a lane is one request; 8 bytes a lane are served by
half-warps and 16 bytes by quarter-warps (also one 8x8 matrix of ldmatrix). A request takes as many *wavefronts* as the
busiest bank has different words to deliver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

BANKS, WORD, WARP = 32, 4, 32


def lanes_together(width: int) -> int:
    """How many lanes one request serves when each accesses ``width`` bytes.

    >>> [lanes_together(width) for width in (1, 4, 8, 16)]
    [32, 32, 16, 8]
    """
    return WARP if width <= WORD else WARP * WORD // width


def wavefronts(starts: Iterable[int], width: int) -> tuple[int, int]:
    """(wavefronts, the least possible) of one request, whose lanes access ``width`` bytes from each byte of ``starts``.

    >>> wavefronts([0, 4, 128], 4), wavefronts([0, 0, 2], 2)  # bytes 0 and 128 are in bank 0; one word is served once
    ((2, 1), (1, 1))
    """
    words = {start // WORD + word for start in starts for word in range(max(1, width // WORD))}
    return max(Counter(word % BANKS for word in words).values()), -(-len(words) // BANKS)


def request_wavefronts(offsets: np.ndarray[Any, Any], width: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """:func:`wavefronts` of many requests at once; (0, 0) of one whose lanes are all idle.

    ``offsets [requests, lanes_together(width)]`` are the bytes where the lanes' accesses of ``width`` bytes begin,
    negative for idle lanes.
    """
    import numpy as np

    words, idle = offsets // WORD, offsets < 0
    if width > WORD:
        words = (words[:, :, None] + np.arange(width // WORD)).reshape(len(words), -1)
        idle = np.repeat(idle, width // WORD, axis=1)
    words = np.sort(np.where(idle, -1, words), axis=1)
    fresh = words >= 0  # the first of equal words: lanes that want one word are served together
    fresh[:, 1:] &= words[:, 1:] != words[:, :-1]
    rows = np.broadcast_to(np.arange(len(words))[:, None], words.shape)
    counts = np.bincount((rows * BANKS + words % BANKS)[fresh], minlength=len(words) * BANKS)
    return counts.reshape(-1, BANKS).max(1), -(-fresh.sum(1) // BANKS)
