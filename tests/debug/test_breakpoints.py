"""Breakpoints: an action at a line, and the Python debugger there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.debug import programs as p
from tilewright import sim
from tilewright.sim.debug import Frame


def test_an_action_is_called_for_each_group_that_comes() -> None:
    seen: list[tuple[object, int, int]] = []

    def action(frame: Frame) -> None:
        seen.append((frame.block, frame.warp, frame.value("t")))

    with sim.debug.break_at(p.where("last"), block=1, warp=1, lane=2, action=action) as point:
        p.act()
    assert seen == [((1, 0, 0), 1, 34)] and point.hits == 1
    p.act()
    assert point.hits == 1


def test_breakpoint_stops_the_requested_number_of_times() -> None:
    hits = []
    with sim.debug.break_at(p.where("loop"), lane=0, times=3, action=lambda frame: hits.append(frame.value("i"))):
        p.act()
    assert len(hits) == 3


def test_several_breakpoints_and_results_are_the_programs_own() -> None:
    plain = p.act()[1]
    with (
        sim.debug.break_at(p.where("store"), action=p.nothing) as one,
        sim.debug.break_at(p.where("last"), action=p.nothing) as other,
    ):
        y = p.act()[1]
    assert one.hits and other.hits
    np.testing.assert_array_equal(y, plain)


def test_the_kernels_variables_are_variables_of_the_debugger(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}

    def hook() -> None:
        caller = sys._getframe(1)
        seen.update(caller.f_globals, file=caller.f_code.co_filename, line=caller.f_lineno)

    monkeypatch.setattr(sys, "breakpointhook", hook)
    with sim.debug.break_at(p.where("last"), block=0, warp=0, lane=1, times=1):
        p.act()
    assert seen["t"] == 1 and seen["s"].shape == (8, 8) and seen["frame"].lane == 1
    assert seen["file"] == p.__file__ and seen["line"] == p.line("last")


def test_pdb(tmp_path: Path) -> None:
    script = tmp_path / "look.py"
    script.write_text(
        "from tests.debug import programs as p\nfrom tilewright import sim\n"
        "sim.debug.break_at(p.where('last'), block=0, warp=1, lane=1, times=1)\np.act()\nprint('done')\n"
    )
    root = Path(__file__).resolve().parents[2]
    given = "p t * 100\np s[0, 1]\np frame.warp\nc\n"
    found = subprocess.run(
        [sys.executable, str(script)],
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert found.returncode == 0, found.stderr
    for text in ("block (0, 0, 0), warp 1, lane 1 (thread (33, 0, 0))", "(Pdb) 3300", "# last", "done"):
        assert text in found.stdout, found.stdout
