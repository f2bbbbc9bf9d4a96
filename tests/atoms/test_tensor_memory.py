"""Where elements are in tensor memory: the golden lines, laws over all elements, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests import golden_tensor_memory  # noqa: F401 - registers its handlers
from tests.golden import DATA, check, read
from tilewright.atoms.tensor_memory import (
    TmemAllocMode,
    accumulator_layout,
    elements_per_column,
    lane_stride,
    metadata_layout,
    tmem_address,
    tmem_columns,
    tmem_layout,
    tmem_offset,
    tmem_place,
    weight_stationary_layout,
)
from tilewright.errors import ConstraintError
from tilewright.layout import is_injective

LINES = list(read(DATA / "blackwell_tmem.jsonl"))


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line['op']}-{LINES.index(line)}")
def test_every_line(line: dict[str, Any]) -> None:
    assert check(line) == ""


def test_golden_tensor_memory_covers_all_lines() -> None:
    counts = {op: sum(line["op"] == op for line in LINES) for op in ("tmem_layout", "tmem_accumulator", "tmem_pointer")}
    assert counts == {"tmem_layout": 52, "tmem_accumulator": 12, "tmem_pointer": 18}


def test_rows_and_columns_of_a_pair() -> None:
    """M = 128 of a pair: the second half of N is 64 lanes above the first."""
    n, layout = 48, accumulator_layout((128, 48), (128, 48), ctas=2)
    for m in range(64):
        for j in range(n):
            assert tmem_place(layout(((m, j), 0, 0, 0)), 32) == (m + 64 * (j // (n // 2)), j % (n // 2), 0)


def test_64_rows_of_one_block_interleave() -> None:
    """The second tile has the columns of the first, 16 lanes above; alone, tiles go on along the columns."""
    both = accumulator_layout((64, 40), (128, 80))
    apart = accumulator_layout((64, 40), (128, 80), a_in_tmem=True)
    for m in range(64):
        lane = 32 * (m // 16) + m % 16
        for i in range(2):
            for j in range(2):
                coord = ((m, 7), i, j, 0)
                assert tmem_place(both(coord), 32) == (lane + 16 * i, 7 + 40 * j, 0)
                assert tmem_place(apart(coord), 32) == (lane, 7 + 40 * (i + 2 * j), 0)


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize(
    ("mma", "ctas", "stages", "columns"),
    [
        ((64, 40), 1, 2, 40),
        ((64, 256), 1, 4, 512),
        ((128, 200), 1, 2, 400),
        ((128, 64), 2, 5, 160),
        ((256, 160), 2, 3, 480),
    ],
)
def test_no_two_elements_share_a_place(mma: Any, ctas: int, stages: int, columns: int, bits: int) -> None:
    layout = accumulator_layout(mma, mma, bits, ctas=ctas, stages=stages)
    assert is_injective(layout)
    assert tmem_columns(layout, bits) == columns


def test_overlapping_stages_leave_columns() -> None:
    layout = accumulator_layout((128, 256), (128, 256), 16, stages=2, overlap=96)
    assert tmem_place(layout(((5, 0), 0, 0, 1)), 16) == (5, 160, 0)
    assert tmem_columns(layout, 16) == 416


@pytest.mark.parametrize("bits", [1, 4, 8, 16, 32])
def test_addresses_count_elements(bits: int) -> None:
    """Steps of one element go through a column before the next; steps from within a column carry, also backwards."""
    per = elements_per_column(bits)
    for count in range(3 * per):
        address = tmem_address(0x00050010, count, bits)
        assert address & 0x00FFFFFF == 0x00050010 + count // per
        assert tmem_place(tmem_offset(address, bits), bits) == (5, 16 + count // per, count % per)
        assert tmem_address(address, 1, bits) == tmem_address(0x00050010, count + 1, bits)
        assert tmem_address(address, -count, bits) == 0x00050010
    assert tmem_address(0, 7 * lane_stride(bits), bits) == 7 << 16


INTERLEAVED, NON_INTERLEAVED, DUPLICATED = TmemAllocMode


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: tmem_layout(((96, 64), 1, 1), 32), "has 96 rows; for one block and Interleaved it has 64 or 128"),
        (lambda: tmem_layout(((32, 64), 1, 1), 32), "has 32 rows; for one block"),
        (lambda: tmem_layout(((256, 64), 1, 1), 32, ctas=2), r"has 256 rows.*32 or 64 or 128 \(half of the MMA's M\)"),
        (lambda: tmem_layout(((32, 64), 1), 16, 16, 2, DUPLICATED), "has 32 rows; for a pair of blocks and Duplicated"),
        (lambda: tmem_layout(((64, 64), 1), 16, 16, 1, DUPLICATED), "not for one block, whose modes are Interleaved"),
        (lambda: tmem_layout(((64, 64), 1), 16, 16, 2, NON_INTERLEAVED), "not for a pair of blocks"),
        (lambda: tmem_layout(((64, 64), 1), 32, ctas=4), "1 or 2 blocks, not of 4"),
        (lambda: tmem_layout(((64, 33), 1, 1), 32, ctas=2), "N is 33; of 64 rows, the lanes have 2 equal parts of N"),
        (lambda: tmem_layout(((64, 64), 1, 3), 32), "interleave in pairs, and 3 tiles of the shape"),
        (lambda: tmem_layout(((64, 64), 3, 2), 32), "NON_INTERLEAVED"),
        (lambda: tmem_layout(((128, 256), 1, 3), 32), r"takes 768 columns, and there are 512"),
        (lambda: tmem_layout(((128, 256), 1, 3), 16), r"takes 768 columns"),
        (lambda: tmem_layout(((128, 100000), 1, 1), 32), r"takes 100000 columns"),
        (lambda: tmem_layout(((128, 6), 1), 8, 8), "6 elements of 8 bits in a lane.*multiple of 4"),
        (lambda: tmem_layout(((128, 8), 1), 32, 16), "16 bits of storage do not hold an element of 32 bits"),
        (lambda: tmem_layout(((128, 8), 1), 6), "elements of 6 bits do not fill a column"),
        (lambda: tmem_layout((128, 8), 32), "not of the form"),
        (lambda: tmem_layout(((128, 0), 1), 32), "not a positive integer"),
        (lambda: weight_stationary_layout(((96, 64), 1), 32), "M is 96; it can be 32, 64 or 128"),
        (lambda: weight_stationary_layout(((32, 66), 1), 32), "N is 66; of 32 rows, the lanes have 4 equal parts of N"),
        (lambda: metadata_layout(((128, 64), 1), 16), "128x64; of elements of 16 bits it is 128x32"),
        (lambda: metadata_layout(((128, 64), 1), 6), "4, 8, 16 or 32 bits, not 6"),
        (lambda: accumulator_layout((192, 64), (192, 64)), "M is 192; with 1 blocks it is 64 or 128"),
        (lambda: accumulator_layout((64, 64), (64, 64), ctas=2), "M is 64; with 2 blocks it is 128 or 256"),
        (lambda: accumulator_layout((128, 20), (128, 20)), "N is 20; with 1 blocks it is a multiple of 8 up to 256"),
        (lambda: accumulator_layout((256, 24), (256, 24), ctas=2), "N is 24; with 2 blocks it is a multiple of 16"),
        (lambda: accumulator_layout((128, 264), (128, 264)), "N is 264"),
        (lambda: accumulator_layout((128, 64), (192, 64)), "does not consist of MMAs"),
        (lambda: accumulator_layout((128, 64), (128, 64), 8), "16 or 32 bits, not 8"),
        (lambda: accumulator_layout((128, 64), (128, 64), stages=0), "0 stages"),
        (lambda: accumulator_layout((128, 256), (128, 256), stages=3), "768 columns"),
        (lambda: accumulator_layout((64, 64), (64, 64), stages=3), "interleave in pairs"),
        (lambda: accumulator_layout((128, 128), (128, 128), stages=2, overlap=32), "2 stages of 128 columns"),
        (lambda: accumulator_layout((64, 256), (64, 256), stages=2, overlap=32), "64 rows cannot share 32 columns"),
        (lambda: accumulator_layout((128, 256), (128, 256), stages=1, overlap=32), "1 stages of 256 columns"),
        (lambda: accumulator_layout((128, 256), (128, 256), stages=2, overlap=256), "share 1 to 255"),
    ],
)
def test_refusals(make: Callable[[], object], why: str) -> None:
    with pytest.raises(ConstraintError, match=why):
        make()
