"""The repository keeps its promises: quick imports, honest metadata, a help line per target."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("torch", "cuda", "jax", "cupy", "PIL", "matplotlib", "rich", "typer")


@pytest.mark.parametrize("module", ["tilewright", "tilewright.layout"])
def test_import_pulls_in_no_heavy_package(module: str) -> None:
    code = f"import sys, {module}; print(*sorted(m for m in sys.modules if m in {HEAVY!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_every_source_file_is_of_readable_length() -> None:
    files = (ROOT / "tilewright").rglob("*.py")
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in files}
    assert {name: n for name, n in lengths.items() if n > 500} == {}


def test_what_checkers_are_told_to_ignore_has_its_reason() -> None:
    """Beside it or in the line above; but for values that come out of what has no types (no-any-return)."""
    bare = re.compile(r"# (type: ignore(?!\[no-any-return\])(\[[a-z, -]+\])?|noqa: ?[A-Z0-9, ]+?)$")
    found = []
    for path in sorted((ROOT / "tilewright").rglob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            told = bare.search(line) and not lines[number - 1].lstrip().startswith("#")
            if told and not (path.name == "operator_types.py" and "[misc]" in line):  # all for one reason
                found.append(f"{path.relative_to(ROOT)}:{number + 1}: {line.strip()}")
    assert found == []


def test_make_help_names_every_target() -> None:
    text = (ROOT / "Makefile").read_text()
    phony = text.split(".PHONY:")[1].splitlines()[0].split()
    shown = subprocess.run(["make", "-C", str(ROOT), "help"], capture_output=True, text=True, check=True).stdout
    for target in phony:
        assert f"make {target} " in shown


def test_continuous_integration_runs_lint_tests_and_site_of_the_makefile() -> None:
    lines = [line.partition(" & ")[0] for line in (ROOT / ".ci/run").read_text().splitlines()]
    assert {"make lint", "make test", "make site"} <= set(lines)


def test_metadata() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "BSD-3-Clause"
    assert "BSD 3-Clause License" in (ROOT / "LICENSE").read_text()
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()
