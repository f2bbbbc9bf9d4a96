"""What the makers of tiled operations refuse, before any kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.tiled.staging import half_mma, universal
from tilewright import cute
from tilewright.errors import ConstraintError
from tilewright.layout import Layout, make_layout

OP = cute.nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))


@pytest.mark.parametrize(
    ("atoms", "permutation", "words"),
    [
        ((2, 2, 1, 1), None, "has more modes than M, N and K"),
        (Layout((2, 2, 1), (0, 0, 0)), None, "gives 4 atoms only 1 warps"),
        ((2, 2, 1), (0, 32, 16), "not a tile"),
        ((2, 2, 1), (32.0, 32, 16), "not a tile"),
        ((2, 2, 1), (32, 32, 16, 8), "not a tile"),
        ((2, 2, 1), "abc", "not a tile"),
        ((2, 2, 1), (True, 32, 16), "not a tile"),
        ((2, 2, 1), ((2, True), 32, 16), "not a tile"),
        ((2, 2, 1), (Layout((8, 4), (1, 2)), 32, 16), "takes an element twice"),
        ((2, 2, 1), (48, 32, 16), r"48 along M .*\(atom layout \(2,2,1\):\(1,2,0\), permutation \(48,32,16\)\)"),
    ],
)
def test_tiled_mma(atoms: Any, permutation: Any, words: str) -> None:
    with pytest.raises(ConstraintError, match=words):
        cute.make_tiled_mma(OP, atoms, permutation)


def test_one_extent_is_the_tile_along_m() -> None:
    assert cute.make_tiled_mma(OP, (2, 2, 1), 64).tile_shape_mnk == (64, 16, 16)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cute.make_tiled_copy_tv(None, Layout(4), Layout(2)), "takes a copy atom, not None"),
        (lambda: cute.make_tiled_copy_tv(universal(16), (4, 8), Layout(2)), "takes a layout of threads"),
        (lambda: cute.make_tiled_copy_tv(universal(16), Layout(4), 2), "takes a layout of values"),
        (lambda: cute.make_tiled_copy_A(universal(16), None), "make_tiled_copy_A takes a tiled MMA"),
        (lambda: cute.make_tiled_copy_B(None, half_mma()), "make_tiled_copy_B takes a copy atom"),
        (lambda: cute.make_tiled_copy_C(universal(16), universal(16)), "make_tiled_copy_C takes a tiled MMA"),
        (lambda: cute.make_tiled_copy_S(universal(16), None), "make_tiled_copy_S takes a tiled copy"),
        (lambda: cute.make_tiled_copy_D(universal(16), half_mma()), "make_tiled_copy_D takes a tiled copy"),
        (lambda: cute.make_tiled_copy_C_atom(universal(16), None), "make_tiled_copy_C_atom takes a tiled MMA"),
        (lambda: cute.make_tiled_copy(universal(16), Layout(4), (4,)), r"two modes \(thread, value\)"),
        (lambda: cute.make_tiled_copy(universal(16), Layout((4, 2)), None), "a tile has a positive extent"),
        (lambda: cute.make_tiled_copy(universal(16), Layout((4, 2)), True), "a tile has a positive extent"),
        (lambda: cute.make_tiled_copy(universal(16), Layout((4, 2)), (0, 8)), "a tile has a positive extent"),
        (lambda: cute.make_tiled_copy(universal(16), Layout((32, 2), (1, 64)), (32, 2)), "reaches coordinate 95"),
        (lambda: cute.make_cotiled_copy(universal(16), Layout(32), Layout(32)), r"two modes \(thread, value\)"),
        (lambda: cute.make_tiled_copy_tv(universal(32), Layout((1, 1)), Layout((2, 3), (3, 1))), "do not divide"),
        (lambda: cute.make_tiled_copy_tv(universal(128), Layout((3, 1)), Layout((6, 4))), "do not divide"),
        (lambda: cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), None), "None is not a numeric type"),
    ],
)
def test_tiled_copies(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ConstraintError, match=words):
        make()


def test_threads_that_are_not_there() -> None:
    copy = cute.make_tiled_copy_tv(universal(16), make_layout(32), make_layout(2))
    with pytest.raises(ConstraintError, match="no thread 32 among the 32 of a tiled copy"):
        copy.get_slice(32)
    with pytest.raises(ConstraintError, match="no thread 128 among the 128 of a tiled MMA"):
        half_mma().get_slice(128)
