"""Every page of docs/: its programs run, and the files, names, options and variables that it names exist."""

from __future__ import annotations

import contextlib
import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.page_programs import run_program
from tilewright.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
BLOCK = re.compile(r"^ *```python\n(.*?)^ *```", re.DOTALL | re.MULTILINE)

# Pages whose programs another test runs; what is run here is the rest.
RUN_ELSEWHERE = {
    "docs/ahead_of_time.md": "tests/export/test_document.py",
    "README.md": "tests/repo/test_documents.py",
    "docs/analysis.md": "tests/analysis/test_docs.py",
    "docs/cuda.md": "tests/repo/test_documents.py",
    "docs/gallery.md": "tests/documentation/test_website.py",
    "docs/hopper.md": "tests/hopper/test_page.py",
    "docs/language.md": "tests/lang/test_document.py",
    "docs/layouts.md": "tests/layout/test_docs.py",
    "docs/pipelines.md": "tests/pipeline/test_document.py",
    "docs/tma.md": "tests/hopper/test_tma_document.py",
    "docs/wgmma.md": "tests/hopper/test_document.py",
}
NOT_RUN = {"docs/instructions.md": "parts of Tilewright's own source"}


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def has_programs(page: Path) -> bool:
    return BLOCK.search(page.read_text(encoding="utf-8")) is not None


HERE = [
    page
    for page in PAGES
    if has_programs(page) and name(page) not in {**RUN_ELSEWHERE, **NOT_RUN} and page.parent.name != "path"
]


@pytest.mark.parametrize("page", HERE, ids=name)
def test_the_programs_of_a_page_print_what_it_says(page: Path, tmp_path: Path) -> None:
    """The blocks of a page are one program. `print(...)  # text` prints the text."""
    program = "\n".join(BLOCK.findall(page.read_text(encoding="utf-8")))
    printed, _ = run_program(program, tmp_path, page.stem)
    expected = re.findall(r"^ *print\(.*\) +# (.*)$", program, re.MULTILINE)
    assert [line for line in expected if line not in printed.splitlines()] == []


def test_the_tests_that_run_other_pages_name_them() -> None:
    for page, test in RUN_ELSEWHERE.items():
        assert Path(page).name in (ROOT / test).read_text(encoding="utf-8") or "gallery" in page
        assert has_programs(ROOT / page)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_code_is_marked_as_run_or_not_run(page: Path) -> None:
    """Fenced as Python: a test runs it, and as nothing else. Indented, or without a language: it is not run."""
    fences = re.findall(r"^ *```(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert fences[0::2] == [fence for fence in fences[0::2] if fence in ("", "c", "python", "sh")]
    assert not any(fences[1::2])


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    for path in re.findall(r"`([\w./]+\.(?:py|json|toml|md))`", page.read_text(encoding="utf-8")):
        found = [ROOT / path, *(ROOT / "tilewright").rglob(path)] if "/" in path else None
        assert found is None or any(file.exists() for file in found), path


def test_results_that_the_pages_name_exist() -> None:
    """Numbers of speed name their file in bench/results."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("## How fast")[2].partition("\n## ")[0]
    for text, least in ((readme, 6), ((ROOT / "docs" / "speed.md").read_text(encoding="utf-8"), 20)):
        rows = [row for row in text.splitlines() if row.startswith("|") and re.search(r"\d", row)]
        assert len(rows) >= least and all(re.search(r"\.json` \||the same \||\(log\) \|", row) for row in rows)
    for page in PAGES:
        for result in re.findall(r"\b(\w+_(?:h100|h200|cpu)_[\d-]+\.json)", page.read_text(encoding="utf-8")):
            assert (ROOT / "bench/results" / result).exists(), (name(page), result)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_names_of_tilewright_that_a_page_names_exist(page: Path) -> None:
    for dotted in set(re.findall(r"`(tilewright(?:\.\w+)+)\b[^`]*`", page.read_text(encoding="utf-8"))):
        found: Any = importlib.import_module("tilewright")
        module = "tilewright"
        for part in dotted.split(".")[1:]:
            module += f".{part}"
            if not hasattr(found, part):
                with contextlib.suppress(ModuleNotFoundError):
                    importlib.import_module(module)
            assert hasattr(found, part), dotted
            found = getattr(found, part)


def test_environment_variables_of_the_pages_are_read_somewhere() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tilewright").rglob("*.py"))
    settings = (ROOT / "tilewright/sim/settings.py").read_text(encoding="utf-8")
    simulator = set(re.findall(r"^    (\w+): (?:int|str|bool|float)", settings, re.MULTILINE))
    for page in PAGES:
        for variable in set(re.findall(r"TILEWRIGHT_[A-Z_]+\b", page.read_text(encoding="utf-8"))):
            known = variable in source or variable.removeprefix("TILEWRIGHT_SIM_").lower() in simulator
            assert known, (name(page), variable)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_of_a_page_and_their_options_exist(page: Path) -> None:
    root: Any = typer.main.get_command(app)
    text = page.read_text(encoding="utf-8")
    for command, rest in re.findall(r"^(?:    (?:\$ )?|)tilewright ([a-z]+)\b(.*)$", text, re.MULTILINE):
        assert command in root.commands, command
        known = {option for parameter in root.commands[command].params for option in parameter.opts} | {"--help"}
        own = rest.split("#")[0].split(".py", 1)[0]  # what follows a script's name are its own arguments
        assert [option for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", own) if option not in known] == [], rest


def test_packages_of_the_simulator_need_no_import_of_their_own() -> None:
    """`from tilewright import sim` is enough for what the pages write as `sim.mutation.study`."""
    names = "sim.mutation.study, sim.exploration.explore, sim.checks.collecting, sim.tracing.trace, sim.debug.break_at"
    code = f"from tilewright import sim; print(len([{names}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "5", done.stderr
