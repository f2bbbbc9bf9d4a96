"""Kernels to look into; the tests find their lines by the comments behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tilewright as cutlass
from tilewright import cute


@cute.kernel
def looked_at(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    twice = t * 2
    s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 64, 128), cute.make_layout((8, 8), stride=(8, 1)))
    full = cute.arch.alloc_smem(cutlass.Int64, 1)
    if t == 0:
        cute.arch.mbarrier_init(full, 64)
    cute.arch.sync_threads()
    s[t // 8, t % 8] = x[b, t]  # store
    cute.arch.mbarrier_arrive(full)  # arrive
    if t < 32:
        cute.arch.mbarrier_wait(full, 0)  # wait
    cute.arch.sync_threads()  # barrier
    held = cute.make_rmem_tensor((2, 2), cute.Float32)
    for i in cutlass.range(4, unroll=1):
        held[i % 2, i // 2] = s[i, 1] + cutlass.Float32(twice)  # loop
    y[b, t] = s[t % 8, t // 8] + held[1, 1]  # last


@cute.kernel
def swizzled(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    atom = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, cute.make_layout((8, 32), stride=(32, 1)))
    s = cute.make_tensor(cute.arch.alloc_smem(cute.Float16, 256, 128), atom)
    for row in cutlass.range(8, unroll=1):
        s[row, t] = x[row, t]
    cute.arch.sync_threads()
    y[0, t] = s[0, t]  # swizzled


@cute.kernel
def changing(y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    total = cutlass.Int32(0)
    for _ in cutlass.range(3, unroll=1):
        y[t] = total  # carried
        total = total + t
        y[t] = total  # changed
    if t > 3:
        total = total + 100
    y[t] = total  # left


@cute.jit
def run_changing(y: cute.Tensor):
    changing(y).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.jit
def run(x: cute.Tensor, y: cute.Tensor):
    looked_at(x, y).launch(grid=(2, 1, 1), block=(64, 1, 1))


@cute.jit
def run_swizzled(x: cute.Tensor, y: cute.Tensor):
    swizzled(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))


def act() -> tuple[np.ndarray, np.ndarray]:
    x, y = inputs(), np.zeros((2, 64), np.float32)
    run(x, y)
    return x, y


def inputs() -> np.ndarray:
    return np.arange(128, dtype=np.float32).reshape(2, 64)


def line(comment: str) -> int:
    """The number of the line with this comment."""
    lines = Path(__file__).read_text().split("\n")
    return next(k for k, text in enumerate(lines, 1) if text.endswith(f"# {comment}"))


def where(comment: str) -> str:
    return f"programs.py:{line(comment)}"


def nothing(*given: Any) -> None:
    return None
