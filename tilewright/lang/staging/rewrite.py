"""The rewriter: a function's syntax tree with its control flow turned into calls of :mod:`runtime`.

Statements stay in their frame and keep their lines. The templates below show what each becomes; ``variables`` are those
that a statement assigns, ``touched`` those whose ``objects`` it may change. The rewritten code runs as plain Python
where a predicate is known, and traces both arms where it is not. The functions that it calls are in :mod:`branch`,
:mod:`for_loop`, :mod:`while_loop` and :mod:`with_block`; expressions are in :mod:`rewrite_expressions`. Predicates
written ``const_expr(...)`` and loops over ``range_constexpr(...)`` are left alone.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from tilewright.lang.staging.nodes import called_name, spread, statements, texts, tool
from tilewright.lang.staging.rewrite_expressions import Expressions, Texts
from tilewright.lang.staging.scopes import NameUses, assigned_first, parameters

_DECORATORS = frozenset(("jit", "kernel"))
_ONE_RUN = "a kernel is one program without suspension"
_NO_EXCEPTIONS = (
    "the machine has no exceptions; test for the case with `if` before it arises (`if b != 0:`), and do what Python "
    "alone does in a function that is not marked"
)
_OUTER = (
    "a variable of an outer scope would be assigned once, while staging, not each time that the program runs; return "
    "the value, or write it into a tensor"
)
_REFUSED = {
    "Yield": ("yield", _ONE_RUN),
    "YieldFrom": ("yield from", _ONE_RUN),
    "Await": ("await", _ONE_RUN),
    "AsyncFor": ("async for", _ONE_RUN),
    "AsyncWith": ("async with", _ONE_RUN),
    "AsyncFunctionDef": ("async def", _ONE_RUN),
    "Try": ("try", _NO_EXCEPTIONS),
    "TryStar": ("except*", _NO_EXCEPTIONS),
    "Match": ("match", "Python looks for its case while staging; write `if n == 0:`, `elif n == 1:`, ..."),
    "Delete": ("del", "a program cannot remove elements and attributes while it runs"),
    "Global": ("global", _OUTER),
    "Nonlocal": ("nonlocal", _OUTER),
}
"""Statements by the names of their nodes: the word, and why it is refused."""

DEPTH = "level = _tw.depth()"
IF = """
branch = _tw.If(test, names, variables, touched, objects)
if branch.begin_then():
    body
    variables = branch.end_then(variables)
if branch.begin_else():
    orelse
    variables = branch.end_else(variables)
"""
FOR = """
loop = _tw.For(iterable, names, variables, temporaries, targets, touched, objects)
for item in loop.steps():
    variables = loop.enter(variables)
    target = item
    body
    variables = loop.leave(variables)
"""
WHILE = """
loop = _tw.While(names, temporaries, touched, objects)
while loop.more():
    variables = loop.enter(variables)
    if loop.test(test, variables):
        variables = loop.body(variables)
        body
        variables = loop.leave(variables)
"""
WITH = """
block = _tw.With(names, touched, lambda: objects)
statement
variables = block.leave(variables)
"""
REGION_ENDS = frozenset(re.findall(r"variables = \w+\.(\w+)\(variables\)", IF + FOR + WHILE + WITH))
"""The methods that take all variables of a region and give them back."""


def rewrite(node: ast.FunctionDef, filename: str, free: set[str], shared: set[str]) -> ast.FunctionDef:
    """``node`` (a fresh copy) rewritten; ``free`` are the free variables of the function, ``shared`` the global ones
    that hold something a region could change."""
    node.decorator_list = []
    node.returns = None
    unsure = set(free)
    _Function(filename, free, shared, unsure).function(node)
    return ast.fix_missing_locations(_Reads(unsure).visit(node))


class _Reads(ast.NodeTransformer):
    """Checks the variables ``unsure`` for a value wherever the user's code reads them."""

    def __init__(self, unsure: set[str]) -> None:
        self.unsure = unsure

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return tool("defined", node, node) if node.id in self.unsure and isinstance(node.ctx, ast.Load) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name) or node.target.id not in self.unsure:
            return node
        read = tool("defined", node, ast.Name(node.target.id, ast.Load()))
        return [ast.copy_location(ast.Expr(read), node), node]


class _Function(Expressions):
    """Rewrites one function body; nested functions get their own."""

    def __init__(self, filename: str, outer: set[str], shared: set[str], unsure: set[str]) -> None:
        super().__init__(filename, outer, shared, unsure)
        self.level = ""
        self.nesting = 0
        self.loops: list[str] = []

    # -- the function --------------------------------------------------------------------------------------------

    def function(self, node: ast.FunctionDef) -> None:
        parameter_names = parameters(node)
        uses = NameUses(node.body)
        self.locals, self.read = parameter_names | uses.bound.keys(), {*uses.read}
        self.level = self.fresh("level")
        # Defaults and annotations were evaluated by the original definition; ``_bind`` puts its defaults in.
        node.args.defaults = [ast.copy_location(ast.Constant(None), d) for d in node.args.defaults]
        node.args.kw_defaults = [d and ast.copy_location(ast.Constant(None), d) for d in node.args.kw_defaults]
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        body = self.visited(node.body)
        unset = tuple(name for name in self.tracked if name not in parameter_names and name in self.locals)
        self.unsure.update(unset)
        head = [*statements(node, DEPTH, level=self.level), *self.unset(unset, node)]
        # A docstring stays the first statement.
        at = 1 if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else 0
        node.body = body[:at] + head + body[at:]

    def unset(self, variables: tuple[str, ...], at: ast.AST) -> list[ast.stmt]:
        """Bind variables to an object that says why they have no value."""
        made = statements(at, "variables = _tw.undefined(labels)", variables=variables, labels=texts(variables))
        return made if variables else []

    def visited(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            made = self.visit(statement)
            out += made if isinstance(made, list) else [] if made is None else [made]
        return out

    def nested(self, body: list[ast.stmt]) -> list[ast.stmt]:
        self.nesting += 1
        try:
            return self.visited(body)
        finally:
            self.nesting -= 1

    # -- control flow --------------------------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> Any:
        # Decided while staging: Python runs one arm, and no state is to be kept.
        if called_name(node.test) == "const_expr":
            node.test = self.visit(node.test)
            node.body, node.orelse = self.nested(node.body), self.nested(node.orelse)
            return node
        assigned, touched = self.variables(*node.body, *node.orelse)
        return statements(
            node,
            IF,
            branch=self.fresh("if"),
            test=self.visit(node.test),
            names=texts(assigned),
            variables=assigned,
            touched=texts(touched),
            objects=touched,
            body=self.nested(node.body),
            orelse=self.nested(node.orelse),
        )

    def visit_For(self, node: ast.For) -> Any:
        loop = self.fresh("for")
        if called_name(node.iter) == "range_constexpr":
            return self.python_loop(node, loop, iter=self.visit(node.iter))
        assigned, touched = self.variables(node.target, *node.body)
        targets = tuple(NameUses([node.target]).bound)
        # A variable of the program may shadow the name, so it is looked up when the loop runs.
        if isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range":
            node.iter.func = tool("range_", node.iter, node.iter.func)
        made = statements(
            node,
            FOR,
            loop=loop,
            iterable=self.visit(node.iter),
            names=texts(assigned),
            variables=assigned,
            temporaries=texts(sorted(assigned_first(node.body) - set(targets))),
            targets=texts(targets),
            touched=texts(touched),
            objects=touched,
            item=self.fresh("item"),
            target=node.target,
            body=self.loop_body(node.body, loop),
        )
        made[-1].orelse = self.nested(node.orelse)  # type: ignore[attr-defined]  # the last one is the loop
        return made

    def visit_While(self, node: ast.While) -> Any:
        loop = self.fresh("while")
        if called_name(node.test) == "const_expr":
            return self.python_loop(node, loop, test=self.visit(node.test))
        self.refuse_walrus(node, node.test)
        assigned, touched = self.variables(node.test, *node.body)
        temporaries = tuple(sorted(assigned_first(node.body) - NameUses([node.test]).read.keys()))
        made = statements(
            node,
            WHILE,
            loop=loop,
            names=texts(assigned),
            variables=assigned,
            temporaries=texts(temporaries),
            touched=texts(touched),
            objects=touched,
            test=self.visit(node.test),
            body=self.loop_body(node.body, loop),
        )
        made[-1].orelse = self.nested(node.orelse)  # type: ignore[attr-defined]  # the last one is the loop
        return made

    def python_loop(self, node: ast.For | ast.While, loop: str, **head: ast.expr) -> Any:
        """A loop that Python runs while staging; ``break`` in it needs the number of regions around it."""
        for field, value in head.items():
            setattr(node, field, value)
        node.body, node.orelse = self.loop_body(node.body, loop), self.nested(node.orelse)
        return [*statements(node, DEPTH, level=loop), node]

    def loop_body(self, body: list[ast.stmt], loop: str) -> list[ast.stmt]:
        self.loops.append(loop)
        try:
            return self.nested(body)
        finally:
            self.loops.pop()

    def visit_Break(self, node: ast.Break | ast.Continue) -> Any:
        word = "break" if isinstance(node, ast.Break) else "continue"
        return [*statements(node, "_tw.leave(word, loop)", word=ast.Constant(word), loop=self.loops[-1]), node]

    visit_Continue = visit_Break

    def visit_Return(self, node: ast.Return | ast.Raise) -> Any:
        self.generic_visit(node)
        word = "return" if isinstance(node, ast.Return) else "raise"
        # Outside of `if`, `for`, `while` and `with` there is no region to leave.
        check = statements(node, "_tw.leave(word, level)", word=ast.Constant(word), level=self.level)
        return [*check, node] if self.nesting else node

    visit_Raise = visit_Return

    def visit_With(self, node: ast.With) -> Any:
        assigned, touched = self.variables(*node.body)
        block = self.fresh("with")
        node.items = [self.visit(item) for item in node.items]
        for item in node.items:
            noted = ast.Attribute(ast.Name(block, ast.Load()), "manager", ast.Load())
            item.context_expr = spread(ast.Call(noted, [item.context_expr], []), item.context_expr)
        node.body = [
            *statements(node, "block.enter(variables)", block=block, variables=assigned),
            *self.nested(node.body),
        ]
        return statements(
            node,
            WITH,
            block=block,
            names=texts(assigned),
            variables=assigned,
            touched=texts(touched),
            objects=touched,
            statement=[node],
        )

    # -- assignments ---------------------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        # Of `a = b = value` the last target names the value.
        target = node.targets[-1]
        if isinstance(target, ast.Name):
            node.value = tool("named", node.value, ast.Constant(target.id), node.value)
        elif isinstance(target, ast.Tuple) and not any(isinstance(t, ast.Starred) for t in target.elts):
            names = [t.id if isinstance(t, ast.Name) else "" for t in target.elts]
            node.value = tool("names", node.value, texts(names), node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return None
        plain = ast.copy_location(ast.Assign([node.target], node.value), node)
        return self.visit_Assign(plain)

    def visit_Delete(self, node: ast.Delete) -> Any:
        names = tuple(target.id for target in node.targets if isinstance(target, ast.Name))
        if len(names) < len(node.targets) or not self.locals.issuperset(names):
            return self._refused(node)
        self.unsure.update(names)
        return statements(node, "variables = _tw.deleted(labels)", variables=names, labels=texts(names))

    # -- nested scopes and what has no meaning here --------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        decorators = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
        names = {
            d.attr if isinstance(d, ast.Attribute) else d.id if isinstance(d, ast.Name) else "" for d in decorators
        }
        if not names & _DECORATORS:  # those are rewritten by their own decorator
            self.defaults(node.args)
            kept = node.args.defaults, node.args.kw_defaults
            _Function(self.filename, self.known, self.shared, self.unsure).function(node)
            node.args.defaults, node.args.kw_defaults = kept
        return node

    def defaults(self, arguments: ast.arguments) -> None:
        """Rewrite the defaults of a nested function: they are evaluated here, outside of it."""
        arguments.defaults = [self.visit(d) for d in arguments.defaults]
        arguments.kw_defaults = [d and self.visit(d) for d in arguments.kw_defaults]

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        """Its body stays plain Python, apart from the text of numbers."""
        self.defaults(node.args)
        node.body = Texts().visit(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def _refused(self, node: ast.AST) -> Any:
        word, why = _REFUSED[type(node).__name__]
        raise self.error(node, f"`{word}` has no meaning in a staged function: {why}")

    visit_Yield = visit_YieldFrom = visit_Await = visit_AsyncFor = visit_AsyncWith = visit_AsyncFunctionDef = _refused
    visit_Try = visit_TryStar = visit_Match = visit_Global = visit_Nonlocal = _refused
