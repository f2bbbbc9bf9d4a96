"""``tilewright check --schedules`` and ``--systematic``: reports, exit codes, seeds."""

from __future__ import annotations

import json
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


def test_exploration_writes_json_and_sarif(tmp_path: Path) -> None:
    script, found, shown = tmp_path / "locks.py", tmp_path / "found.json", tmp_path / "found.sarif"
    script.write_text(SCRIPT)
    files = ["--json", str(found), "--sarif", str(shown)]
    assert CliRunner().invoke(app, ["check", "--schedules", "30", *files, str(script)]).exit_code == 1
    document = json.loads(found.read_text())
    (failed,) = [launch for launch in document["explored"] if "failure" in launch]
    (finding,) = document["findings"]
    assert finding["kernel"] == failed["kernel"] == "two_locks" and finding["rule"] == "simulation-error"
    assert finding["schedule"].startswith(f"seed {failed['failure']['seed']} ") and finding["parties"]
    (result,) = json.loads(shown.read_text())["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert "programs.py" in place["artifactLocation"]["uri"] and "while" in place["region"]["snippet"]["text"]
    assert "--schedules 1 --seed" in result["message"]["text"]

    assert CliRunner().invoke(app, ["check", "--systematic", *files, str(script), "same"]).exit_code == 0
    document = json.loads(found.read_text())
    assert document["findings"] == [] and document["explored"][0]["complete"]
    assert "no deadlock" in document["explored"][0]["claim"]


def test_the_checks_of_each_schedule_are_chosen(tmp_path: Path) -> None:
    script = tmp_path / "race.py"
    script.write_text(RACE)
    for check, code in (("all", 1), ("races", 1), ("none", 0)):
        ran = CliRunner().invoke(app, ["check", "--schedules", "1", "--no-compare", "--check", check, str(script)])
        assert ran.exit_code == code, ran.output
    refused = CliRunner().invoke(app, ["check", "--systematic", "--check", "none", str(script)])
    assert refused.exit_code != 0 and "races" in f"{refused.output}{refused.exception}"


RACE = """
import cutlass
import cutlass.cute as cute
import numpy as np

@cute.kernel
def kernel(y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    y[0] = t

@cute.jit
def host(y: cute.Tensor):
    kernel(y).launch(grid=(1, 1, 1), block=(64, 1, 1))

host(np.zeros(1, np.int32))
"""
