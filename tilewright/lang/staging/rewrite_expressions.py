"""The expressions of a function, rewritten: what may be decided only when the kernel runs becomes a call.

``a and b``, ``not a``, ``a if p else b``, ``in``, chained comparisons, ``min``, ``max``, ``any``, ``all``, ``bool`` and
``assert`` ask :mod:`runtime`; second operands become lambdas, so that they are evaluated only where Python would.
"""

from __future__ import annotations

import ast
from typing import Any

from tilewright.lang.staging.nodes import Maker

BUILTINS = frozenset(("min", "max", "any", "all", "bool"))


class Expressions(Maker, ast.NodeTransformer):
    """Rewrites expressions. The user's variables, of the function (``locals``) and around it, hide builtins."""

    def __init__(self, outer: set[str]) -> None:
        super().__init__()
        self.outer = outer
        self.locals: set[str] = set()

    @property
    def known(self) -> set[str]:
        return self.locals | self.outer

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        word = "and_" if isinstance(node.op, ast.And) else "or_"
        return self.tool(word, node, node.values[0], *(self.thunk(v) for v in node.values[1:]))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return self.tool("not_", node, node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        return self.tool("if_", node, node.test, self.thunk(node.body), self.thunk(node.orelse))

    def visit_Compare(self, node: ast.Compare) -> Any:
        """One comparison as it is (``in`` as a call); a chain as their conjunction, each operand evaluated once."""
        self.generic_visit(node)
        if len(node.ops) == 1:
            return self.comparison(node, node.left, node.ops[0], node.comparators[0])
        return self.chain(node, node.left, list(zip(node.ops, node.comparators, strict=True)))

    def chain(self, at: ast.AST, left: ast.expr, rest: list[tuple[ast.cmpop, ast.expr]]) -> ast.expr:
        (op, right), *rest = rest
        if not rest:
            return self.comparison(at, left, op, right)
        following = right
        if not isinstance(right, (ast.Constant, ast.Name)):
            temporary = self.fresh("value")
            right = ast.copy_location(ast.NamedExpr(self.name(temporary, right, True), right), right)
            following = self.name(temporary, right)
        return self.tool("and_", at, self.comparison(at, left, op, right), self.thunk(self.chain(at, following, rest)))

    def comparison(self, at: ast.AST, left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
        if isinstance(op, (ast.In, ast.NotIn)):
            return self.tool("contains" if isinstance(op, ast.In) else "excludes", at, right, left)
        return ast.copy_location(ast.Compare(left, [op], [right]), at)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in BUILTINS - self.known:
            node.func = self.tool("builtin", node.func, node.func)
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        self.generic_visit(node)
        message = [self.thunk(node.msg)] if node.msg else []
        return self.spread(ast.Expr(self.tool("assert_", node, node.test, *message)), node)
