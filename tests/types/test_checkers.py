"""mypy and pyright (basedpyright, whose wheels bring what it needs) read the programs of the documents, the examples,
what they must accept and what they must refuse; each checker runs once. ``make lint`` runs this file, ``make test`` the
others."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.types import operators
from tests.types.programs import ROOT, documents, examples
from tilewright.compat import stubs

HERE = Path(__file__).parent
# What mypy cannot follow: annotations with numbers in them, and what a class decorator adds.
BEYOND_MYPY = re.compile(r"cute\.struct\.(Align|MemRange)\[|\.size_in_bytes\(\)")


class Found(NamedTuple):
    file: str
    line: int
    code: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text} [{self.code}]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("types")
    own = {name: (HERE / name).read_text(encoding="utf-8") for name in ("mistakes.py", "uses.py")}
    for name, text in {**documents(), **examples(), **own, "operators.py": operators.program()}.items():
        (made / name).write_text(text, encoding="utf-8")
    stubs.write(made / "typings")  # of `cutlass`
    return made


def mypy(folder: Path) -> list[Found]:
    pytest.importorskip("mypy")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        str(HERE / "mypy.ini"),
        "--cache-dir",
        str(ROOT / ".mypy_cache" / "types"),
        "--show-absolute-path",
        "--no-error-summary",
        *map(str, sorted(folder.glob("*.py"))),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "MYPYPATH": f"{ROOT}{os.pathsep}{folder / 'typings'}"},
    )
    lines = re.findall(r"^(.*?):(\d+): error: (.*?)  \[([\w-]+)\]$", done.stdout, re.MULTILINE)
    assert done.returncode in (0, 1) and not done.stderr, done.stdout + done.stderr
    assert len(lines) == done.stdout.count(" error: "), done.stdout
    return [Found(Path(file).name, int(line), code, text) for file, line, text, code in lines]


def pyright(folder: Path) -> list[Found]:
    pytest.importorskip("basedpyright")
    settings = {
        "typeCheckingMode": "standard",
        "extraPaths": [str(ROOT)],
        "pythonVersion": f"{sys.version_info.major}.{sys.version_info.minor}",
        "reportPrivateImportUsage": False,  # PyTorch does not say what it exports
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    errors = [d for d in json.loads(done.stdout)["generalDiagnostics"] if d["severity"] == "error"]
    return [
        Found(Path(d["file"]).name, d["range"]["start"]["line"] + 1, d.get("rule", ""), d["message"]) for d in errors
    ]


CHECKERS = (mypy, pyright)


@pytest.mark.parametrize("checker", CHECKERS, ids=lambda c: c.__name__)
def test_programs_are_accepted_and_mistakes_are_not(checker, folder: Path) -> None:
    found = checker(folder)
    lines = {name: (folder / name).read_text(encoding="utf-8").splitlines() for name in {f.file for f in found}}
    wrong = [f for f in found if f.file != "mistakes.py"]
    if checker is mypy:
        wrong = [f for f in wrong if not BEYOND_MYPY.search(lines[f.file][f.line - 1])]
    assert not wrong, "\n".join(map(str, wrong))
    noticed = {(f.line, f.code) for f in found if f.file == "mistakes.py"}
    marked = expected(CHECKERS.index(checker))
    assert noticed == marked, f"only found: {sorted(noticed - marked)}; only marked: {sorted(marked - noticed)}"


def expected(column: int) -> set[tuple[int, str]]:
    """The marks of mistakes.py: (line, code)."""
    marks = []
    for number, line in enumerate((HERE / "mistakes.py").read_text(encoding="utf-8").splitlines(), 1):
        if found := re.search(r"  # E: (\S+) \| (\S+)$", line):
            marks.append((number, found[column + 1]))
    assert len(marks) > 10
    return set(marks)
