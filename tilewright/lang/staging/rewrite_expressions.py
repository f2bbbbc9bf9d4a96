"""The expressions of a function, rewritten: what may be decided only when the kernel runs becomes a call.

``a and b``, ``not a``, ``a if p else b``, ``in``, chained comparisons, ``min``, ``max``, ``any``, ``all``, ``bool`` and
``assert`` ask :mod:`runtime`; second operands become lambdas, so that they are evaluated only where Python would.
What a lambda assigns with ``:=`` would stay in it: such expressions are left to Python, and their predicates must be
known while staging.
"""

from __future__ import annotations

import ast
from typing import Any

from tilewright.lang.staging.nodes import TOOL, called_name, name, names, spread, texts, thunk, tool
from tilewright.lang.staging.scopes import Uses

BUILTINS = frozenset(("min", "max", "any", "all", "bool"))


class Expressions(ast.NodeTransformer):
    """Rewrites expressions. The user's variables, of the function (``locals``) and around it, hide builtins."""

    def __init__(self, outer: set[str]) -> None:
        self.counter = 0
        self.outer = outer
        self.locals: set[str] = set()
        self.shared: set[str] = set()
        self.tracked: dict[str, None] = {}

    @property
    def known(self) -> set[str]:
        return self.locals | self.outer

    def fresh(self, what: str) -> str:
        """A name of our own."""
        self.counter += 1
        return f"{TOOL}_{what}{self.counter}"

    def variables(self, *nodes: ast.AST) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The variables that a region assigns, and those whose objects it may change. They are read where Python would
        not read them, so they must hold something from the start."""
        uses = Uses(nodes)
        bound, read = ([n for n in found if not is_ours(n)] for found in (uses.bound, uses.read))
        assigned = tuple(n for n in bound if n in self.locals)
        touched = tuple(n for n in read if n in self.known | self.shared)
        self.tracked.update(dict.fromkeys(n for n in (*assigned, *touched) if n in self.known))
        return assigned, touched

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        if assigns(*node.values[1:]):
            node.values[:-1] = [tool("decided", value, value) for value in node.values[:-1]]
            return node
        return self.lazy("and_" if isinstance(node.op, ast.And) else "or_", node, node.values[0], *node.values[1:])

    def lazy(self, word: str, at: ast.expr, first: ast.expr, *rest: ast.expr) -> ast.expr:
        """The call of ``word``, where ``rest`` runs only on demand. What it may change through a call is named, so that
        the run time can see whether it did."""
        call = tool(word, at, first, *map(thunk, rest))
        if any(isinstance(node, ast.Call) for part in rest for node in ast.walk(part)):
            _, touched = self.variables(*rest)
            objects = ast.Tuple([texts(touched), names(touched)], ast.Load())
            call.keywords.append(ast.keyword("reach", thunk(ast.copy_location(objects, at))))
        return spread(call, at)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return tool("not_", node, node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        if assigns(node.body, node.orelse):
            node.test = tool("decided", node.test, node.test)
            return node
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
            following = name(temporary, right)
            right = spread(ast.NamedExpr(ast.Name(temporary, ast.Store()), right), right)
        first = self.comparison(at, left, op, right)
        if assigns(*(operand for _, operand in rest)):
            both = [tool("decided", at, first), self.chain(at, following, rest)]
            return ast.copy_location(ast.BoolOp(ast.And(), both), at)
        return self.lazy("and_", at, first, self.chain(at, following, rest))

    def comparison(self, at: ast.AST, left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
        if isinstance(op, (ast.In, ast.NotIn)):
            return tool("contains" if isinstance(op, ast.In) else "excludes", at, right, left)
        return ast.copy_location(ast.Compare(left, [op], [right]), at)

    def visit_Call(self, node: ast.Call) -> Any:
        if called_name(node) == "printf" and node.args:
            self.printed(node)
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in BUILTINS - self.known:
            node.func = tool("builtin", node.func, node.func)
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
                part.value = tool("formatted", part.value, part.value, how)

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        self.generic_visit(node)
        node.ifs = [tool("filtered", test, test) for test in node.ifs]
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        self.generic_visit(node)
        message = [thunk(node.msg)] if node.msg else []
        return spread(ast.Expr(tool("assert_", node, node.test, *message)), node)


def is_ours(name: str) -> bool:
    """Whether a name is one that the rewriter has made."""
    return name == TOOL or name.startswith(f"{TOOL}_")


def assigns(*nodes: ast.expr) -> bool:
    """Whether expressions assign a variable of the user's, by ``:=``."""
    return not all(map(is_ours, Uses(nodes).bound))


def _field(part: ast.expr) -> str:
    """A piece of an f-string as a piece of a format."""
    if not isinstance(part, ast.FormattedValue):
        return str(getattr(part, "value", "")).replace("{", "{{").replace("}", "}}")
    spec = "".join(map(_field, part.format_spec.values)) if isinstance(part.format_spec, ast.JoinedStr) else ""
    return f"{{:{spec}}}" if spec else "{}"
