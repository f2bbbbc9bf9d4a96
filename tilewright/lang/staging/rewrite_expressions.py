"""The expressions of a function, rewritten: what may be decided only when the kernel runs becomes a call.

``a and b``, ``not a``, ``a if p else b``, ``in``, ``is``, chained comparisons, ``min``, ``max``, ``any``, ``all``,
``bool`` and ``assert`` ask :mod:`runtime`; second operands become lambdas, so that they are evaluated only where Python
would. What a lambda assigns with ``:=`` would stay in it, so it is refused there.
"""

from __future__ import annotations

import ast
from typing import Any

from tilewright.errors import StagingError
from tilewright.lang.staging.nodes import TOOL, called_name, name, names, spread, texts, thunk, tool
from tilewright.lang.staging.scopes import NameUses

_IN_COMPREHENSION = (
    "has no truth value while staging, when a comprehension chooses its items: write a `for` loop with an `if`, or "
    "choose values, `[x if p else 0 for ...]`"
)
_PLAIN = (ast.Name, ast.Constant, ast.Lambda, ast.expr_context, ast.arguments)
"""What runs no code of the user's; all else may: calls, methods of operators, the items of a generator."""
BUILTINS = frozenset(
    "min max any all bool str repr ascii format map globals int ord complex bytes bytearray print".split()
)
OF_TEXTS = frozenset(("format", "format_map", "join"))
"""Methods of texts that put run-time numbers into them."""
CHANGES_FROZEN = ("object.__setattr__", "object.__delattr__")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


_READS_ALL = {"locals", "vars", "eval", "exec", "dir"}
"""Builtins that read every variable of the function."""


class Texts(ast.NodeTransformer):
    """Rewrites f-strings."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        """An f-string, as its parts: ``printf`` prints the run-time values in it."""
        self.generic_visit(node)
        if not any(isinstance(part, ast.FormattedValue) for part in node.values):
            return node
        parts: list[ast.expr] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                spec = part.format_spec or ast.Constant("")
                part = ast.Tuple([part.value, ast.Constant(part.conversion), spec], ast.Load())
            parts.append(part)
        return tool("text", node, *parts)


class Expressions(Texts):
    """Rewrites expressions. The user's variables, of the function (``locals``) and around it, hide builtins; those that
    may be without a value are added to ``unsure``."""

    def __init__(self, filename: str, outer: set[str], shared: set[str], unsure: set[str]) -> None:
        self.filename = filename
        self.counter = 0
        self.static = 0  # inside so many calls of const_expr
        self.outer, self.shared = outer, shared
        self.locals: set[str] = set()
        self.read: set[str] = set()
        self.unsure = unsure
        self.tracked: dict[str, None] = {}

    @property
    def known(self) -> set[str]:
        return self.locals | self.outer

    def error(self, node: ast.AST, message: str) -> StagingError:
        return StagingError(f"{self.filename}:{getattr(node, 'lineno', 0)}: {message}")

    def fresh(self, what: str) -> str:
        """A name of our own."""
        self.counter += 1
        return f"{TOOL}_{what}{self.counter}"

    def variables(self, *nodes: ast.AST) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The variables that a region assigns, and those whose objects it may change. They are read where Python would
        not read them, so they must hold something from the start. A variable that the function never reads (``_``, say)
        may hold anything after a region, so that it need not be of one type."""
        uses = NameUses(nodes)
        bound, read = ([n for n in names if not is_ours(n)] for names in (uses.bound, uses.read))
        assigned = tuple(n for n in bound if n in self.locals and (n in self.read or self.read & _READS_ALL))
        self.unsure.update(assigned)
        touched = tuple(n for n in read if n in self.known | self.shared)
        self.tracked.update(dict.fromkeys(n for n in (*assigned, *touched) if n in self.known))
        return assigned, touched

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        return self.lazy("and_" if isinstance(node.op, ast.And) else "or_", node, node.values[0], *node.values[1:])

    def lazy(self, word: str, at: ast.expr, first: ast.expr, *rest: ast.expr) -> ast.expr:
        """The call of ``word``, where ``rest`` runs only on demand."""
        self.refuse_walrus(at, *rest)
        return self.reaching(tool(word, at, first, *map(thunk, rest)), first, *rest)

    def reaching(self, call: ast.Call, *parts: ast.expr) -> ast.expr:
        """``call`` with the objects that ``parts`` name, if these could change one."""
        _, touched = self.variables(*parts)
        if touched and any(not isinstance(node, _PLAIN) for part in parts for node in ast.walk(part)):
            objects = ast.copy_location(ast.Tuple([texts(touched), names(touched)], ast.Load()), call)
            call.keywords.append(ast.keyword("reach", thunk(objects)))
        return spread(call, call)

    def refuse_walrus(self, at: ast.AST, *nodes: ast.AST) -> None:
        """Refuse ``:=`` in expressions that may be evaluated in a region of their own."""
        if not all(map(is_ours, NameUses(nodes).bound)):
            raise self.error(at, "`:=` where it may be evaluated at run time only: assign the variable in a statement")

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return tool("not_", node, node.operand) if isinstance(node.op, ast.Not) else node

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
        if isinstance(right, (ast.Constant, ast.Name)):
            return self.both(at, self.comparison(at, left, op, right), right, rest)
        # The operand between two comparisons is evaluated once, after the first one: they become the parameters of a
        # lambda. (`:=` would do, but may not stand in what a comprehension runs over.)
        first, second = self.fresh("value"), self.fresh("value")
        compared = self.comparison(at, name(first, left), op, name(second, right))
        body = self.both(at, compared, name(second, right), rest)
        parameters = ast.arguments([], [ast.arg(first), ast.arg(second)], None, [], [], None, [])
        return spread(ast.Call(ast.Lambda(parameters, body), [left, right], []), at)

    def both(self, at: ast.expr, first: ast.expr, left: ast.expr, rest: list[tuple[ast.cmpop, ast.expr]]) -> ast.expr:
        """``first`` and the chain that goes on behind it."""
        return self.lazy("and_", at, first, self.chain(at, left, rest))

    def comparison(self, at: ast.AST, left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
        if isinstance(op, (ast.In, ast.NotIn)):
            return tool("contains" if isinstance(op, ast.In) else "excludes", at, right, left)
        if isinstance(op, (ast.Is, ast.IsNot)) and not any(map(_is_none, (left, right))):
            if self.static and any(isinstance(x, ast.Constant) and isinstance(x.value, bool) for x in (left, right)):
                literal = tool("is_literal", at, left, right)
                return literal if isinstance(op, ast.Is) else spread(ast.UnaryOp(ast.Not(), literal), at)
            return tool("is_" if isinstance(op, ast.Is) else "is_not", at, left, right)
        return ast.copy_location(ast.Compare(left, [op], [right]), at)

    def visit_Call(self, node: ast.Call) -> Any:
        if ast.unparse(node.func) in CHANGES_FROZEN:
            raise self.error(
                node,
                f"`{ast.unparse(node.func)}` changes an object that its class may call frozen, and that is taken "
                "for a value here: make a new object (`dataclasses.replace`)",
            )
        self.static += called_name(node) == "const_expr"
        self.generic_visit(node)
        self.static -= called_name(node) == "const_expr"
        if isinstance(node.func, ast.Name) and node.func.id in BUILTINS - self.known:
            function = tool("builtin", node.func, node.func)
            # A generator runs item by item, possibly inside a region: the objects that it may change are followed.
            lazily = node.func.id in ("any", "all")
            node.func = self.reaching(function, *node.args) if lazily else function
        elif isinstance(node.func, ast.Attribute) and node.func.attr in OF_TEXTS:
            node.func = tool("builtin", node.func, node.func)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """``%``, which puts numbers into a text where its left side is one."""
        self.generic_visit(node)
        return tool("mod", node, node.left, node.right) if isinstance(node.op, ast.Mod) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Mod) or not isinstance(node.target, ast.Name):
            return node
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        return spread(ast.Assign([node.target], tool("imod", node, read, node.value)), node)

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        self.generic_visit(node)
        node.ifs = [tool("known", test, test, ast.Constant(_IN_COMPREHENSION)) for test in node.ifs]
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        self.generic_visit(node)
        message = [thunk(node.msg)] if node.msg else []
        return spread(ast.Expr(tool("assert_", node, node.test, *message)), node)


def is_ours(name: str) -> bool:
    """Whether a name is one that the rewriter has made."""
    return name == TOOL or name.startswith(f"{TOOL}_")
