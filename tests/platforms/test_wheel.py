"""The wheel, installed into an empty environment with what it declares to need and nothing else, in an empty folder."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytest.importorskip("hatchling", reason="the build backend of the wheel")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


def needed(requirements: list[str], found: set[str]) -> set[str]:
    """The distributions that satisfy ``requirements``, and those that they need in turn, as installed here."""
    for requirement in map(Requirement, requirements):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name not in found:
            found.add(name)
            needed(importlib.metadata.requires(name) or [], found)
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel, and links to the distributions that the wheel asks for."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=False, symlinks=os.name != "nt")
    python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    where = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(where, capture_output=True, text=True, encoding="utf-8", check=True).stdout.strip())
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    metadata = next(site.glob("tilewright-*.dist-info/METADATA")).read_text(encoding="utf-8")
    requirements = re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE)
    for name in needed(requirements, set()):
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or [] if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution.locate_file(top))))
    return python


def run(python: Path, folder: Path, *arguments: str) -> str:
    known = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TILEWRIGHT"))}
    known["TILEWRIGHT_CACHE_DIR"] = str(folder / "cache")
    done = subprocess.run([python, *arguments], cwd=folder, env=known, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_file_of_the_package_is_in_the_wheel(wheel: Path) -> None:
    command = ["git", "ls-files", "tilewright"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    if listed.returncode:
        pytest.skip("not a git repository")
    kept = {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    names = set(zipfile.ZipFile(wheel).namelist())
    assert not kept - names
    assert not {name for name in names if not name.startswith(("tilewright/", "tilewright-"))}, "nothing else goes in"


def test_demo_and_first_kernel_from_an_empty_folder(python: Path, tmp_path: Path) -> None:
    """Neither PyTorch nor Pillow nor a package of CUDA is there."""
    out = run(python, tmp_path, "-m", "tilewright", "demo", "--machine", "cpu")
    assert "drawn: swizzled_tile.svg" in out and "swizzled_tile.png" not in out
    assert (tmp_path / "swizzled_tile.svg").stat().st_size > 1000
    program = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert program is not None and "def saxpy" in program[1]
    (tmp_path / "first.py").write_text(program[1], encoding="utf-8")
    assert run(python, tmp_path, "first.py") == "[1. 3. 5. 7.]\n"
    where = run(python, tmp_path, "-c", "import tilewright; print(tilewright.__file__)")
    assert Path(where.strip()).is_relative_to(python.parent.parent), "the installed package, not this tree"
