"""Tiled copies between tensor memory and registers: golden lines of tilers, partitions, places and coordinates."""

from __future__ import annotations

from typing import Any

import pytest

from tests import golden_tmem_copy  # noqa: F401 - registers its handlers
from tests.golden import DATA, check, read

LINES = list(read(DATA / "blackwell_tiled_copy.jsonl"))


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line['args']['op']}-{LINES.index(line)}")
def test_every_line(line: dict[str, Any]) -> None:
    assert check(line) == ""


def test_golden_blackwell_copies_cover_all_lines() -> None:
    assert len(LINES) == 38


def test_a_wrong_line_fails() -> None:
    line = LINES[0]
    assert check(line | {"result": line["result"] | {"threads": 1}})
