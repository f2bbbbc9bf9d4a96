"""Mistakes on the command lines of the searches: one line that names what is wrong."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEARCHES = {
    "operands": "tests.gemm.operand_search",
    "copies": "tests.tiled.copy_search",
    "staging": "bench/staging_search.py",
    "calls": "tests.gemm.call_sequences",
    "programs": "tests.lang.program_search",
    "vectors": "tests.lang.vector_search",
    "lanes": "tests.lang.warp_search",
    "arguments": "tests.lang.argument_search",
}
Capture = pytest.CaptureFixture[str]


def complaint(search: str, *words: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> str:
    """The last line that a search as a program writes to its standard error; it ends with code 2."""
    where = SEARCHES[search]
    monkeypatch.setattr(sys, "argv", [where, *words])
    monkeypatch.setattr(sys, "path", [str(ROOT / "bench"), *sys.path])
    with pytest.raises(SystemExit) as ended:
        if where.endswith(".py"):
            runpy.run_path(str(ROOT / where), run_name="__main__")
        else:
            runpy.run_module(where, run_name="__main__")
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("search", SEARCHES)
def test_search_without_processes(search: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    said = complaint(search, "--jobs", "0", capsys=capsys, monkeypatch=monkeypatch)
    assert "argument --jobs: '0' is not a whole number above 0" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cases=-1"], "argument --cases: '-1' is not a whole number above 0"),
        (["--kernel", "abacus"], "argument --kernel: invalid choice: 'abacus'"),
    ],
)
def test_search_refuses_no_cases_and_unknown_kernels(
    words: list[str], message: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert message in complaint("operands", *words, capsys=capsys, monkeypatch=monkeypatch)
