"""The kernel that ``tilewright demo`` checks: its threads read what other threads may not have written yet."""

from __future__ import annotations

import numpy as np

from tilewright import Float32, cute, utils
from tilewright.cute.runtime import from_dlpack

THREADS = 128
ROW = cute.make_layout(THREADS)


@cute.kernel
def reverse(x: cute.Tensor, y: cute.Tensor) -> None:
    """``y`` is ``x`` backwards; between the write and the read of the tile ``cute.arch.sync_threads()`` is missing."""
    t, _, _ = cute.arch.thread_idx()
    tile = utils.SmemAllocator().allocate_tensor(Float32, ROW)
    tile[t] = x[t]
    y[t] = tile[THREADS - 1 - t]


@cute.jit
def launch_reverse(x: cute.Tensor, y: cute.Tensor) -> None:
    reverse(x, y).launch(grid=(1, 1, 1), block=(THREADS, 1, 1))


def run() -> None:
    """Launch the kernel on arrays of the host, that is, in the simulator."""
    x, y = np.arange(THREADS, dtype=np.float32), np.zeros(THREADS, np.float32)
    launch_reverse(from_dlpack(x), from_dlpack(y))
