"""Which variables a piece of a function assigns and which it reads."""

from __future__ import annotations

import ast
from collections.abc import Iterable


class NameUses(ast.NodeVisitor):
    """Collects the names bound (in order) and read in some nodes, without the insides of nested functions' own
    scopes."""

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        self.bound: dict[str, None] = {}
        self.read: dict[str, None] = {}
        for node in nodes:
            self.visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        (self.read if isinstance(node.ctx, ast.Load) else self.bound).setdefault(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.read.setdefault(node.target.id)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.bound.setdefault(node.name)
        self._nested([*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d)], node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.bound.setdefault(node.name)
        self._nested([*node.decorator_list, *node.bases], node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._nested([*node.args.defaults, *(d for d in node.args.kw_defaults if d)], node)

    def _nested(self, outside: Iterable[ast.AST], inner: ast.AST) -> None:
        for node in outside:
            self.visit(node)
        for node in ast.walk(inner):  # what a closure may read, and so may change the contents of
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.read.setdefault(node.id)

    def _comprehension(self, node: ast.AST) -> None:
        inner = NameUses([])
        inner.generic_visit(node)
        own = {n.id for g in getattr(node, "generators", []) for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        self.read.update((name, None) for name in inner.read if name not in own)
        self.bound.update((name, None) for name in inner.bound if name not in own)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.bound.setdefault(alias.asname or alias.name.split(".")[0])

    visit_ImportFrom = visit_Import


def assigned_first(statements: list[ast.stmt]) -> set[str]:
    """Names that a body surely assigns before it reads them: temporaries of one iteration."""
    fresh: set[str] = set()
    seen: set[str] = set()
    for statement in statements:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            # An assignment evaluates its value before it binds; in other statements the order is ignored.
            value = NameUses([statement.value] if statement.value else [])
            seen |= value.read.keys() | value.bound.keys()
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            stored = NameUses(targets if statement.value else [])
            seen |= stored.read.keys()
            fresh |= stored.bound.keys() - seen
        uses = NameUses([statement])
        seen |= uses.read.keys() | uses.bound.keys()
    return fresh


def parameters(node: ast.FunctionDef) -> set[str]:
    spec = node.args
    every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg]
    return {argument.arg for argument in every if argument is not None}
