"""``tilewright mutate`` tells by its table, its JSON and its exit code which changes nothing noticed."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from tests.cli.test_check import SCRIPT
from tilewright.cli.app import app

TWICE = SCRIPT.replace("        cute.arch.sync_threads()\n", "        cute.arch.sync_threads()\n" * 2)


def test_every_mutant_is_noticed(tmp_path: Path) -> None:
    script, out = tmp_path / "reverse.py", tmp_path / "study.json"
    script.write_text(SCRIPT)
    found = CliRunner().invoke(app, ["mutate", str(script), "--json", str(out), "--verbose", "sync"])
    assert found.exit_code == 0, found.output
    assert "100.0 %" in found.output and "data-race" in found.output and "bar.sync.all" in found.output
    assert json.loads(out.read_text())["noticed"] == 1


def test_missed_mutants_make_it_fail_unless_they_are_known(tmp_path: Path) -> None:
    script, known = tmp_path / "reverse.py", tmp_path / "known.json"
    script.write_text(TWICE)
    found = CliRunner().invoke(app, ["mutate", str(script), "sync"])
    assert found.exit_code == 1 and "0.0 %" in found.output and "missed" in found.output, found.output
    known.write_text('[{"file": "reverse.py", "text": "sync_threads", "reason": "the other barrier does the same"}]')
    found = CliRunner().invoke(app, ["mutate", str(script), "--known", str(known), "sync"])
    assert found.exit_code == 0 and "the other barrier does the same" in found.output, found.output


def test_a_script_without_synchronisation(tmp_path: Path) -> None:
    script = tmp_path / "nothing.py"
    script.write_text("import sys\nsys.exit(0)\n")
    found = CliRunner().invoke(app, ["mutate", str(script)])
    assert found.exit_code == 0 and "no kernel with a synchronisation operation" in found.output
