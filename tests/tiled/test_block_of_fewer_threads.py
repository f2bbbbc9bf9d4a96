"""A tiled copy or MMA in a block of fewer threads than it is for: a warning, with the user's line."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.nvgpu import CopyUniversalOp
from tilewright.cute.runtime import from_dlpack
from tilewright.lang.staging.ranges import HintWarning


@cute.kernel
def copies(a: cute.Tensor, b: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=32)
    thread = cute.make_tiled_copy_tv(atom, cute.make_layout(64), cute.make_layout(1)).get_slice(t)
    cute.copy(atom, thread.partition_S(a), thread.partition_D(b))


@cute.jit
def run(a: cute.Tensor, b: cute.Tensor, threads: cutlass.Constexpr):
    copies(a, b).launch(grid=(1, 1, 1), block=(threads, 1, 1))


def test_a_block_of_fewer_threads_is_warned_of() -> None:
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    with pytest.warns(HintWarning, match="a tiled copy is for 64 threads, and the launch has blocks of 32") as found:
        run(from_dlpack(a), from_dlpack(b), 32)
    assert Path(found[0].filename) == Path(__file__)
    np.testing.assert_array_equal(b, [*range(32), *[0] * 32])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(from_dlpack(a), from_dlpack(b), 64)
    np.testing.assert_array_equal(b, a)
