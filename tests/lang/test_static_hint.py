"""Arrays that are passed as they are have dynamic layouts: errors that need a static one name from_dlpack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import HOW_STATIC, TilewrightError


def count(x: Any) -> None:
    for i in cutlass.range_constexpr(x.shape[0]):
        x[i] = 1.0


USES: list[Callable[[Any], Any]] = [
    lambda x: x.load(),
    lambda x: cute.make_rmem_tensor(x.shape, cutlass.Float32),
    lambda x: cute.make_fragment_like(x),
    lambda x: cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, x.layout),
    count,
]


@pytest.mark.parametrize("use", USES)
def test_the_error_says_how_to_pass_a_static_layout(use: Callable[[Any], Any]) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor) -> None:
        use(x)

    @cute.jit
    def host(x: cute.Tensor) -> None:
        kernel(x).launch(grid=(1, 1, 1), block=(1, 1, 1))

    array = np.zeros(8, np.float32)
    with pytest.raises(TilewrightError) as caught:
        host(array)
    assert HOW_STATIC in str(caught.value)
    host(from_dlpack(array))
