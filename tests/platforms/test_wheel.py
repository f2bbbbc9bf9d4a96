"""The wheel, installed into an empty environment with what it declares to need and nothing else, in an empty folder."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import tilewright

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


def test_the_source_archive_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """docs/releasing.md: what is uploaded as source is complete."""
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run([*build, "-t", "sdist"], cwd=ROOT, capture_output=True, check=True)
    archive = next(tmp_path.glob("*.tar.gz"))
    with tarfile.open(archive) as source:
        source.extractall(tmp_path, filter="data")
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    subprocess.run([*build, "-t", "wheel"], cwd=unpacked, capture_output=True, check=True)
    (again,) = tmp_path.glob("*.whl")
    assert again.name == wheel.name == f"tilewright-{tilewright.__version__}-py3-none-any.whl"
    first, second = (zipfile.ZipFile(path) for path in (wheel, again))
    assert {i.filename: i.CRC for i in first.infolist()} == {i.filename: i.CRC for i in second.infolist()}


def test_the_installed_package_knows_its_names_and_version(python: Path, tmp_path: Path) -> None:
    """The stubs and the data that names are read from are installed, too."""
    assert run(python, tmp_path, "-m", "tilewright", "--version") == f"tilewright {tilewright.__version__}\n"
    program = (
        "import importlib.metadata, tilewright, tilewright.cute.arch as arch, tilewright.experimental.primitives as p\n"
        "assert importlib.metadata.version('tilewright') == tilewright.__version__\n"
        "print(arch.thread_idx.__name__, p.CTAGroup.CTA_1)"
    )
    assert run(python, tmp_path, "-c", program) == "thread_idx CTAGroup.CTA_1\n"


def test_no_page_or_message_installs_from_an_index() -> None:
    """Tilewright is on no package index yet."""
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "tilewright").rglob("*.py")]
    assert [
        str(file) for file in files if re.search(r"pip install '?tilewright", file.read_text(encoding="utf-8"))
    ] == []


def test_demo_and_first_kernel_from_an_empty_folder(python: Path, tmp_path: Path) -> None:
    """Neither PyTorch nor Pillow nor a package of CUDA is there."""
    out = run(python, tmp_path, "-m", "tilewright", "demo", "--machine", "cpu")
    assert "data race in shared memory" in out and "cute.arch.sync_threads()" in out
    for name in ("swizzled_tile", "hopper_timeline"):
        assert f"{name}.svg" in out and f"{name}.png" not in out
        assert (tmp_path / f"{name}.svg").stat().st_size > 1000
    program = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert program is not None and "def saxpy" in program[1]
    (tmp_path / "first.py").write_text(program[1], encoding="utf-8")
    assert run(python, tmp_path, "first.py") == "[1. 3. 5. 7.]\n"
    where = run(python, tmp_path, "-c", "import tilewright; print(tilewright.__file__)")
    assert Path(where.strip()).is_relative_to(python.parent.parent), "the installed package, not this tree"
