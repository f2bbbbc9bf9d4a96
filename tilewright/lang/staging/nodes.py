"""New syntax nodes: small makers, each of which puts what it makes on the line of the node that it stands for."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, TypeVar

TOOL = "_tw"  # the name under which rewritten code finds its run time
N = TypeVar("N", bound=ast.AST)


def called_name(node: ast.AST | None) -> str:
    """``f`` for the calls ``f(...)`` and ``a.b.f(...)``."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def place(node: N, at: Any) -> N:
    """Give a new node the line on which ``at`` begins (a node that spans lines would report its last one)."""
    made: Any = node
    made.lineno = made.end_lineno = at.lineno
    made.col_offset = made.end_col_offset = at.col_offset
    return node


class Maker:
    """Makes nodes; fresh names are counted for each function."""

    def __init__(self) -> None:
        self.counter = 0

    def fresh(self, what: str) -> str:
        self.counter += 1
        return f"{TOOL}_{what}{self.counter}"

    def name(self, name: str, at: ast.AST, store: bool = False) -> ast.Name:
        return place(ast.Name(name, ast.Store() if store else ast.Load()), at)

    def call(self, owner: str, method: str, at: ast.AST, *args: ast.expr) -> ast.Call:
        function = place(ast.Attribute(self.name(owner, at), method, ast.Load()), at)
        return self.spread(place(ast.Call(function, list(args), []), at), at)

    def tool(self, method: str, at: ast.AST, *args: ast.expr) -> ast.Call:
        return self.call(TOOL, method, at, *args)

    @staticmethod
    def spread(node: N, at: ast.AST) -> N:
        """Give ``node`` and what lies under it without a place the place of ``at``."""
        for child in ast.walk(node):
            if isinstance(child, (ast.expr, ast.stmt, ast.arg)) and not hasattr(child, "lineno"):
                place(child, at)
        return node

    def assign(self, target: str, value: ast.expr, at: ast.AST) -> ast.stmt:
        return self.spread(ast.Assign([self.name(target, at, True)], value), at)

    def unpack(self, targets: list[str], value: ast.expr, at: ast.AST) -> ast.stmt:
        """``a, b = value``; a bare call when there is nothing to assign."""
        if not targets:
            return self.spread(ast.Expr(value), at)
        into = ast.Tuple([self.name(t, at, True) for t in targets], ast.Store())
        return self.spread(ast.Assign([into], value), at)

    def texts(self, names: Iterable[str]) -> ast.expr:
        return ast.Tuple([ast.Constant(name) for name in names], ast.Load())

    def loads(self, names: Iterable[str], at: ast.AST) -> list[ast.expr]:
        return [self.name(name, at) for name in names]

    def thunk(self, body: ast.expr) -> ast.expr:
        empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return ast.copy_location(ast.Lambda(empty, body), body)
