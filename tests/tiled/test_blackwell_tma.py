"""TMA loads of operands and scale factors of one and two blocks: maps, what each block loads, who receives it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests import golden_blackwell_tma  # noqa: F401 - registers its handlers
from tests.golden import DATA, check, read
from tilewright.errors import ArgumentError
from tilewright.ir.types import E2M1, EXPANDED
from tilewright.layout import Layout
from tilewright.tiled.tma.plan import TmaPlan

LINES = list(read(DATA / "blackwell_tma.jsonl"))


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line['args']['atom']}-{LINES.index(line)}")
def test_every_line(line: dict[str, Any]) -> None:
    assert check(line) == ""


def test_golden_blackwell_tma_covers_all_lines() -> None:
    assert Counter(line["op"] for line in LINES) == {"sm100_tma": 42, "sm100_tma_sf": 15}


def test_a_wrong_line_fails() -> None:
    line = LINES[0]
    assert check(line | {"result": line["result"] | {"transaction_bytes_mma": 1}})


def test_expanded_elements_need_boxes_of_128() -> None:
    def plan(extent: int, box: int, swizzle: int) -> TmaPlan:
        tile = Layout((128, box), (box, 1))
        return TmaPlan(Layout((128, extent), (extent, 1)), tile, (128, box), E2M1, EXPANDED[4], swizzle)

    assert [problem.partition(":")[0] for problem in plan(128, 64, 2).problems()] == [
        "the inner box extent is 64, and TMA copies e2m1 expanded to 16 bytes for 16 numbers 128 at a time",
        "e2m1 expanded to 16 bytes for 16 numbers take the swizzle 128B, or none, not 64B",
    ]
    good = plan(256, 128, 3)
    assert not good.problems() and good.tile_bytes == good.box_bytes == 128 * 64
    made, *_ = good.template().make(64, [])
    assert (made.box_bytes, made.place_bytes) == (128 * 64, 128 * 128)
    for extent, address, message in ((192, 64, "in multiples of 128"), (256, 48, "address 0x30 .* multiple of 32")):
        with pytest.raises(ArgumentError, match=message):
            plan(extent, 128, 3).template().make(address, [])
