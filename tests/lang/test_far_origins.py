"""Origins far outside of an array, which libraries add to a tensor map's base and take back in its coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.runtime import from_dlpack


@cute.kernel
def there_and_back(x: cute.Tensor, out: cute.Tensor, far: cutlass.Constexpr) -> None:
    tidx, _, _ = cute.arch.thread_idx()
    away = cute.domain_offset((-far, None), x)
    back = cute.domain_offset((far + 3, None), away)
    whole = cute.domain_offset((far, 0), cute.domain_offset((-far, 1), x))
    out[tidx, 0] = back[0, tidx]
    out[tidx, 1] = whole[3, tidx]


@cute.jit
def run(x: cute.Tensor, out: cute.Tensor, far: cutlass.Constexpr) -> None:
    there_and_back(x, out, far).launch(grid=(1, 1, 1), block=(4, 1, 1))


@pytest.mark.parametrize("far", [5, (1 << 16) - 1, 1 << 16, 1 << 30, (1 << 31) - 8])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_known_origin_that_is_added_and_taken_back(far: int, dynamic: bool) -> None:
    x: Any = np.arange(48, dtype=np.float32).reshape(8, 6)
    given = from_dlpack(x).mark_layout_dynamic(leading_dim=1) if dynamic else from_dlpack(x)
    out = np.zeros((4, 2), np.float32)
    run(given, from_dlpack(out), far)
    assert np.array_equal(out[:, 0], x[3, :4]) and np.array_equal(out[:, 1], x[3, 1:5])


@cute.kernel
def distance(x: cute.Tensor, out: cute.Tensor, far: cutlass.Constexpr) -> None:
    moved = cute.domain_offset((far, None), x).iterator.toint() - x.iterator.toint()
    out[0] = cutlass.Int64(moved)


@cute.jit
def measure(x: cute.Tensor, out: cute.Tensor, far: cutlass.Constexpr) -> None:
    distance(x, out, far).launch(grid=(1, 1, 1), block=(1, 1, 1))


@pytest.mark.parametrize("far", [-(1 << 30), 1 << 30, -(1 << 31), -1, 1 << 16])
@pytest.mark.parametrize("dynamic", [False, True])
def test_the_distance_has_64_bits(far: int, dynamic: bool) -> None:
    """A product of 32 bits would be 0 for a row of 128 elements."""
    x: Any = np.zeros((8, 128), np.float32)
    given = from_dlpack(x).mark_layout_dynamic(leading_dim=1) if dynamic else from_dlpack(x)
    out = np.zeros(1, np.int64)
    measure(given, from_dlpack(out), far)
    assert out[0] == far * 128 * 4


@pytest.mark.parametrize("dynamic", [False, True])
def test_an_origin_before_an_array_with_long_rows(dynamic: bool) -> None:
    """A small coordinate times a long stride: more than 32 bits, too."""
    x: Any = np.lib.stride_tricks.as_strided(np.zeros(100_004, np.float32), (2, 4), (400_000, 4))
    given = from_dlpack(x).mark_layout_dynamic(leading_dim=1) if dynamic else from_dlpack(x)
    out = np.zeros(1, np.int64)
    measure(given, from_dlpack(out), -40_000)
    assert out[0] == -40_000 * 400_000
