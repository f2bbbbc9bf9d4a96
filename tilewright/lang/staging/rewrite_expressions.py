"""The expressions of a function, rewritten: what may be decided only when the kernel runs becomes a call.

``a and b``, ``not a``, ``a if p else b``, ``in``, chained comparisons, ``min``, ``max``, ``any``, ``all``, ``bool`` and
``assert`` ask :mod:`runtime`; second operands become lambdas, so that they are evaluated only where Python would.
What a lambda assigns with ``:=`` would stay in it: it takes such variables as parameters and gives them back beside its
value, ``(_tw_kept := _tw.and_(a, lambda y: ((y := b), y), ...), (y := _tw_kept[1]), _tw_kept[0])[2]``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from tilewright.lang.staging.nodes import TOOL, Maker, called_name
from tilewright.lang.staging.scopes import Uses

BUILTINS = frozenset(("min", "max", "any", "all", "bool"))


class Expressions(Maker, ast.NodeTransformer):
    """Rewrites expressions. The user's variables, of the function (``locals``) and around it, hide builtins."""

    def __init__(self, outer: set[str]) -> None:
        super().__init__()
        self.outer = outer
        self.locals: set[str] = set()
        self.shared: set[str] = set()
        self.tracked: dict[str, None] = {}

    @property
    def known(self) -> set[str]:
        return self.locals | self.outer

    def track(self, names: Iterable[str]) -> None:
        """These variables are read where Python would not: they must hold something from the start."""
        self.tracked.update(dict.fromkeys(name for name in names if name in self.known))

    def variables(self, *nodes: ast.AST) -> tuple[list[str], list[str]]:
        """The variables that a region assigns, and those whose objects it may change."""
        uses = Uses(nodes)
        ours = tuple(n for n in (*uses.bound, *uses.read) if n == TOOL or n.startswith(f"{TOOL}_"))
        assigned = [n for n in uses.bound if n in self.locals and n not in ours]
        reachable = self.known | self.shared
        touched = [n for n in uses.read if n in reachable and n not in ours]
        self.track([*assigned, *touched])
        return assigned, touched

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        word = "and_" if isinstance(node.op, ast.And) else "or_"
        if not self.walruses(node.values[1:]):
            return self.lazy(word, node, node.values[0], *node.values[1:])
        *before, whole = node.values
        for value in reversed(before):
            whole = self.lazy(word, node, value, whole)
        return whole

    def lazy(self, word: str, at: ast.expr, first: ast.expr, *rest: ast.expr) -> ast.expr:
        """The call of ``word``, where ``rest`` runs only on demand. What it assigns comes out; what it may change
        through a call is named, so that the run time can see whether it did."""
        kept = self.walruses(rest)
        names = [ast.arg(name) for name in kept]
        taken = ast.arguments(posonlyargs=[], args=names, kwonlyargs=[], kw_defaults=[], defaults=[])
        thunks: list[ast.expr] = []
        for part in rest:
            result = ast.Tuple([part, *self.loads(kept, at)], ast.Load()) if kept else part
            thunks.append(ast.copy_location(ast.Lambda(taken, result), part))
        call = self.tool(word, at, first, *thunks)
        if any(isinstance(node, ast.Call) for part in rest for node in ast.walk(part)):
            assigned, touched = self.variables(*rest)
            objects = ast.Tuple([self.texts(touched), ast.Tuple(self.loads(touched, at), ast.Load())], ast.Load())
            call.keywords.append(ast.keyword("reach", self.thunk(ast.copy_location(objects, at))))
        if not kept:
            return self.spread(call, at)
        values = ast.Tuple([self.texts(kept), ast.Tuple(self.loads(kept, at), ast.Load())], ast.Load())
        call.keywords.append(ast.keyword("kept", values))
        found = self.fresh("kept")
        parts: list[ast.expr] = [ast.NamedExpr(self.name(found, at, True), call)]
        for i, name in enumerate(kept, 1):
            item = ast.Subscript(self.name(found, at), ast.Constant(i), ast.Load())
            parts.append(ast.NamedExpr(self.name(name, at, True), item))
        parts.append(ast.Subscript(self.name(found, at), ast.Constant(0), ast.Load()))
        whole = ast.Subscript(ast.Tuple(parts, ast.Load()), ast.Constant(len(parts) - 1), ast.Load())
        return self.spread(whole, at)

    def walruses(self, nodes: Iterable[ast.expr]) -> list[str]:
        """The user's variables that some expressions assign."""
        names = [name for name in Uses(nodes).bound if not name.startswith(f"{TOOL}_")]
        self.track(names)
        return names

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return self.tool("not_", node, node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        return self.lazy("if_", node, node.test, node.body, node.orelse)

    def visit_Compare(self, node: ast.Compare) -> Any:
        """One comparison as it is (``in`` as a call); a chain as their conjunction, each operand evaluated once."""
        self.generic_visit(node)
        if len(node.ops) == 1:
            return self.comparison(node, node.left, node.ops[0], node.comparators[0])
        return self.chain(node, node.left, list(zip(node.ops, node.comparators, strict=True)))

    def chain(self, at: ast.expr, left: ast.expr, rest: list[tuple[ast.cmpop, ast.expr]]) -> ast.expr:
        (op, right), *rest = rest
        if not rest:
            return self.comparison(at, left, op, right)
        following = right
        if not isinstance(right, (ast.Constant, ast.Name)):
            temporary = self.fresh("value")
            right = ast.copy_location(ast.NamedExpr(self.name(temporary, right, True), right), right)
            following = self.name(temporary, right)
        return self.lazy("and_", at, self.comparison(at, left, op, right), self.chain(at, following, rest))

    def comparison(self, at: ast.AST, left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
        if isinstance(op, (ast.In, ast.NotIn)):
            return self.tool("contains" if isinstance(op, ast.In) else "excludes", at, right, left)
        return ast.copy_location(ast.Compare(left, [op], [right]), at)

    def visit_Call(self, node: ast.Call) -> Any:
        if called_name(node) == "printf" and node.args:
            self.printed(node)
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in BUILTINS - self.known:
            node.func = self.tool("builtin", node.func, node.func)
        return node

    def printed(self, node: ast.Call) -> None:
        """Look at what goes into a text that ``printf`` gets ready-made: ``printf(f"i = {i}")``."""
        text = node.args[0]
        if isinstance(text, ast.JoinedStr):
            fields = [part for part in text.values if isinstance(part, ast.FormattedValue)]
            template = "".join(map(_field, text.values))
            instead = ast.Call(node.func, [ast.Constant(template), *(f.value for f in fields), *node.args[1:]], [])
            how = ast.Constant(ast.unparse(instead))
            for part in fields:
                part.value = self.tool("formatted", part.value, part.value, how)

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        self.generic_visit(node)
        node.ifs = [self.tool("filtered", test, test) for test in node.ifs]
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        self.generic_visit(node)
        message = [self.thunk(node.msg)] if node.msg else []
        return self.spread(ast.Expr(self.tool("assert_", node, node.test, *message)), node)


def _field(part: ast.expr) -> str:
    """A piece of an f-string as a piece of a format."""
    if not isinstance(part, ast.FormattedValue):
        return str(getattr(part, "value", "")).replace("{", "{{").replace("}", "}}")
    spec = "".join(map(_field, part.format_spec.values)) if isinstance(part.format_spec, ast.JoinedStr) else ""
    return f"{{:{spec}}}" if spec else "{}"
