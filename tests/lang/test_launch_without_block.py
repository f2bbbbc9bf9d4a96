"""A launch that leaves ``block=`` out has blocks of one thread: a warning, where the kernel asks for its threads."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.lang.staging.ranges import HintWarning


@cute.kernel
def by_thread(out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    out[t] = t + 1


@cute.kernel
def synchronised(out: cute.Tensor):
    b, _, _ = cute.arch.block_idx()
    cute.arch.sync_threads()
    out[b] = b + 1


@cute.kernel
def by_block(out: cute.Tensor):
    b, _, _ = cute.arch.block_idx()
    out[b] = b + 1


@cute.jit
def run(kernel: cutlass.Constexpr, out: cute.Tensor, block: cutlass.Constexpr):
    if cutlass.const_expr(block is None):
        kernel(out).launch(grid=(4, 1, 1))
    else:
        kernel(out).launch(grid=(4, 1, 1), block=block)


@pytest.mark.parametrize(
    "kernel, what", [(by_thread, "the thread's index"), (synchronised, "the instruction bar.sync")]
)
def test_a_kernel_that_uses_threads_is_warned_of(kernel: object, what: str) -> None:
    with pytest.warns(HintWarning, match=f"without block=: blocks of one thread, and the kernel uses {what}") as found:
        run(kernel, from_dlpack(np.zeros(4, np.int32)), None)
    assert len(found) == 1 and Path(found[0].filename) == Path(__file__)
    assert "kernel(out).launch(grid=(4, 1, 1))" in Path(__file__).read_text().splitlines()[found[0].lineno - 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(kernel, from_dlpack(np.zeros(4, np.int32)), 1)


def test_a_kernel_of_blocks_is_not() -> None:
    out = np.zeros(4, np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(by_block, from_dlpack(out), None)
    assert out.tolist() == [1, 2, 3, 4]
