"""What tiles cost in a kernel: the divisions in its IR, where each must be one that no static fact removes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.ir.core import Constant, Op, print_function

DIVIDES = ("div", "rem", "floordiv", "floormod")
ROWS, COLUMNS = 256, 128


def whole_tiles(a: Any, tx: Any, bx: Any, by: Any, n: Any) -> Any:
    return cute.zipped_divide(a, (64, 32))[(tx, 1), (bx, by)]


def tile_by_index(a: Any, tx: Any, bx: Any, by: Any, n: Any) -> Any:
    return cute.zipped_divide(a, (64, 32))[tx, (bx, by)]


def tiled(a: Any, tx: Any, bx: Any, by: Any, n: Any) -> Any:
    return cute.tiled_divide(a, (64, 32))[(tx, 1), bx, by]


def one_tile(a: Any, tx: Any, bx: Any, by: Any, n: Any) -> Any:
    return cute.local_tile(a, (64, 32), (bx, None))[tx, 1, by]


def projected(a: Any, tx: Any, bx: Any, by: Any, n: Any) -> Any:
    return cute.local_tile(a, (64, 16, 32), (bx, by, None), proj=(1, None, 1))[tx, 0, by]


def partitioned(a: Any, tx: Any, bx: Any, by: Any, n: Any) -> Any:
    return cute.local_partition(a, cute.make_layout((8, 16), stride=(16, 1)), tx)[1, 1]


def two_warps(a: Any, tx: Any, bx: Any, by: Any, n: Any) -> Any:
    i, j, k = cute.idx2crd(tx, (32, 2, 2))
    return a[i, j + k]


def one_group(a: Any, tx: Any, bx: Any, by: Any, n: Any) -> Any:
    i, j = cute.idx2crd(tx, (128, 4))  # a block has 128 threads: j is 0
    return a[i, j]


def product_of_an_argument(a: Any, tx: Any, bx: Any, by: Any, n: Any) -> Any:
    tiles = cute.zipped_divide(cute.make_layout((n * 64, 32), stride=(32, 1)), (64, 32))
    return a[0, 0] + cutlass.Float32(cute.size(tiles, mode=[1]) + tiles((tx, 0), (bx, 0)))


def composed_with_an_argument(a: Any, tx: Any, bx: Any, by: Any, n: Any) -> Any:
    layout = cute.composition(cute.make_layout((n * 8, 4), stride=(1, 1000)), cute.make_layout((n, 4)))
    return a[0, 0] + cutlass.Float32(layout(0, 3))


TILINGS: list[tuple[Callable[..., Any], list[str]]] = [
    (whole_tiles, []),
    (tile_by_index, ["div 64", "rem 64"]),  # the thread's place in a tile of 64 rows
    (tiled, []),
    (one_tile, []),
    (projected, []),
    (partitioned, ["div 16", "rem 16"]),  # the thread's place among 8 x 16 threads: no `% 8`, there are 128
    (two_warps, ["div 32", "div 64", "rem 2", "rem 32"]),
    (one_group, []),
    (product_of_an_argument, []),
    (composed_with_an_argument, []),
]


def divisions(op: Op) -> str:
    divisor = op.operands[1]
    return f"{op.opcode} {divisor.value if isinstance(divisor, Constant) else '?'}"


@pytest.mark.parametrize("tiling,expected", TILINGS)
def test_divisions(tiling: Callable[..., Any], expected: list[str]) -> None:
    @cute.kernel
    def kernel(a: cute.Tensor, out: cute.Tensor, n: cutlass.Int32) -> None:
        tx, _, _ = cute.arch.thread_idx()
        bx, by, _ = cute.arch.block_idx()
        out[tx] = tiling(a, tx, bx, by, n)

    @cute.jit
    def host(a: cute.Tensor, out: cute.Tensor, n: cutlass.Int32) -> None:
        kernel(a, out, n).launch(grid=(2, 2, 1), block=(128, 1, 1))

    a = np.zeros((ROWS, COLUMNS), np.float32)
    program = cute.compile(
        host, from_dlpack(a).mark_layout_dynamic(), from_dlpack(np.zeros(128, np.float32)), cutlass.Int32(5)
    )
    found = sorted(divisions(op) for op in program.kernels[0].walk() if op.opcode in DIVIDES)
    assert found == expected, print_function(program.kernels[0])
