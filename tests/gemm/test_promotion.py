"""Sums of 8-bit floats that are promoted to Float32 accumulators every few k tiles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.gemm.test_gemm import MACHINES
from tests.gemm.test_hopper import operands, product, sized
from tilewright.errors import ConstraintError
from tilewright.gemm import KernelEntry, cross_compile, gemm, kernels

E4M3 = kernels()["hopper_e4m3"]


def promoted(every: int, tile: tuple[int, int] = (128, 128), **changes: Any) -> KernelEntry:
    return sized(tile, entry=E4M3, promote=every, **changes)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("every", [0, 1, 2, 3, 100])
def test_exact_for_integers(every: int, machine: str) -> None:
    """7 k tiles: groups of one, of unequal lengths, and one that is never full."""
    a, b = operands("hopper_e4m3", 136, 136, 6 * 128 + 32)
    d = np.zeros((136, 136), np.float32)
    gemm(a, b, kernel=promoted(every), machine=machine, out=d)
    np.testing.assert_array_equal(d, product(a, b))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("tile", [(256, 128), (192, 64), (64, 64), (192, 128)], ids=str)
def test_rows_one_after_another_and_two_sets_in_turn(tile: tuple[int, int], machine: str) -> None:
    """Two sets of registers for the sums of two k tiles, and one for those of 64 rows, of two or one of them."""
    entry = sized(tile, entry=E4M3, promote=1, **({} if tile[0] != 192 else {"consumers": (3, 1)}))
    for k_tiles in (1, 2, 3, 4):
        a, b = operands("hopper_e4m3", 136, 72, k_tiles * 128 - 16)
        d = np.zeros((136, 72), np.float32)
        gemm(a, b, kernel=entry, machine=machine, out=d)
        np.testing.assert_array_equal(d, product(a, b))


@pytest.mark.parametrize("machine", MACHINES)
def test_with_warpgroups_that_take_turns(machine: str) -> None:
    a, b = operands("hopper_e4m3", 136, 136, 5 * 128)
    d = np.zeros((136, 136), np.float32)
    gemm(a, b, kernel=promoted(2, (64, 128), pingpong=True, consumers=(2, 1), stages=3), machine=machine, out=d)
    np.testing.assert_array_equal(d, product(a, b))


@pytest.mark.gpu
def test_long_sums_are_more_accurate() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((256, 8192)).astype(ml_dtypes.float8_e4m3fn)
    b = rng.standard_normal((256, 8192)).astype(ml_dtypes.float8_e4m3fn).T
    exact = product(a, b)
    errors = []
    for every in (0, 1):
        d = np.zeros((256, 256), np.float32)
        gemm(a, b, kernel=promoted(every), machine="gpu", out=d)
        errors.append(float(np.linalg.norm(d - exact) / np.linalg.norm(exact)))
    assert errors[1] < errors[0]
    assert errors[1] < 2e-3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"promote": -1}, "a number of k tiles after which sums are promoted, or 0, not -1"),
        ({"promote": 1, "tile": (128, 256, 128)}, "at most 192 registers of a thread for its sums and those"),
        ({"promote": 1, "roles": "one"}, "a warpgroup that loads where sums are promoted"),
    ],
)
def test_promotion_refuses_configs_without_room_or_float32(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        replace(promoted(1).config, **changes).check()


def test_integers_are_not_promoted() -> None:
    with pytest.raises(ConstraintError, match="Float32 accumulators"):
        replace(sized((128, 128), entry=kernels()["hopper_i8"]).config, promote=1).check()


@pytest.mark.parametrize("tile", [(128, 128), (128, 160)], ids=str)
def test_compiled(tile: tuple[int, int]) -> None:
    artifact = cross_compile(promoted(2, tile).config, "sm_90a")
    assert artifact.spills == 0 and "serializ" not in artifact.log
    assert artifact.ptx.count("add.f32") == tile[0] * tile[1] // 256, "one addition for each accumulator of a thread"


@pytest.mark.parametrize(("tile", "additions"), [((256, 128), 1), ((128, 128), 5)], ids=str)
def test_compiled_for_each_k_tile(tile: tuple[int, int], additions: int) -> None:
    """In turn: two in the loop, and one or two behind it."""
    artifact = cross_compile(promoted(1, tile).config, "sm_90a")
    assert artifact.spills == 0 and "serializ" not in artifact.log
    assert artifact.ptx.count("add.f32") >= additions * tile[0] * tile[1] // 256
