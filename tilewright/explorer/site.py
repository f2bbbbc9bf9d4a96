"""The page's files, for a server of files: the page, this package, and Pyodide."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path

from tilewright.errors import ArgumentError
from tilewright.explorer.answer import answer
from tilewright.explorer.tabs import described, tab_of

PAGE = Path(__file__).parent / "page"
PACKAGE = Path(__file__).parents[1]
PYODIDE = "314.0.7"
INSTALL = f"npm install pyodide@{PYODIDE}"
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
PLACES = (Path("node_modules/pyodide"), Path("build/explorer/node_modules/pyodide"))
BUTTON = '<button type="button" role="tab" id="{name}" value="{name}">{title}</button>'
SOURCES = (".py", ".pyi", ".toml")


def write(folder: Path, runtime: Path | None) -> None:
    """Write the page into ``folder``, with the files of Pyodide from ``runtime``, if it is known.

    What each tab shows first comes with the page, in ``first/``: it is seen while Python loads.
    """
    shutil.copytree(PAGE, folder, dirs_exist_ok=True)
    tabs = described()
    (folder / "tabs.json").write_text(json.dumps(tabs), encoding="utf-8")
    (folder / "first").mkdir(exist_ok=True)
    for tab in tabs:
        if tab["live"]:
            shown = json.dumps(answer(tab_of(tab["name"]), {}))
            (folder / "first" / f"{tab['name']}.json").write_text(shown, encoding="utf-8")
    buttons = "".join(BUTTON.format(**tab) for tab in tabs)
    page = (PAGE / "index.html").read_text(encoding="utf-8").replace("<!-- tabs -->", buttons)
    (folder / "index.html").write_text(page, encoding="utf-8")
    (folder / "tilewright.zip").write_bytes(bundle())
    if runtime is not None:
        (folder / "pyodide").mkdir(exist_ok=True)
        for name in RUNTIME:
            shutil.copyfile(runtime / name, folder / "pyodide" / name)


def find_runtime(given: Path | None, places: Iterable[Path] = PLACES) -> Path:
    """The folder of Pyodide's npm package: the one that is given, or where npm installs it.

    Raises ArgumentError, which says how to get it, where it is in none of them.
    """
    for folder in places if given is None else [given]:
        if all((folder / name).is_file() for name in RUNTIME):
            return folder
    where = (
        f"{given} is not the folder of Pyodide's npm package"
        if given
        else "the explorer runs on Pyodide, not found here"
    )
    raise ArgumentError(f"{where}: `{INSTALL}` puts it into node_modules/pyodide; --runtime names another folder")


def bundle() -> bytes:
    """This package as a zip file: what Python imports, without tests of anything and without the page."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(PACKAGE.rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                name = path.relative_to(PACKAGE.parent).as_posix()
                archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return written.getvalue()
