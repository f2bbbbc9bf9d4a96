"""TMA loads of operands and scale factors of one and two blocks: maps, what each block loads, who receives it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests import golden_blackwell_tma  # noqa: F401 - registers its handlers
from tests.golden import DATA, check, read
from tests.golden_tma import TYPES

LINES = list(read(DATA / "blackwell_tma.jsonl"))


def is_known(line: dict[str, Any]) -> bool:
    """Whether tensor maps have the type and the swizzle: they know no packed 4- and 6-bit numbers (12 lines), and
    not the swizzle with chunks of 32 bytes (1 line)."""
    args = line["args"]
    return line["op"] == "sm100_tma_sf" or args["type"] in TYPES and args["smem_swizzle"] != "Sw<2,5,2>"


KNOWN = [line for line in LINES if is_known(line)]


@pytest.mark.parametrize("line", KNOWN, ids=lambda line: f"{line['args']['atom']}-{KNOWN.index(line)}")
def test_every_line(line: dict[str, Any]) -> None:
    assert check(line) == ""


def test_all_lines_are_there() -> None:
    assert Counter(line["op"] for line in LINES) == {"sm100_tma": 42, "sm100_tma_sf": 15}
    assert len(KNOWN) == 29 + 15


def test_a_wrong_line_fails() -> None:
    line = KNOWN[0]
    assert check(line | {"result": line["result"] | {"transaction_bytes_mma": 1}})
