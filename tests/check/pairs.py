"""Pairs of small kernels: one with a bug that the checks must report, and its repaired twin, which they must not.

A pair is a function of ``bug`` (True, False) that launches its kernel. ``rule`` is the finding's, or how the
simulator's own error begins (``|`` between two, where the schedule decides which comes first); ``lines`` are texts of
the Python lines that it must name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import cute


@dataclass(frozen=True)
class Pair:
    name: str
    rule: str
    lines: tuple[str, ...]
    run: Callable[[bool], None]


PAIRS: list[Pair] = []


def pair(rule: str, *lines: str) -> Callable[[Callable[[bool], None]], Callable[[bool], None]]:
    def register(run: Callable[[bool], None]) -> Callable[[bool], None]:
        PAIRS.append(Pair(run.__name__, rule, lines, run))
        return run

    return register


def launch(kernel: Any, *arrays: Any, grid: int = 1, block: int = 64, cluster: int = 1) -> None:
    """Launch ``kernel`` on arrays, blocks and threads along x."""
    shape = None if cluster == 1 else (cluster, 1, 1)

    @cute.jit
    def host(*tensors: cute.Tensor) -> None:
        kernel(*tensors).launch(grid=(grid, 1, 1), block=(block, 1, 1), cluster=shape)

    host(*arrays)


def numbers(n: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return np.arange(n).astype(dtype)


def shared(n: int, dtype: Any = None) -> Any:
    """A tensor of ``n`` elements in shared memory."""
    return cute.make_tensor(cute.arch.alloc_smem(dtype or cute.Float32, n), cute.make_layout(n))
