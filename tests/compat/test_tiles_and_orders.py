"""Shapes of tiles and orders of strides as documented: ``local_tile``, ``make_fake_compact_tensor``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import Float32, cute
from tilewright.cute.runtime import from_dlpack, make_fake_compact_tensor


@pytest.mark.parametrize(
    ("coord", "shape", "stride"), [((None,), (16, 4), (1, 16)), ((1,), (16,), (1,)), (1, (16,), (1,))]
)
def test_tiles_of_one_mode_have_no_extra_level(coord: Any, shape: Any, stride: Any) -> None:
    seen = []

    @cute.jit
    def host(x: cute.Tensor) -> None:
        tile = cute.local_tile(x, (16,), coord)
        seen.append((tile.shape, tile.stride))

    host(from_dlpack(np.zeros(64, np.float32)))
    assert seen == [(shape, stride)]


@pytest.mark.parametrize(
    ("shape", "order", "stride"),
    [
        ((3, 5), (1, 0), (5, 1)),
        ((3, 5), (0, 1), (1, 3)),
        ((3, 5), None, (1, 3)),
        ((2, 3, 5), (2, 0, 1), (15, 1, 3)),
        ((2, 3, 5), (2, 1, 0), (15, 5, 1)),
    ],
)
def test_the_mode_of_order_0_is_the_fastest(shape: Any, order: Any, stride: Any) -> None:
    assert tuple(make_fake_compact_tensor(Float32, shape, stride_order=order).stride) == stride
