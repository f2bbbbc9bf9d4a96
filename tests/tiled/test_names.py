"""The documented names by operand: each is what the general form gives for its letter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.tiled.staging import half_mma
from tilewright import cute, utils
from tilewright.cute.nvgpu import OperandMajorMode
from tilewright.cute.runtime import from_dlpack
from tilewright.layout import Layout, make_layout


@pytest.mark.parametrize("which", "ABC")
def test_forms_by_operand(which: str) -> None:
    mma = half_mma()
    rows, columns = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}[which]
    tile = make_layout((mma.get_tile_size(rows) * 2, mma.get_tile_size(columns) * 2))
    divided = getattr(mma, f"thrfrg_{which}")(tile)
    assert divided == mma.thrfrg(which, tile) and cute.size(divided) == cute.size(tile)
    part = mma.get_slice(0).partition(which, tile)[0]
    assert getattr(mma, f"partition_shape_{which}")(tile.shape) == part.shape
    assert getattr(mma, f"tv_layout_{which}_tiled") == mma.tv_layout_tiled(which)


def test_fragments_by_operand() -> None:
    shapes: dict[str, Any] = {}

    @cute.kernel
    def kernel(x: cute.Tensor):
        thread = half_mma().get_slice(cute.arch.thread_idx()[0])
        for which in "ABC":
            made = getattr(thread, f"partition_fragment_{which}")(x)
            assert made.shape == getattr(thread, f"partition_{which}")(x).shape
            shapes[which] = (made.shape, made.element_type)

    @cute.jit
    def run(x: cute.Tensor):
        kernel(x).launch(grid=1, block=half_mma().size)

    cute.compile(run, from_dlpack(np.zeros((64, 64), np.float16)))
    assert {which: kind for which, (_, kind) in shapes.items()} == {
        "A": cutlass.Float16,
        "B": cutlass.Float16,
        "C": cutlass.Float32,
    }


@pytest.mark.parametrize("stride, order", [((8, 1), "ROW_MAJOR"), ((1, 4), "COL_MAJOR")])
def test_the_order_of_a_matrix_says_the_major_of_each_operand(stride: tuple[int, int], order: str) -> None:
    class Matrix:
        layout = Layout((4, 8), stride)

    found = utils.LayoutEnum.from_tensor(Matrix)
    rows = order == "ROW_MAJOR"
    assert found is utils.LayoutEnum[order]
    assert found.mma_major_mode() is (OperandMajorMode.K if rows else OperandMajorMode.MN)
    assert (found.is_k_major_a(), found.is_k_major_b(), found.is_n_major_c()) == (rows,) * 3
    assert (found.is_m_major_a(), found.is_n_major_b(), found.is_m_major_c()) == (not rows,) * 3
