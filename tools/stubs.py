"""Write the stubs of modules whose functions are made by other functions, a ``.pyi`` beside each.

    python tools/stubs.py            write what is not current
    python tools/stubs.py --check    say what is not current, and fail

Stubs of public modules (``cute/__init__.pyi``) are written by hand: ``tilewright/_names.py`` reads them. Nothing is
imported here; the sources are read.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from stub_functions import MADE, made_functions

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tilewright"
HEAD = "# Made by `python tools/stubs.py` from {source}; do not edit.\n"


def stubs() -> dict[Path, str]:
    """Every stub with its text."""
    return {(PACKAGE / name).with_suffix(".pyi"): stub(PACKAGE / name) for name in MADE}


def stub(source: Path) -> str:
    """The stub of a module."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    head = HEAD.format(source=source.relative_to(ROOT).as_posix()) + f'"""{ast.get_docstring(tree, clean=False)}"""\n'
    return head + made_functions(MADE[source.relative_to(PACKAGE).as_posix()], tree, ROOT)


def main() -> int:
    made = stubs()
    mark = HEAD.partition("{")[0]
    ours = {path for path in PACKAGE.rglob("*.pyi") if path.read_text(encoding="utf-8").startswith(mark)}
    stale = [p for p, text in made.items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    left = sorted(ours - set(made))
    if "--check" in sys.argv[1:]:
        for path in [*stale, *left]:
            print(f"{path.relative_to(ROOT)} is not current: run `python tools/stubs.py` and commit what it writes")
        return bool(stale or left)
    for path in stale:
        path.write_text(made[path], encoding="utf-8", newline="\n")
        print(f"wrote {path.relative_to(ROOT)}")
    for path in left:
        path.unlink()
        print(f"removed {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
