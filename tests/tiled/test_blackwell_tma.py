"""TMA loads of operands of one and two blocks: tensor maps, what each block of a cluster loads, who receives it."""

from __future__ import annotations

from typing import Any

import pytest

from tests import golden_blackwell_tma  # noqa: F401 - registers its handlers
from tests.golden import DATA, check, read
from tests.golden_tma import TYPES

LINES = list(read(DATA / "blackwell_tma.jsonl"))


def is_known(line: dict[str, Any]) -> bool:
    """Whether tensor maps have the type and the swizzle: they know no packed 4- and 6-bit numbers (12 lines), and
    not the swizzle with chunks of 32 bytes (1 line)."""
    return line["args"]["type"] in TYPES and line["args"]["smem_swizzle"] != "Sw<2,5,2>"


KNOWN = [line for line in LINES if is_known(line)]


@pytest.mark.parametrize("line", KNOWN, ids=lambda line: f"{line['args']['atom']}-{KNOWN.index(line)}")
def test_every_line(line: dict[str, Any]) -> None:
    assert check(line) == ""


def test_all_lines_are_there() -> None:
    assert (len(LINES), len(KNOWN)) == (42, 29)


def test_a_wrong_line_fails() -> None:
    line = KNOWN[0]
    assert check(line | {"result": line["result"] | {"transaction_bytes_mma": 1}})
