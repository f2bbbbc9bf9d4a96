"""A kernel of the study in the documents, by its own command: every mutant is noticed, or known to be equivalent."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from tilewright.cli.app import app

BENCH = Path(__file__).resolve().parents[2] / "bench"


def test_attention(tmp_path: Path) -> None:
    out = tmp_path / "study.json"
    options = ["--known", str(BENCH / "mutation_known.json"), "--json", str(out)]
    found = CliRunner().invoke(app, ["mutate", *options, str(BENCH / "mutation.py"), "attention"])
    assert found.exit_code == 0, found.output
    data = json.loads(out.read_text())
    assert data["score"] == 1.0 and data["noticed"] >= 14 and data["equivalent"] <= 1
