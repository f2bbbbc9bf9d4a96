"""The algebra reproduces the golden files, and refuses or documents what breaks a precondition."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import DATA, HANDLERS, check, is_not_the_function, main, read
from tilewright.errors import LayoutError

LINES = [line for name in ("layout", "swizzle") for line in read(DATA / f"{name}.jsonl")]
OPS = sorted({line["op"] for line in LINES})


@pytest.mark.parametrize("op", OPS)
def test_every_line(op: str) -> None:
    problems = [f"{line['args']}: {check(line)}" for line in LINES if line["op"] == op and check(line)]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("line", list(read(DATA / "layout_preconditions.jsonl")), ids=lambda line: str(line["args"]))
def test_broken_preconditions(line: dict[str, object]) -> None:
    """What is not the function asked for is refused; a product whose copies alias is given as CuTe gives it."""
    if is_not_the_function(line):
        with pytest.raises(LayoutError, match="does not exist"):
            HANDLERS[str(line["op"])](line)
    else:
        assert check(line) == ""


def test_refusals_are_few_and_proven() -> None:
    """C++ checks divisibility mode by mode only: these results are not A(B(c)), or not the copies that were named."""
    refused = [f"{line['op']} {' '.join(line['args'])}" for line in LINES if is_not_the_function(line)]
    assert refused == [
        "zipped_product (8,6):(6,1) ((4,4):(1,4))",
        "composition_identity ((4),(6,2)) ((2,8),3):((24,3),1)",
        "tiled_product (8,1):(3,48) (4):(2)",
        "logical_product 2:4 (1,4):(0,3)",
    ]


def test_the_command_counts_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"op": "size", "args": ["(2,3)"], "result": "6"}\n{"op": "size", "args": ["4"], "result": "5"}\n')
    assert main([str(wrong)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 1 failed"
    assert main([str(DATA / "swizzle.jsonl"), str(DATA / "layout_preconditions.jsonl")]) == 0
