"""Vectors of Hopper's epilogue on their way early: each element loaded once by a warp, and the right one taken."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.gemm.test_hopper import sized
from tilewright.cute.runtime import from_dlpack
from tilewright.gemm import Bias, Chain, gemm
from tilewright.gemm.epilogue.scales import Scales
from tilewright.gemm.host import handle

SIZES = {
    "one after another": ((128, 128), {}),
    "beside each other": ((128, 320), {}),
    "in turns": ((128, 96), {"pingpong": True, "stages": 4, "epilogue_columns": 32}),
    "transposed": ((64, 48), {"transposed": True, "epilogue_columns": 16}),
    "three": ((192, 80), {"epilogue_columns": 16}),
}


@pytest.mark.parametrize("name", SIZES)
def test_each_element_is_loaded_once_by_a_warp(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three vectors, which begin within a tile's last one, with all elements different; the loads are counted in the
    program: 32 elements each."""
    tile, how = SIZES[name]
    entry = sized(tile, **how)
    monkeypatch.setattr(handle, "_COMPILED", {})
    rng = np.random.default_rng(0)
    m, n = 2 * tile[0] - 24, 2 * tile[1] - 8
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, 64), (64, n)))
    rows, columns = (np.exp2(np.arange(extent) % 4).astype(np.float32) for extent in (m, n))
    bias = (np.arange(n) % 7).astype(np.float16)
    vectors: list[Any] = [from_dlpack(x).mark_layout_dynamic() for x in (rows, columns, bias)]
    epilogue = Chain((Scales(*vectors[:2]), Bias(vectors[2])))
    report = gemm(a, b, kernel=entry, epilogue=epilogue, out=np.empty((m, n), np.float16))
    exact = (a.astype(np.float64) @ b) * rows[:, None] * columns + bias
    np.testing.assert_array_equal(report.d, exact.astype(np.float16))
    (compiled,) = handle._COMPILED.values()
    program = str(compiled.kernels[0])
    part = entry.config.part
    lines = [16 * part[0] // 64, part[1]]
    for_rows, for_columns = (-(-extent // 32) for extent in (lines[::-1] if entry.config.transposed else lines))
    assert len(re.findall(r"= load %\d+ : f(?:16|32)", program)) == for_rows + 2 * for_columns
