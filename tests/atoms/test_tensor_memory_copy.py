"""The layouts of loads from and stores to tensor memory, and of copies from shared memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests import golden_tensor_memory  # noqa: F401 - registers its handlers
from tests.golden import DATA, check, read
from tilewright.atoms.tensor_memory import tmem_place
from tilewright.atoms.tensor_memory_copy import smem_to_tmem_layouts, tmem_copy_layouts
from tilewright.errors import ConstraintError

LINES = list(read(DATA / "blackwell_tmem_copy.jsonl"))
MOST = {"32x32b": 128, "16x32bx2": 128, "16x64b": 128, "16x128b": 64, "16x256b": 32}


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["args"]["op"])
def test_every_line(line: dict[str, Any]) -> None:
    assert check(line) == ""


def test_golden_tensor_memory_copies_cover_all_lines() -> None:
    assert len({line["args"]["op"] for line in LINES}) == 80


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("shape", MOST)
def test_registers_hold_every_word_once(shape: str, pack: bool) -> None:
    made = tmem_copy_layouts(shape, 2, pack)
    lanes = int(shape.split("x")[0])
    low = {made.place(thread, r) for thread in range(32) for r in range(made.register_count)}
    high = {made.place(thread, r, 16) for thread in range(32) for r in range(made.register_count)}
    assert low | high == {
        (lane, column, bit)
        for lane in range(lanes)
        for column in range(made.columns)
        for bit in ([0] if pack else [0, 16])
    }
    assert len(low) == len(high) == 32 * made.register_count


def test_16x256b_is_the_fragment_of_mma() -> None:
    made = tmem_copy_layouts("16x256b", 4)
    for thread in range(32):
        for r in range(16):
            row, column = thread // 4 + 8 * (r // 2 % 2), 2 * (thread % 4) + r % 2 + 8 * (r // 4)
            assert made.place(thread, r) == (row, column, 0)


@pytest.mark.parametrize("shape", MOST)
def test_the_most_registers(shape: str) -> None:
    assert tmem_copy_layouts(shape, MOST[shape]).register_count == 128
    with pytest.raises(ConstraintError, match=rf"powers of two, here up to x{MOST[shape]}, because"):
        tmem_copy_layouts(shape, 2 * MOST[shape])


@pytest.mark.parametrize(
    ("shape", "lanes"),
    [
        ("128x128b", lambda r: {r}),
        ("64x128b.warpx2::02_13", lambda r: {r, r + 64}),
        ("64x128b.warpx2::01_23", lambda r: {64 * (r // 32) + r % 32, 64 * (r // 32) + r % 32 + 32}),
        ("32x128b.warpx4", lambda r: {r, r + 32, r + 64, r + 96}),
    ],
)
def test_the_lanes_of_a_row(shape: str, lanes: Callable[[int], set[int]]) -> None:
    """Bits of row r of the data in shared memory (column-major: bit = r + rows * column) go to these lanes."""
    made, rows = smem_to_tmem_layouts(shape, 2), int(shape.split("x")[0])
    found: dict[tuple[int, int], set[int]] = {}
    for i in range(0, 128 * 128):
        lane, column, bit = tmem_place(made.places(made.destination((1, i))), 1)
        at = made.source((1, i))
        assert at // rows == 32 * column + bit
        found.setdefault((at % rows, at // rows), set()).add(lane)
    assert found == {(r, k): lanes(r) for r in range(rows) for k in range(128)}


def test_one_row_for_each_warp() -> None:
    made = smem_to_tmem_layouts("4x256b")
    places = [tmem_place(made.places(made.destination((0, i))), 1) for i in range(4 * 256)]
    assert places == [(32 * (i % 4), i // 4 // 32, i // 4 % 32) for i in range(4 * 256)]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: tmem_copy_layouts("32x64b", 1), "no shape '32x64b'; they have 32x32b, 16x32bx2"),
        (lambda: tmem_copy_layouts("32x32b", 3), r"of 32x32b.x3: repetitions are powers of two"),
        (lambda: tmem_copy_layouts("32x32b", 0), "powers of two"),
        (lambda: smem_to_tmem_layouts("32x128b"), r"no shape '32x128b'; it has .*32x128b.warpx4"),
        (lambda: smem_to_tmem_layouts("128x128b", 3), "1 or 2 blocks, not for 3"),
    ],
)
def test_refusals(make: Callable[[], object], why: str) -> None:
    with pytest.raises(ConstraintError, match=why):
        make()
