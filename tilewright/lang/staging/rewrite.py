"""The rewriter: a function's syntax tree with its control flow turned into calls of :mod:`runtime`.

Statements stay in their frame and keep their lines. ``if c: A else: B`` becomes::

    branch = _tw.If(c, names, touched, objects)
    if branch.then(x, y):
        A
        x, y = branch.swap(x, y)
    if branch.other():
        B
        x, y = branch.join(x, y)

so that one code runs as Python does when ``c`` is known, and traces both arms when it is not. How ``for`` and
``while`` run is in :mod:`loops`; expressions are in :mod:`rewrite_expressions`. Predicates written ``const_expr(...)``
and loops over ``range_constexpr(...)`` are left alone.
"""

from __future__ import annotations

import ast
from typing import Any

from tilewright.errors import StagingError
from tilewright.lang.staging.nodes import called_name
from tilewright.lang.staging.rewrite_expressions import Expressions
from tilewright.lang.staging.scopes import Uses, assigned_first, can_leave, parameters

_DECORATORS = frozenset(("jit", "kernel"))



def rewrite(node: ast.FunctionDef, filename: str, free: set[str], shared: set[str]) -> ast.FunctionDef:
    """``node`` (a fresh copy) rewritten; ``free`` are the free variables of the function, ``shared`` the global ones
    that hold something a region could change."""
    node.decorator_list = []
    node.returns = None
    _Function(filename, free, shared, set()).function(node)
    return ast.fix_missing_locations(node)


class _Function(Expressions):
    """Rewrites one function body; nested functions get their own."""

    def __init__(self, filename: str, outer: set[str], shared: set[str], enclosing: set[str]) -> None:
        super().__init__(outer)
        self.enclosing = enclosing
        """The variables of the staged functions around this one."""
        self.filename = filename
        self.shared = shared
        self.declared: set[str] = set()
        self.level = ""
        self.nesting = 0
        self.loops: list[str] = []

    # -- the function --------------------------------------------------------------------------------------------

    def function(self, node: ast.FunctionDef) -> None:
        uses = Uses(node.body)
        self.declared = uses.declared
        self.refuse_outer(node, uses)
        given = parameters(node)
        self.locals = (given | uses.bound.keys()) - self.declared
        self.level = self.fresh("level")
        node.args.defaults = [ast.copy_location(ast.Constant(None), d) for d in node.args.defaults]
        node.args.kw_defaults = [d and ast.copy_location(ast.Constant(None), d) for d in node.args.kw_defaults]
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        body = self.statements(node.body)
        head: list[ast.stmt] = [self.assign(self.level, self.tool("depth", node), node)]
        unset = [name for name in self.tracked if name not in given and name in self.locals]
        if unset:
            head.append(self.unpack(unset, self.tool("undefined", node, *map(ast.Constant, unset)), node))
        at = 1 if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else 0
        node.body = body[:at] + head + body[at:]

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            made = self.visit(statement)
            out += made if isinstance(made, list) else [] if made is None else [made]
        return out

    def nested(self, body: list[ast.stmt]) -> list[ast.stmt]:
        self.nesting += 1
        try:
            return self.statements(body)
        finally:
            self.nesting -= 1

    def error(self, node: ast.AST, message: str) -> StagingError:
        return StagingError(f"{self.filename}:{getattr(node, 'lineno', 0)}: {message}")

    def refuse_outer(self, node: ast.FunctionDef, uses: Uses) -> None:
        """Variables that live longer than one run of the program cannot be assigned by it."""
        for name in (self.declared - self.enclosing) & uses.bound.keys():
            stores = (n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name)
            at = next((n for n in stores if not isinstance(n.ctx, ast.Load)), node)
            raise self.error(
                at,
                f"the variable '{name}' of an outer scope is assigned in a function that is staged: Python would do so "
                "once, not each time that the program runs; return the value, or write it into a tensor",
            )

    # -- control flow --------------------------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> Any:
        if called_name(node.test) == "const_expr":
            node.test = self.visit(node.test)
            node.body, node.orelse = self.nested(node.body), self.nested(node.orelse)
            return node
        assigned, touched = self.variables(*node.body, *node.orelse)
        branch = self.fresh("if")
        values = self.loads(assigned, node)
        test = self.visit(node.test)
        objects = ast.Tuple(self.loads(touched, node), ast.Load())
        made = self.tool("If", node, test, self.texts(assigned), self.texts(touched), objects)
        then = self.nested(node.body) + [self.unpack(assigned, self.call(branch, "swap", node, *values), node)]
        other = self.nested(node.orelse) + [self.unpack(assigned, self.call(branch, "join", node, *values), node)]
        return [
            self.assign(branch, made, node),
            ast.copy_location(ast.If(self.call(branch, "then", node, *values), then, []), node),
            ast.copy_location(ast.If(self.call(branch, "other", node), other, []), node),
        ]

    def visit_For(self, node: ast.For) -> Any:
        loop = self.fresh("for")
        if called_name(node.iter) == "range_constexpr":
            node.iter = self.visit(node.iter)
            node.body = self.loop_body(node.body, loop)
            node.orelse = self.nested(node.orelse)
            return [self.assign(loop, self.tool("depth", node), node), node]
        assigned, touched = self.variables(node.target, *node.body)
        targets = list(Uses([node.target]).bound)
        fresh = sorted(assigned_first(node.body) - set(targets))
        if isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range":
            node.iter.func = self.tool("range_", node.iter, node.iter.func)
        made = self.tool(
            "For", node, self.visit(node.iter), self.texts(assigned), self.texts(fresh), self.texts(targets),
            self.texts(touched), ast.Tuple(self.loads(touched, node), ast.Load()),
        )  # fmt: skip
        values = self.loads(assigned, node)
        item = self.fresh("item")
        body: list[ast.stmt] = [
            self.unpack(assigned, self.call(loop, "enter", node, *values), node),
            self.spread(ast.Assign([node.target], self.name(item, node)), node),
            *self.loop_body(node.body, loop),
            self.unpack(assigned, self.call(loop, "leave", node, *values), node),
        ]
        steps = self.call(loop, "steps", node, *values)
        orelse = self.nested(node.orelse)
        head = ast.copy_location(ast.For(self.name(item, node, True), steps, body, orelse), node)
        return [self.assign(loop, made, node), head]

    def visit_While(self, node: ast.While) -> Any:
        loop = self.fresh("while")
        if called_name(node.test) == "const_expr":
            node.test = self.visit(node.test)
            node.body, node.orelse = self.loop_body(node.body, loop), self.nested(node.orelse)
            return [self.assign(loop, self.tool("depth", node), node), node]
        if isinstance(node.test, ast.Constant) and node.test.value and not can_leave(node.body):
            raise self.error(
                node,
                f"`while {ast.unparse(node.test)}` without a `break` never ends; a loop that ends by a run-time value "
                "is written with the condition in its head: `while n < limit:`",
            )
        assigned, touched = self.variables(node.test, *node.body)
        conditional = Uses([node.test]).read.keys()
        fresh = sorted(assigned_first(node.body) - conditional)
        made = self.tool(
            "While", node, self.texts(assigned), self.texts(fresh), self.texts(touched),
            ast.Tuple(self.loads(touched, node), ast.Load()),
        )  # fmt: skip
        values = self.loads(assigned, node)
        test = self.call(loop, "test", node, self.visit(node.test), *values)
        turn: list[ast.stmt] = [
            self.unpack(assigned, self.call(loop, "body", node, *values), node),
            *self.loop_body(node.body, loop),
            self.unpack(assigned, self.call(loop, "leave", node, *values), node),
        ]
        body: list[ast.stmt] = [
            self.unpack(assigned, self.call(loop, "enter", node, *values), node),
            ast.copy_location(ast.If(test, turn, []), node),
        ]
        orelse = self.nested(node.orelse)
        head = ast.copy_location(ast.While(self.call(loop, "more", node, *values), body, orelse), node)
        return [self.assign(loop, made, node), head]

    def loop_body(self, body: list[ast.stmt], loop: str) -> list[ast.stmt]:
        self.loops.append(loop)
        try:
            return self.nested(body)
        finally:
            self.loops.pop()

    def visit_Break(self, node: ast.Break | ast.Continue) -> Any:
        word = "break" if isinstance(node, ast.Break) else "continue"
        check = self.tool("jump", node, ast.Constant(word), self.name(self.loops[-1], node))
        return [self.spread(ast.Expr(check), node), node]

    visit_Continue = visit_Break

    def visit_Return(self, node: ast.Return) -> Any:
        return self.guarded(node, "return")

    def visit_Raise(self, node: ast.Raise) -> Any:
        return self.guarded(node, "raise")

    def guarded(self, node: ast.Return | ast.Raise, word: str) -> Any:
        self.generic_visit(node)
        if not self.nesting:
            return node
        check = self.tool("leave", node, ast.Constant(word), self.name(self.level, node))
        return [self.spread(ast.Expr(check), node), node]

    def visit_Try(self, node: ast.Try) -> Any:
        level, ops = self.fresh("level"), self.fresh("ops")
        kinds = [handler.type or self.name("BaseException", handler) for handler in node.handlers]
        node.body, node.orelse = self.nested(node.body), self.nested(node.orelse)
        node.finalbody = self.nested(node.finalbody)
        for handler in node.handlers:
            check = self.spread(ast.Expr(self.tool("caught", handler, self.name(level, handler))), handler)
            handler.body = [check, *self.nested(handler.body)]
        before = [self.assign(level, self.tool("depth", node), node)]
        if kinds:
            before.append(self.assign(ops, self.tool("recorded", node), node))
            ended = self.tool("attempted", node, self.name(ops, node), *kinds)
            node.orelse.insert(0, self.spread(ast.Expr(ended), node))  # where no handler of this `try` catches it
        return [*before, node]

    def visit_With(self, node: ast.With) -> Any:
        assigned, touched = self.variables(*node.body)
        block = self.fresh("with")
        values = self.loads(assigned, node)
        node.items = [self.visit(item) for item in node.items]
        entered = self.spread(ast.Expr(self.call(block, "enter", node, *values)), node)
        node.body = [entered, *self.nested(node.body)]
        objects = self.thunk(ast.copy_location(ast.Tuple(self.loads(touched, node), ast.Load()), node))
        made = self.tool("With", node, self.texts(assigned), self.texts(touched), objects)
        return [
            self.assign(block, made, node),
            node,
            self.unpack(assigned, self.call(block, "leave", node, *values), node),
        ]

    def visit_Match(self, node: ast.Match) -> Any:
        node.subject = self.tool("matched", node.cases[0].pattern, self.visit(node.subject))
        for case in node.cases:
            case.body = self.nested(case.body)
        return node

    def visit_Delete(self, node: ast.Delete) -> Any:
        gone = [t.id for t in node.targets if isinstance(t, ast.Name) and t.id in self.locals]
        self.tracked.update(dict.fromkeys(gone))
        rest = [t for t in node.targets if not (isinstance(t, ast.Name) and t.id in gone)]
        texts = [ast.Constant(name) for name in gone]
        out: list[ast.stmt] = [self.unpack(gone, self.tool("undefined", node, *texts), node)] if gone else []
        return out + ([ast.copy_location(ast.Delete(rest), node)] if rest else [])

    # -- assignments ---------------------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        target = node.targets[-1]
        if isinstance(target, ast.Name):
            node.value = self.tool("named", node.value, ast.Constant(target.id), node.value)
        elif isinstance(target, ast.Tuple) and not any(isinstance(t, ast.Starred) for t in target.elts):
            wanted = [t.id if isinstance(t, ast.Name) else "" for t in target.elts]
            node.value = self.tool("names", node.value, self.spread(self.texts(wanted), node), node.value)
        return self.outside(node, node.targets)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        return self.outside(node, [node.target])

    def outside(self, node: ast.stmt, targets: list[ast.expr]) -> Any:
        """``node``, checked first where it assigns ``global`` or ``nonlocal`` variables in a region."""
        names = [name for name in Uses(targets).bound if name in self.declared] if self.nesting else []
        checks = [self.tool("outer", node, ast.Constant(name), self.name(self.level, node)) for name in names]
        return [*(self.spread(ast.Expr(check), node) for check in checks), node] if checks else node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return None
        plain = ast.copy_location(ast.Assign([node.target], node.value), node)
        return self.visit_Assign(plain)

    # -- nested scopes and what has no meaning here --------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        decorators = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
        names = {
            d.attr if isinstance(d, ast.Attribute) else d.id if isinstance(d, ast.Name) else "" for d in decorators
        }
        if not names & _DECORATORS:  # those are rewritten by their own decorator
            kept = (node.args.defaults, node.args.kw_defaults)
            _Function(self.filename, self.known, self.shared, self.enclosing | self.locals).function(node)
            node.args.defaults, node.args.kw_defaults = kept
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def _unsupported(self, node: ast.AST) -> Any:
        word = {
            "Yield": "yield", "YieldFrom": "yield from", "Await": "await", "AsyncFor": "async for",
            "AsyncWith": "async with", "AsyncFunctionDef": "async def", "TryStar": "except*",
        }[type(node).__name__]  # fmt: skip
        raise self.error(
            node, f"`{word}` has no meaning in a staged function; a kernel is one program without suspension"
        )

    visit_Yield = visit_YieldFrom = visit_Await = visit_AsyncFor = visit_AsyncWith = _unsupported
    visit_AsyncFunctionDef = visit_TryStar = _unsupported
