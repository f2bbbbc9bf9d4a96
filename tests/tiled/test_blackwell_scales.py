"""Scale factors of a tile, and the tiled copy that brings them to tensor memory: golden lines."""

from __future__ import annotations

from typing import Any

import pytest

from tests import golden_blackwell_scales  # noqa: F401 - registers its handlers
from tests.golden import DATA, check, read

LINES = list(read(DATA / "blackwell_scales.jsonl"))


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line['args']['atom']}-{LINES.index(line)}")
def test_every_line(line: dict[str, Any]) -> None:
    assert check(line) == ""


def test_golden_blackwell_scales_cover_all_lines() -> None:
    assert len(LINES) == 20


def test_a_wrong_line_fails() -> None:
    line = LINES[0]
    assert check(line | {"result": line["result"] | {"end_column": 1}})
