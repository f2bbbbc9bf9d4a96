"""The Hopper kernels of the library on problems small enough that every order of their synchronisation is run.

tilewright check --systematic bench/exploration.py [dense pingpong cooperative cluster streamk]
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from mutation import few, hopper, operands

from tilewright.gemm import gemm


def dense() -> None:
    few(1)
    entry = hopper((128, 64), roles="one", stages=2)
    gemm(*operands(128, 64, 192), kernel=entry, machine="cpu", decomposition="data_parallel")


def cooperative() -> None:
    """Two tiles one after the other."""
    few(1)
    entry = hopper((128, 64), stages=2)
    gemm(*operands(256, 64, 192), kernel=entry, machine="cpu", decomposition="data_parallel")


def pingpong() -> None:
    """A tile for each of two warpgroups."""
    few(1)
    entry = hopper((64, 64), pingpong=True, consumers=(2, 1), stages=2)
    gemm(*operands(128, 64, 128), kernel=entry, machine="cpu", decomposition="data_parallel")


def cluster() -> None:
    few(2)
    entry = hopper((128, 64), stages=2, cluster=(2, 1))
    gemm(*operands(256, 64, 192), kernel=entry, machine="cpu", decomposition="data_parallel")


def streamk() -> None:
    """Three tiles for two blocks, which share one."""
    few(2)
    gemm(*operands(384, 64, 128), kernel=hopper((128, 64), stages=2), machine="cpu", decomposition="stream_k")


KERNELS: dict[str, Callable[[], None]] = {f.__name__: f for f in (dense, cooperative, pingpong, cluster, streamk)}

if __name__ == "__main__":
    for name in sys.argv[1:] or KERNELS:
        KERNELS[name]()
