"""The pytest plugin: a library's tests under the checks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.check.shared_memory import reversed_without_a_barrier
from tests.cli.test_check import SCRIPT

TESTS = (
    SCRIPT
    + """
import pytest

def go(*words):
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    run(x, y, "sync" in words)

def test_race(): go()
def test_twin(): go("sync")

@pytest.mark.tilewright_check("none")
def test_unchecked(): go()

def test_report(tilewright_check):
    with tilewright_check("races") as report:
        go()
    assert report.rules == ["data-race"] and report.errors[0].kernel == "reverse"
"""
)


def outcome(folder: Path, *arguments: str) -> tuple[str, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tilewright.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True)
    return done.stdout, done.stderr


def test_a_librarys_tests_run_under_the_checks(tmp_path: Path) -> None:
    (tmp_path / "test_library.py").write_text(TESTS)
    out, _ = outcome(tmp_path, "--tilewright-check=races", "--tilewright-sarif=found.sarif", "test_library.py")
    assert "1 failed, 3 passed" in out, out
    assert "data-race: data race in shared memory" in out and "1 findings of the simulator's checks in 1 tests" in out
    (run,) = json.loads((tmp_path / "found.sarif").read_text())["runs"]
    (result,) = run["results"]
    places = [place["physicalLocation"] for place in (*result["locations"], *result["relatedLocations"])]
    assert result["ruleId"] == "data-race" and {place["artifactLocation"]["uri"] for place in places} == {
        "test_library.py"
    }
    texts = TESTS.splitlines()
    lines = {texts[place["region"]["startLine"] - 1].strip() for place in places}
    assert lines == {"s[t] = x[t]", "y[t] = s[63 - t]"}


def test_the_command_line_turns_them_off(tmp_path: Path) -> None:
    (tmp_path / "test_library.py").write_text(TESTS)
    out, _ = outcome(tmp_path, "--tilewright-check=none", "test_library.py")
    assert "4 passed" in out, out
    out, err = outcome(tmp_path, "--tilewright-check=raced", "test_library.py::test_twin")
    assert "did you mean 'races'" in out + err, out + err


def test_the_fixture(tilewright_check) -> None:
    with tilewright_check("all") as report:
        reversed_without_a_barrier(True)
        reversed_without_a_barrier(True)
    (race,) = [finding for finding in report if finding.rule == "data-race"]
    assert race.count > 64 and np.prod(race.parties[0].who.block) == 0
    with tilewright_check("all") as report:
        reversed_without_a_barrier(False)
    assert list(report) == []
