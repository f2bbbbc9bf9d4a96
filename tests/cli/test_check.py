"""``tilewright check`` runs a script under all checks and tells by its exit code whether something was found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tilewright.cli.app import app
from tilewright.errors import ArgumentError

SCRIPT = """
import sys
import numpy as np
import tilewright as cutlass
from tilewright import cute

@cute.kernel
def reverse(x: cute.Tensor, y: cute.Tensor, sync: cutlass.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 64), cute.make_layout(64))
    s[t] = x[t]
    if cutlass.const_expr(sync):
        cute.arch.sync_threads()
    y[t] = s[63 - t]

@cute.jit
def run(x: cute.Tensor, y: cute.Tensor, sync: cutlass.Constexpr):
    reverse(x, y, sync).launch(grid=(1, 1, 1), block=(64, 1, 1))

if __name__ == "__main__":
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    run(x, y, "sync" in sys.argv[1:])
"""


def test_a_script_is_checked(tmp_path: Path) -> None:
    script = tmp_path / "reverse.py"
    script.write_text(SCRIPT)
    found = CliRunner().invoke(app, ["check", str(script)])
    assert found.exit_code == 1, found.output
    for text in ("data-race: data race in shared memory", "s[t] = x[t]", "y[t] = s[63 - t]", "sync_threads"):
        assert text in found.output
    clean = CliRunner().invoke(app, ["check", "--seed", "3", str(script), "sync"])
    assert clean.exit_code == 0 and "nothing found" in clean.output, clean.output


def test_findings_as_json_and_sarif(tmp_path: Path) -> None:
    script, listed, log = tmp_path / "reverse.py", tmp_path / "found.json", tmp_path / "found.sarif"
    script.write_text(SCRIPT)
    options = ["--check", "races", "--json", str(listed), "--sarif", str(log)]
    found = CliRunner().invoke(app, ["check", *options, str(script)])
    assert found.exit_code == 1, found.output
    (race,) = json.loads(listed.read_text())["findings"]
    assert race["rule"] == "data-race" and race["kernel"] == "reverse" and race["level"] == "error"
    assert {party["location"]["text"] for party in race["parties"]} == {"s[t] = x[t]", "y[t] = s[63 - t]"}
    assert all(party["who"]["block"] == [0, 0, 0] and "lane" in party["who"] for party in race["parties"])
    assert race["memory"]["tensor"] == "s" and race["memory"]["space"] == "shared" and race["count"] > 1
    (result,) = json.loads(log.read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].endswith("reverse.py")
    clean = CliRunner().invoke(app, ["check", *options, str(script), "sync"])
    assert clean.exit_code == 0 and json.loads(listed.read_text())["findings"] == []


def test_a_script_goes_on_after_a_finding_and_its_own_error_is_told(tmp_path: Path) -> None:
    script = tmp_path / "twice.py"
    script.write_text(SCRIPT + "    run(x, y, False)\n    raise ValueError('of its own')\n")
    found = CliRunner().invoke(app, ["check", "--check", "races", str(script)])
    assert found.exit_code == 1 and "192 times at these lines" in found.output, found.output
    assert "ValueError: of its own" in found.output


@pytest.mark.parametrize(("source", "told"), [("print(1 / 0)", "ZeroDivisionError"), ("print(", "SyntaxError")])
@pytest.mark.parametrize("command", ["check", "mutate"])
def test_script_errors_are_shown_without_internal_frames(tmp_path: Path, command: str, source: str, told: str) -> None:
    script = tmp_path / "wrong.py"
    script.write_text(source)
    found = CliRunner().invoke(app, [command, str(script)])
    assert found.exit_code == 1 and told in found.output, found.output
    assert "cli" not in found.output and "runpy" not in found.output, found.output
    assert "nothing found" not in found.output  # the script did not come to its end


@pytest.mark.parametrize("command", [["check"], ["check", "--schedules", "1"], ["mutate"]])
def test_a_script_that_is_missing(tmp_path: Path, command: list[str]) -> None:
    found = CliRunner().invoke(app, [*command, str(tmp_path / "none.py")])
    assert isinstance(found.exception, ArgumentError) and "is not a file" in str(found.exception)
    assert "nothing found" not in found.output


def test_a_launch_that_cannot_go_on_is_a_finding(tmp_path: Path) -> None:
    script, listed = tmp_path / "outside.py", tmp_path / "found.json"
    script.write_text(SCRIPT.replace("y[t] = s[63 - t]", "y[t + 1] = s[63 - t]"))
    found = CliRunner().invoke(app, ["check", "--json", str(listed), str(script), "sync"])
    assert found.exit_code == 1 and "out of bounds" in found.output, found.output
    rules = [finding["rule"] for finding in json.loads(listed.read_text())["findings"]]
    assert "simulation-error" in rules or "bounds" in rules, rules


@pytest.mark.parametrize(("source", "hinted"), [("1 / 0", False), ('raise RuntimeError("cuda")', True)])
def test_run_speaks_of_a_missing_gpu_where_the_script_wants_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, hinted: bool
) -> None:
    monkeypatch.setattr("tilewright.cli.run.has_gpu", lambda: False)
    script = tmp_path / "wrong.py"
    script.write_text(source)
    found = CliRunner().invoke(app, ["run", str(script)])
    assert found.exit_code == 1 and ("no GPU here" in found.output) is hinted, found.output


SLOW = """
import numpy as np
from tilewright import cute

@cute.kernel
def columns(y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 1024), cute.make_layout((32, 32), stride=(32, 1)))
    for k in range(32):
        s[k, t] = 1.0
    cute.arch.sync_threads()
    y[t] = s[t, 0]

@cute.jit
def run(y: cute.Tensor):
    columns(y).launch(grid=(1, 1, 1), block=(32, 1, 1))

if __name__ == "__main__":
    run(np.zeros(32, np.float32))
"""


def test_a_note_is_a_finding_for_the_exit_code(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    found = CliRunner().invoke(app, ["check", str(script)])
    assert found.exit_code == 1 and "bank-conflict" in found.output and "1 finding" in found.output
    clean = CliRunner().invoke(app, ["check", "--check", "all,-performance", str(script)])
    assert clean.exit_code == 0 and "nothing found" in clean.output


@pytest.mark.parametrize("options", [[], ["--schedules", "2"]])
def test_a_script_without_kernels_is_an_error(tmp_path: Path, options: list[str]) -> None:
    script = tmp_path / "empty.py"
    script.write_text("print('no kernel here')")
    found = CliRunner().invoke(app, ["check", *options, str(script)])
    assert found.exit_code == 1 and isinstance(found.exception, ArgumentError)
    assert "launched no kernel" in str(found.exception) and "nothing found" not in found.output
