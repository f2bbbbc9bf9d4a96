"""``cute.experimental.iket``: named ranges inside kernels, for NVIDIA's in-kernel profiler.

That profiler instruments what its own compiler makes; here ranges mark nothing on a GPU, and programs that have them
run. What warps do when, the simulator's traces show (``tilewright.sim.trace``).
"""

from __future__ import annotations

from typing import Any

from tilewright._lazy import unknown_names

__all__ = ["range_pop", "range_push"]


def range_push(name: str, *, loc: Any = None, ip: Any = None) -> None:
    """Begin the range ``name``."""


def range_pop(*, loc: Any = None, ip: Any = None) -> None:
    """End the range that began last."""


__getattr__ = unknown_names(__name__)
