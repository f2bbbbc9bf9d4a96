"""Tensors of the host program: marked in place, tiled and sliced outside jit functions."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError


@cute.kernel
def gather(a: cute.Tensor, out: cute.Tensor) -> None:
    i, _, _ = cute.arch.thread_idx()
    out[i] = a[(i % 4, i // 4), (1, 1)]


@cute.jit
def second_tile(a: cute.Tensor, out: cute.Tensor) -> None:
    gather(a, out).launch(grid=(1, 1, 1), block=(32, 1, 1))


def test_marks_change_the_tensor_in_place_and_return_it() -> None:
    tensor = from_dlpack(np.zeros((8, 16), np.float32))
    assert tensor.mark_layout_dynamic() is tensor
    assert str(tensor.layout) == "(?,?):(?,1)" and tensor.is_dynamic_layout
    assert tensor.mark_compact_shape_dynamic(1, divisibility=4) is tensor
    assert str(tensor.layout) == "(?,?{div=4}):(?{div=4},1)"
    compact = from_dlpack(np.zeros((8, 16, 4), np.float32))
    compact.mark_compact_shape_dynamic(0)
    compact.mark_compact_shape_dynamic(1, divisibility=16)
    assert str(compact.layout) == "(?,?{div=16},4):(?{div=64},4,1)"


def test_a_call_after_a_mark_is_a_call_of_the_marked_tensor() -> None:
    @cute.jit
    def show(a: cute.Tensor) -> None:
        seen.append(str(a.layout))

    seen: list[str] = []
    tensor = from_dlpack(np.zeros((8, 16), np.float32))
    show(tensor)
    tensor.mark_layout_dynamic()
    show(tensor)
    assert seen == ["(8,16):(16,1)", "(?,?):(?,1)"]


@pytest.mark.parametrize("dynamic", [False, True])
def test_tilings_outside_jit(dynamic: bool) -> None:
    x = np.arange(8 * 16, dtype=np.float32).reshape(8, 16)
    tensor = from_dlpack(x)
    if dynamic:
        tensor.mark_layout_dynamic()
    tiles = cute.zipped_divide(tensor, (4, 8))
    wanted = "((4,8),(?,?)):((?,1),(?,8))" if dynamic else "((4,8),(2,2)):((16,1),(64,8))"
    assert str(tiles.layout) == wanted
    assert tiles[(1, 2), (1, 1)] == x[5, 10] and tiles[5, 3] == x[5, 9]
    tiles[(1, 2), (1, 1)] = -1
    assert x[5, 10] == -1
    np.testing.assert_array_equal(cute.local_tile(tensor, (4, 8), (1, 1)).numpy(), x[4:, 8:])
    np.testing.assert_array_equal(cute.local_tile(tensor, (4, 8), (1, None)).numpy()[:, :, 1], x[4:, 8:])
    np.testing.assert_array_equal(cute.local_partition(tensor, cute.make_layout((2, 2)), 1).numpy(), x[1::2, ::2])
    np.testing.assert_array_equal(tensor[3, None].numpy(), x[3])
    out = np.zeros(32, np.float32)
    second_tile(tiles, from_dlpack(out))
    np.testing.assert_array_equal(out.reshape(8, 4).T, x[4:, 8:])
    wider = np.arange(12 * 24, dtype=np.float32).reshape(12, 24)
    compiled = cute.compile(second_tile, tiles, from_dlpack(out))
    again = cute.zipped_divide(from_dlpack(wider).mark_layout_dynamic() if dynamic else from_dlpack(wider), (4, 8))
    if dynamic:
        compiled(again, from_dlpack(out))
        np.testing.assert_array_equal(out.reshape(8, 4).T, wider[4:8, 8:16])
    else:
        with pytest.raises(ArgumentError, match="argument 'a'"):
            compiled(again, from_dlpack(out))


def test_a_tiled_tensor_is_marked_before_it_is_tiled() -> None:
    tiles = cute.zipped_divide(from_dlpack(np.zeros((8, 16), np.float32)), (4, 8))
    with pytest.raises(ArgumentError, match="mark it before it is tiled"):
        tiles.mark_layout_dynamic()
