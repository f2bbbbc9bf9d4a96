"""``cutlass.testing``: the older name of :mod:`tilewright.cute.testing`; and :func:`per_thread`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright._names import attach
from tilewright.cute.testing import (
    CantImplementError,
    JitArguments,
    assert_,
    autotune_jit,
    autotune_suite,
    benchmark,
    convert,
    get_workspace_count,
    tune,
)

__all__ = [
    "CantImplementError",
    "JitArguments",
    "assert_",
    "autotune_jit",
    "autotune_suite",
    "benchmark",
    "convert",
    "get_workspace_count",
    "per_thread",
    "tune",
]


def per_thread(
    function: Callable[..., Any],
    threads: int = 32,
    *,
    blocks: int = 1,
    cluster: int = 1,
    dtype: Any = None,
    memory: Sequence[Any] | None = None,
) -> Any:
    """The results of a device function in each thread of a small launch on the simulator: a list, block after block.

    ``function`` takes the thread's index in its block and, where ``memory`` (numbers) is given, a pointer to it in
    global memory; then the result is the list and the memory as the launch left it. ``blocks`` of ``threads`` threads
    form clusters of ``cluster``. Results become ``dtype`` (default Int32); a function that gives none leaves zeros.

    >>> per_thread(lambda t: arch.shuffle_sync_bfly(t, 1), 8)
    [1, 0, 3, 2, 5, 4, 7, 6]
    >>> per_thread(lambda t, p: arch.atomic_add(p, 10), 4, memory=[5])
    ([5, 15, 25, 35], [45])
    """
    import numpy as np

    from tilewright import cute
    from tilewright.cute.runtime import from_dlpack
    from tilewright.lang.numbers.numeric import Int32

    kind = Int32 if dtype is None else dtype
    out = np.zeros(threads * blocks, kind.ir_type.dtype)
    held = np.array(memory if memory is not None else [0], kind.ir_type.dtype)

    @cute.kernel
    def each(out: cute.Tensor, held: cute.Tensor) -> None:
        tidx, _, _ = cute.arch.thread_idx()
        bidx, _, _ = cute.arch.block_idx()
        value = function(tidx) if memory is None else function(tidx, held.iterator)
        if value is not None:
            out[bidx * threads + tidx] = kind(value)

    @cute.jit
    def run(out: cute.Tensor, held: cute.Tensor) -> None:
        each(out, held).launch(grid=(blocks, 1, 1), block=(threads, 1, 1), cluster=(cluster, 1, 1))

    run(from_dlpack(out), from_dlpack(held))
    return out.tolist() if memory is None else (out.tolist(), held.tolist())


attach(__name__)
