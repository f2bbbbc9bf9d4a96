"""docs/pipelines.md is true: its program runs and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.page_programs import run_program
from tilewright import pipeline, utils
from tilewright.cute import arch
from tilewright.errors import SimulationError

PAGE = (Path(__file__).parents[2] / "docs" / "pipelines.md").read_text()
PROGRAM = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))


def run(program: str, folder: Path) -> list[str]:
    printed, _ = run_program(program, folder)
    return printed.splitlines()


def test_the_program_prints_what_the_page_says(tmp_path: Path) -> None:
    expected = re.findall(r"^print\(.*\)\s+# (.*)$", PROGRAM, re.MULTILINE)
    assert run(PROGRAM, tmp_path) == expected and expected


def test_page_example_without_the_commit_deadlocks(tmp_path: Path) -> None:
    report = re.search(r"^      warp 1 .*\n.*$", PAGE, re.MULTILINE)
    assert report and PROGRAM.count("empty.commit() ") == 1
    with pytest.raises(SimulationError) as caught:
        run(PROGRAM.replace("empty.commit() ", "pass"), tmp_path)
    assert " ".join(report.group().split()) in " ".join(str(caught.value).replace(f"{tmp_path}/", "").split())


def test_the_names_of_the_page_exist() -> None:
    for name in ("PipelineAsync", "PipelineCpAsync", "CooperativeGroup", "NamedBarrier", "make_pipeline_state"):
        assert f"`{name}" in PAGE and hasattr(pipeline, name)
    assert hasattr(utils, "StaticPersistentTileScheduler") and "mbarrier_arrive_and_expect_tx" in dir(arch)
