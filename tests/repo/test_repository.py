"""Rules of the whole repository: quick imports, readable files, reasons beside marks, a help line per target."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import tilewright
from tilewright.cli import main

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


def test_every_function_is_of_readable_length() -> None:
    long = []
    for path in sorted((ROOT / "tilewright").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            # Neither a line a parameter nor the examples of a docstring are counted.
            statements = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if statements and (node.end_lineno or 0) - statements[0].lineno >= 60:
                long.append(f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}")
    assert long == []


def test_few_statements_are_exempt_from_the_formatter() -> None:
    """``fmt: skip`` is for tables whose columns are read from top to bottom."""
    folders = [ROOT / name for name in ("tilewright", "tests", "bench", "examples", "tools")]
    texts = [path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py")]
    assert sum(len(re.findall(r"# *fmt: *(?:skip|off)", text)) for text in texts) <= 40


MARK = re.compile(r"# *(type: *ignore|noqa|(?:ruff|flake8): *noqa|pyright: *ignore)(?: *\[[^]]*\]|: *[A-Z0-9, ]+)?(.*)")
SKIP = re.compile(r"pytest(?:\.mark)?\.(?:skip|skipif|xfail)")


def marks_without_a_reason(source: str, types_are_checked: bool) -> Iterator[tuple[int, str]]:
    """The marks (line, text) that have no reason behind them in their line, and those that nothing reads."""
    if MARK.search(source):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT and (mark := MARK.search(token.string)):
                if not re.search(r"\w", mark[2]) or (mark[1].startswith("type") and not types_are_checked):
                    yield token.start[0], token.string
    if SKIP.search(source):
        for node in ast.walk(ast.parse(source)):
            for mark in getattr(node, "decorator_list", ()):
                if not isinstance(mark, ast.Call) and SKIP.fullmatch(ast.unparse(mark)):
                    yield mark.lineno, ast.unparse(mark)
            if isinstance(node, ast.Call) and SKIP.fullmatch(name := ast.unparse(node.func)):
                own = [] if "mark" in name else node.args[:1]
                reasons = [*own, *(word.value for word in node.keywords if word.arg == "reason")]
                if not reasons or (isinstance(reasons[0], ast.Constant) and not reasons[0].value):
                    yield node.lineno, ast.unparse(node)


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("x = 1  # noqa: E731", True),
        ("x = 1  # noqa: E731 - a lambda is tested", False),
        ("x = 1  # noqa", True),
        ("# ruff: noqa: E501", True),
        ("x = y  # type: ignore[misc]", True),
        ("x = y  # type: ignore", True),
        ("x = y  # type: ignore[misc]  # a wrong argument", False),
        ("x = '# noqa: E731'", False),
        ("pytest.skip()", True),
        ("pytest.skip('')", True),
        ("pytest.skip('no compiler')", False),
        ("@pytest.mark.skipif(True)\ndef f(): pass", True),
        ("@pytest.mark.skip\ndef f(): pass", True),
        ("@pytest.mark.xfail(reason='not yet')\ndef f(): pass", False),
    ],
)
def test_marks_without_a_reason_are_found(line: str, refused: bool) -> None:
    assert bool(list(marks_without_a_reason(line + "\n", True))) == refused


def test_every_mark_has_its_reason() -> None:
    """Nothing checks types outside the package, so that a ``type: ignore`` has no effect there."""
    found = []
    for folder in ("tilewright", "tests", "tools", "bench", "examples"):
        for path in sorted((ROOT / folder).rglob("*.py*")):
            if path.suffix in (".py", ".pyi"):
                marks = marks_without_a_reason(path.read_text(encoding="utf-8"), folder == "tilewright")
                found += [f"{path.relative_to(ROOT)}:{number}: {mark}" for number, mark in marks]
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


def test_a_public_service_runs_the_same() -> None:
    assert "run: .ci/run\n" in (ROOT / ".github/workflows/ci.yml").read_text()


def test_the_version_stands_in_one_place(capsys: pytest.CaptureFixture[str]) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["dynamic"] == ["version"] and "version" not in settings["project"]
    assert settings["tool"]["hatch"]["version"]["path"] == "tilewright/__init__.py"
    assert main(["--version"]) == 0 and capsys.readouterr().out == f"tilewright {tilewright.__version__}\n"


def test_metadata() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "BSD-3-Clause"
    assert "BSD 3-Clause License" in (ROOT / "LICENSE").read_text()
    assert f"## {tilewright.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_numpy_is_not_imported_before_its_threads_are_limited() -> None:
    """tests/conftest.py limits them, in workers; pytest loads the root's conftest.py before it."""
    tree = ast.parse((ROOT / "conftest.py").read_text(encoding="utf-8"))
    modules = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    modules += [alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
    assert set(modules) <= {"__future__", "typing", "pytest"}
