"""Modules import each other in one direction, those inside a function included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

METHODS = {
    "tilewright.layout.layout": {"compose", "modes", "parsing", "recast", "slicing"},
    "tilewright.layout.composed": {"compose", "recast", "slicing"},
}
"""The only imports against the direction: methods of layouts that are short for functions of the algebra, such as
``layout.compose(other)``; the modules below ``tilewright.layout`` with these functions."""


def modules() -> dict[str, Path]:
    """The modules of the package by name."""
    found = {}
    for path in (ROOT / "tilewright").rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements under ``node`` that run: not those for type checkers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            for statement in child.orelse:
                yield from imports(ast.Module([statement], []))
        elif not isinstance(child, ast.expr):  # most nodes, and none has a statement
            yield from imports(child)


def imported(source: str, names: set[str]) -> set[str]:
    """The modules among ``names`` that ``source`` imports (by absolute names, as all modules here do)."""
    found = set()
    for statement in imports(ast.parse(source)):
        if isinstance(statement, ast.ImportFrom):
            candidates = [(f"{statement.module}.{alias.name}", statement.module) for alias in statement.names]
        else:
            candidates = [(alias.name, None) for alias in statement.names]
        found |= {next((name for name in pair if name in names), "") for pair in candidates}
    return found - {""}


def test_no_module_imports_itself_by_way_of_others() -> None:
    """A cycle is broken by moving what both sides need into a module below them."""
    paths = modules()
    graph = {name: imported(path.read_text(encoding="utf-8"), set(paths)) - {name} for name, path in paths.items()}
    for name, functions in METHODS.items():
        above = {f"tilewright.layout.{function}" for function in functions}
        assert above <= graph[name], f"{name} does not import {sorted(above - graph[name])}: take it out of METHODS"
        graph[name] -= above
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("these import each other: " + " <- ".join(error.args[1]))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import a.b", {"a.b"}),
        ("from a import b", {"a.b"}),
        ("from a import function", {"a"}),
        ("def f():\n    from a.b import function", {"a.b"}),
        ("if TYPE_CHECKING:\n    import a.b\nelse:\n    import a", {"a"}),
        ("try:\n    import a.b as ab\nexcept ImportError:\n    import other", {"a.b"}),
    ],
)
def test_imports_are_read(source: str, expected: set[str]) -> None:
    assert imported(source, {"a", "a.b"}) == expected
