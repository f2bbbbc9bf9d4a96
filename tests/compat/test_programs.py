"""Programs in the style of the CuTe DSL's documentation run as they are: ``tilewright run --cpu``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.cli import main

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_runs_without_a_gpu(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    code = main(["run", "--cpu", str(program)])
    shown = capsys.readouterr()
    assert code == 0, shown.out + shown.err
    assert shown.out.rstrip().endswith("PASS")
    assert "no GPU was used" in shown.err and "ran in the simulator" in shown.err


@pytest.mark.gpu
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_runs_on_a_gpu(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    if "hopper" in program.stem or "grouped" in program.stem:
        if torch.cuda.get_device_capability()[0] != 9:
            pytest.skip("needs Hopper")
    code = main(["run", str(program)])
    shown = capsys.readouterr()
    assert code == 0, shown.out + shown.err
    assert shown.out.rstrip().endswith("PASS") and "simulator" not in shown.err
