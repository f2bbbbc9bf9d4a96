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

from stub_functions import MADE, imports, made_functions

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tilewright"
HEAD = "# Made by `python tools/stubs.py` from {source}; do not edit.\n"
METHODS = {"lang/numbers/operator_types.py"}  # where aliases of methods are written out: mypy needs their types early


def stubs() -> dict[Path, str]:
    """Every stub with its text."""
    return {(PACKAGE / name).with_suffix(".pyi"): stub(PACKAGE / name) for name in sorted({*MADE, *METHODS})}


def stub(source: Path) -> str:
    """The stub of a module."""
    name, text = source.relative_to(PACKAGE).as_posix(), source.read_text(encoding="utf-8")
    tree = ast.parse(text)
    if name in MADE:
        return _head(source, tree) + made_functions(MADE[name], tree, ROOT)
    own = [definition for node in tree.body if (definition := _definition(node, text.splitlines()))]
    used = {node.id for text in own for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    lines = [*imports(tree, used), *(["from typing import Any"] if "Any" in used else [])]
    return "\n".join([_head(source, tree), *dict.fromkeys(lines), *(f"\n{text}" for text in own)]) + "\n"


def _head(source: Path, tree: ast.Module) -> str:
    return HEAD.format(source=source.relative_to(ROOT).as_posix()) + f'"""{ast.get_docstring(tree, clean=False)}"""\n'


def _definition(node: ast.stmt, text: list[str]) -> str:
    """What a stub says of a function, class, constant or alias that the module defines itself; empty for others."""
    match node:
        case ast.FunctionDef():
            return _function(node, text)
        case ast.ClassDef():
            return _class(node, text)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
            return f"{name}: {type(value).__name__}"
        case ast.Assign(targets=[ast.Name(id=name)]) if name != "__all__" and not isinstance(node.value, ast.Tuple):
            return _lines(node, text)
    return ""


def _lines(node: ast.stmt, text: list[str], end: int | None = None) -> str:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return "\n".join(text[first - 1 : end or node.end_lineno])


def _function(node: ast.FunctionDef, text: list[str]) -> str:
    """The function with its docstring in the place of its body."""
    if ast.unparse(node.body[0]) == "...":
        return _lines(node, text)
    indent = " " * node.body[0].col_offset
    if ast.get_docstring(node):
        return _lines(node, text, node.body[0].end_lineno) + f"\n{indent}..."
    return _lines(node, text, node.body[0].lineno - 1) + f"\n{indent}..."


def _class(node: ast.ClassDef, text: list[str]) -> str:
    """The class; after overloads no implementation; ``__sub__ = __add__`` as a method with the same overloads."""
    methods: dict[str, list[str]] = {}
    members = [_lines(node, text, node.body[0].lineno - 1)]
    for member in node.body:
        if isinstance(member, ast.FunctionDef):
            known = methods.setdefault(member.name, [])
            if member.decorator_list or not known:
                known.append(_function(member, text))
                members.append(known[-1])
        elif isinstance(member, ast.Assign) and isinstance(member.value, ast.Name) and member.value.id in methods:
            for name in map(ast.unparse, member.targets):
                known = methods[member.value.id]
                members += [method.replace(f"def {member.value.id}(", f"def {name}(", 1) for method in known]
        else:
            members.append(_lines(member, text))
    return "\n".join(members)


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
