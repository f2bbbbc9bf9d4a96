"""The blocks of a launch that have not begun."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.sim.geometry import Geometry


class PendingBlocks(Iterator[np.ndarray]):
    """Gives the coordinates ``[B, 3]`` of the blocks of the next wave, whole clusters. ``cancelled``: the kernel takes
    over clusters that have not begun. Then the first wave has half of those that fit, so that there are some: which
    clusters begin is the hardware's choice.
    """

    def __init__(self, geometry: Geometry, lanes: int, cancelled: bool) -> None:
        self.waves = geometry.waves(lanes)
        self.size = geometry.cluster_size
        self.ahead: np.ndarray | None = None  # of the next wave
        if cancelled:
            self.ahead = next(self.waves, None)
            if self.ahead is not None:
                half = -(-len(self.ahead) // self.size // 2) * self.size
                self.waves = iter(
                    [self.ahead[:half], *([self.ahead[half:]] if half < len(self.ahead) else []), *self.waves]
                )
                self.ahead = None

    def __next__(self) -> np.ndarray:
        if self.ahead is None:
            return next(self.waves)
        ahead, self.ahead = self.ahead, None
        return ahead

    def cancel(self) -> tuple[int, int, int] | None:
        """Take out a cluster: the coordinates of its first block. None: all have begun."""
        ahead = next(self, None)
        if ahead is None:
            return None
        self.ahead = ahead[self.size :] if len(ahead) > self.size else None
        x, y, z = map(int, ahead[0])
        return x, y, z
