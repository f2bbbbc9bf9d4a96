"""New syntax nodes, each on the line of the node that it stands for."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, TypeVar

TOOL = "_tw"
"""The name under which rewritten code finds its run time; other names that it makes begin so, too."""
N = TypeVar("N", bound=ast.AST)
Substitute = str | tuple[str, ...] | list[ast.stmt] | ast.expr


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


def spread(node: N, at: ast.AST) -> N:
    """Give ``node`` and its descendants that have no source position the position of ``at``."""
    for child in ast.walk(node):
        if isinstance(child, (ast.expr, ast.stmt, ast.arg)) and not hasattr(child, "lineno"):
            place(child, at)
    return node


def name(text: str, at: ast.AST) -> ast.Name:
    return place(ast.Name(text, ast.Load()), at)


class Variable(ast.Name):
    """A variable that the run time is given as it is, whether or not it has a value."""


def names(texts: Iterable[str]) -> ast.expr:
    """The tuple of some variables, to be spread."""
    return ast.Tuple([Variable(text, ast.Load()) for text in texts], ast.Load())


def texts(lines: Iterable[str]) -> ast.Constant:
    """The tuple of some texts."""
    together: Any = tuple(lines)
    return ast.Constant(together)


def tool(method: str, at: ast.AST, *args: ast.expr) -> ast.Call:
    """The call of a function of the run time."""
    return spread(ast.Call(ast.Attribute(ast.Name(TOOL, ast.Load()), method, ast.Load()), list(args), []), at)


def thunk(body: ast.expr) -> ast.expr:
    """``lambda: body``."""
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.copy_location(ast.Lambda(empty, body), body)


def statements(at: ast.AST, template: str, **parts: Substitute) -> list[ast.stmt]:
    """The statements of a ``template``, all on the line of ``at``, with ``parts`` in place of the names that stand
    for them: an expression, another name, a tuple of names (to read or to assign), or statements where the name is a
    statement by itself."""
    tree = ast.parse(template)
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.stmt)):
            place(node, at)
    filled: ast.Module = _Fill(parts).visit(tree)
    return [spread(statement, at) for statement in filled.body]


class _Fill(ast.NodeTransformer):
    def __init__(self, parts: dict[str, Substitute]) -> None:
        self.parts = parts

    def visit_Expr(self, node: ast.Expr) -> Any:
        part = self.parts.get(node.value.id) if isinstance(node.value, ast.Name) else None
        return part if isinstance(part, list) else self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        part = self.parts.get(node.id, node)
        if isinstance(part, str):
            return ast.copy_location(ast.Name(part, node.ctx), node)
        if isinstance(part, tuple):
            return ast.copy_location(ast.Tuple([Variable(text, node.ctx) for text in part], node.ctx), node)
        return part
