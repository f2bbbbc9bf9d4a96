"""``tilewright check --schedules`` and ``--systematic``: reports, exit codes, seeds."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from tilewright.cli.app import app

SCRIPT = """
import sys
import numpy as np
from tests.explore import programs
programs.run_two_locks(programs.counters(), "same" in sys.argv[1:])
"""


def test_drawn_schedules(tmp_path: Path) -> None:
    script = tmp_path / "locks.py"
    script.write_text(SCRIPT)
    found = CliRunner().invoke(app, ["check", "--schedules", "30", str(script)])
    assert found.exit_code == 1 and "stops before atom.acquire.cta.cas" in found.output, found.output
    seed = found.output.split("--seed ")[1].split()[0]
    again = CliRunner().invoke(app, ["check", "--schedules", "1", "--seed", seed, str(script)])
    assert again.exit_code == 1 and f"the schedule of seed {seed} fails" in again.output
    clean = CliRunner().invoke(app, ["check", "--schedules", "5", str(script), "same"])
    assert clean.exit_code == 0 and "no failing schedule among 5" in clean.output, clean.output


def test_every_order(tmp_path: Path) -> None:
    script = tmp_path / "locks.py"
    script.write_text(SCRIPT)
    found = CliRunner().invoke(app, ["check", "--systematic", str(script)])
    assert found.exit_code == 1 and "hangs" in found.output, found.output
    clean = CliRunner().invoke(app, ["check", "--systematic", str(script), "same"])
    assert clean.exit_code == 0 and "no deadlock, no finding" in clean.output.replace("\n", " "), clean.output
    bound = CliRunner().invoke(app, ["check", "--systematic", "--limit", "1", str(script), "same"])
    assert bound.exit_code == 0 and "not all orders have been run" in bound.output.replace("\n", " ")


def test_options_of_a_single_run_are_refused(tmp_path: Path) -> None:
    script = tmp_path / "locks.py"
    script.write_text(SCRIPT)
    for option in (["--check", "races"], ["--json", str(tmp_path / "x")], ["--sarif", str(tmp_path / "x")]):
        refused = CliRunner().invoke(app, ["check", "--systematic", *option, str(script)])
        assert refused.exit_code != 0 and "one schedule" in f"{refused.output}{refused.exception}".replace("\n", " ")
    assert not (tmp_path / "x").exists()
