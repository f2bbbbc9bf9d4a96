"""Draw the timelines of docs/hopper.md into docs/pictures, by running the programs of the page.

python -m tools.hopper_pictures
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import tempfile
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "hopper.md"
FOLDER = ROOT / "docs" / "pictures"
SVG = "{http://www.w3.org/2000/svg}"


def run(folder: Path) -> list[str]:
    """Run the page's programs in ``folder``, where they leave their pictures; gives what they print."""
    source = folder / "program.py"  # a file, because staging reads the source of kernels
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    source.write_text("\n".join(programs), encoding="utf-8")
    before = Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            program = compile(source.read_text(encoding="utf-8"), str(source), "exec")
            exec(program, {"__name__": "program", "__file__": str(source)})
    finally:
        os.chdir(before)
    return printed.getvalue().splitlines()


def content(picture: Path) -> list[tuple[str, list[str]]]:
    """The rows of a timeline, each with what its bars are, in order of time; without times and lines."""
    if not picture.exists():
        return []
    root = ElementTree.parse(picture).getroot()
    names = [text.text or "" for text in root.iter(f"{SVG}text") if text.get("class") == "caption-right"]
    bars: dict[int, list[str]] = {}
    for group in root.iter(f"{SVG}g"):
        remark = group.find(f"{SVG}title")
        if group.get("class") == "c" and remark is not None:
            bars.setdefault(int(group.get("data-row", "0")), []).append((remark.text or "").split(": ")[0])
    return [(name, bars.get(row, [])) for row, name in enumerate(names)]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder))
        for picture in sorted(Path(folder).glob("*.svg")):
            shutil.copy(picture, FOLDER / picture.name)
            print(f"drew {FOLDER / picture.name}")


if __name__ == "__main__":
    main()
