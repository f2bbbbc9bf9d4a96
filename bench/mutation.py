"""The kernels of the library and an example, each launched once on a small problem: what the mutation study runs over.

tilewright mutate bench/mutation.py [cooperative pingpong dense cluster ampere simt attention streamk streamk_ampere]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from tilewright.gemm import KernelEntry, gemm, kernels
from tilewright.gemm.host import plan

SMEM = 232448


def operands(m: int, n: int, k: int, dtype: type = np.float16) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.integers(-2, 3, (m, k)).astype(dtype), rng.integers(-2, 3, (n, k)).astype(dtype).T


def hopper(tile: tuple[int, int], **changes: object) -> KernelEntry:
    entry = kernels()["hopper_f16"]
    config = next(c for c in (entry.config, *entry.small) if c.tile[:2] == tile and not c.transposed)
    return entry.only(replace(config, **changes))


def few(blocks: int) -> None:
    """Let the GPU have so few multiprocessors, so that a block has several tiles."""
    plan.limits = lambda machine: (blocks, SMEM)


def cooperative() -> None:
    """Two consumer warpgroups on one tile, two tiles for each of two blocks, more k tiles than stages."""
    few(2)
    entry = hopper((128, 64), stages=3, epilogue_columns=32)
    gemm(*operands(256, 128, 256), kernel=entry, machine="cpu", decomposition="data_parallel")


def pingpong() -> None:
    """Two consumer warpgroups that take turns, three tiles for each of two blocks."""
    few(2)
    entry = hopper((64, 64), pingpong=True, consumers=(2, 1), stages=3, epilogue_columns=32)
    gemm(*operands(192, 128, 256), kernel=entry, machine="cpu", decomposition="data_parallel")


def dense() -> None:
    few(2)
    entry = hopper((128, 64), roles="one", stages=3, epilogue_columns=32)
    gemm(*operands(256, 128, 256), kernel=entry, machine="cpu", decomposition="data_parallel")


def cluster() -> None:
    """Two blocks of a cluster that multicast their operands, two tiles for each."""
    few(2)
    entry = hopper((128, 64), stages=3, cluster=(2, 1), epilogue_columns=32)
    gemm(*operands(512, 64, 256), kernel=entry, machine="cpu", decomposition="data_parallel")


def streamk() -> None:
    """Five tiles for two blocks: whole ones, and the rest in even shares."""
    few(2)
    entry = hopper((128, 64), stages=3, epilogue_columns=32)
    gemm(*operands(640, 64, 256), kernel=entry, machine="cpu", decomposition="stream_k")


def ampere() -> None:
    few(4)
    gemm(*operands(256, 128, 160), kernel="tensorop_f16", machine="cpu", decomposition="data_parallel")


def streamk_ampere() -> None:
    """Four tiles of five k tiles in even shares of three blocks: some finish a tile and begin another."""
    few(3)
    gemm(*operands(256, 256, 320), kernel="tensorop_f16", machine="cpu", decomposition="stream_k")


def simt() -> None:
    few(4)
    a, b = operands(128, 256, 40, np.float32)
    gemm(a, b, machine="cpu", decomposition="data_parallel")


def attention() -> None:
    """Three tiles of columns for each of two blocks of rows."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
    from attention import attention as attend

    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, rows, 64)).astype(np.float16) for rows in (128, 192, 192))
    attend(q, k, v, np.empty_like(q))


KERNELS: dict[str, Callable[[], None]] = {
    f.__name__: f for f in (cooperative, pingpong, dense, cluster, streamk, ampere, streamk_ampere, simt, attention)
}

if __name__ == "__main__":
    for name in sys.argv[1:] or KERNELS:
        KERNELS[name]()
