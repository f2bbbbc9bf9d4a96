"""The README and docs/ are true: programs run and print what they say, links have targets, targets exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.page_programs import run_program
from tilewright.cli import main

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *(f"docs/{page.name}" for page in ROOT.glob("docs/*.md"))]
PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
MADE = ("api/", "command_line.md", "explorer/", "tutorials/", "measurements/")  # made and checked by `make site`
ON_A_GPU = [program for program in PROGRAMS if '"cuda"' in program]
ON_THE_CPU = [program for program in PROGRAMS if '"cuda"' not in program]


def run(programs: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """Run the programs one after the other from a file; what they printed, and what the README says they print."""
    monkeypatch.chdir(folder)
    program = "\n".join(programs)
    printed, _ = run_program(program, folder)
    return printed.splitlines(), re.findall(r"^print\(.*\)\s+# (.*)$", program, re.MULTILINE)


def test_the_programs_print_what_the_readme_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed, expected = run(ON_THE_CPU, tmp_path, monkeypatch)
    assert printed == expected and len(expected) >= 1


def test_the_program_of_the_cuda_page_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "cuda.md").read_text()
    printed, expected = run(re.findall(r"```python\n(.*?)```", page, re.DOTALL), tmp_path, monkeypatch)
    assert printed == expected and len(expected) == 3


@pytest.mark.gpu
def test_the_gpu_program_computes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    check = "assert (y.cpu() == 2 * torch.arange(1000.0) + 1).all(); print('checked')"
    printed, _ = run([PROGRAMS[0], *ON_A_GPU, check], tmp_path, monkeypatch)
    assert printed[-1] == "checked"


def test_the_commands_print_what_the_readme_says(capsys: pytest.CaptureFixture[str]) -> None:
    sessions = re.findall(r"^    \$ tilewright (.*)\n((?:    (?!\$).*\n)+)", README, re.MULTILINE)
    assert sessions
    for command, output in sessions:
        assert main(shlex.split(command)) == 0
        printed = capsys.readouterr().out.splitlines()
        assert [line.rstrip() for line in printed] == [line[4:] for line in output.splitlines()]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text()
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    targets = [target for target in targets if not target.startswith(MADE)]
    assert [target for target in targets if not ((ROOT / document).parent / target).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_make_targets_that_are_named_exist(document: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:^    |`)make ([a-z]+)", (ROOT / document).read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
