"""Mistakes on the command lines of the searches: one line that names what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEARCHES = {
    "operands": ["-m", "tests.gemm.operand_search"],
    "copies": ["-m", "tests.tiled.copy_search"],
    "staging": ["bench/staging_search.py"],
}


def complaint(*words: str) -> str:
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("search", SEARCHES)
def test_search_without_processes(search: str) -> None:
    assert "argument --jobs: '0' is not a whole number above 0" in complaint(*SEARCHES[search], "--jobs", "0")


def test_search_refuses_no_cases_and_unknown_kernels() -> None:
    assert "argument --cases: '-1' is not a whole number above 0" in complaint(*SEARCHES["operands"], "--cases=-1")
    assert "argument --kernel: invalid choice: 'abacus'" in complaint(*SEARCHES["operands"], "--kernel", "abacus")
