"""The changes that a mutation study of the package makes, and how a change is put into the running functions."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SWAPPED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True)
class Mutant:
    """The ``number``-th change that :func:`changes` finds in a file."""

    file: str
    line: int
    """Of the statement, as the tests' lines are remembered."""
    function: str
    kind: str
    number: int
    before: str
    after: str

    @property
    def name(self) -> str:
        """The same after edits elsewhere in the file."""
        return f"{self.file}:{self.function}: {self.before} -> {self.after}"


def is_staged(function: ast.AST) -> bool:
    return any("jit" in ast.unparse(d) or "kernel" in ast.unparse(d) for d in getattr(function, "decorator_list", ()))


def statements(tree: ast.AST, name: str = "", inside: bool = False) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of functions, each with the function's qualified name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if not is_staged(node):
                yield from statements(node, f"{name}.{node.name}".lstrip("."), not isinstance(node, ast.ClassDef))
        elif isinstance(node, ast.stmt):
            if inside:
                yield node, name
            yield from statements(node, name, inside)
        elif isinstance(node, (ast.ExceptHandler, ast.match_case)):
            yield from statements(node, name, inside)


def own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement that belong to no statement inside it."""
    for node in ast.iter_child_nodes(statement):
        if not isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield from ast.walk(node)


def is_key(statement: ast.stmt, function: str) -> bool:
    if isinstance(statement, ast.Return):
        return function.rpartition(".")[2].endswith("key")
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    return isinstance(target, ast.Name) and target.id.endswith("key")


def changes(tree: ast.Module) -> Iterator[tuple[ast.stmt, str, str, ast.AST, ast.AST]]:
    """Statement, function, kind, a node and what stands in its place."""
    for statement, function in statements(tree):
        if isinstance(statement, ast.Raise):
            yield statement, function, "refusal", statement, ast.Pass()
            continue
        if isinstance(statement, (ast.If, ast.While)):
            yield statement, function, "condition", statement.test, ast.UnaryOp(ast.Not(), statement.test)
        for node in own_expressions(statement):
            for kind, other in changed(node, is_key(statement, function)):
                yield statement, function, kind, node, other


def changed(node: ast.AST, key: bool) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Compare):
        for i, operator in enumerate(node.ops):
            other = copy.deepcopy(node)
            other.ops[i] = SWAPPED[type(operator)]()
            yield "compare", other
        for i, right in enumerate(node.comparators):
            if isinstance(right, ast.Constant) and type(right.value) is int:
                other = copy.deepcopy(node)
                other.comparators[i] = ast.Constant(right.value + 1)
                yield "bound", other
    elif isinstance(node, ast.BoolOp):
        yield "condition", ast.BoolOp(SWAPPED[type(node.op)](), node.values)
        for i in range(len(node.values)):
            rest = node.values[:i] + node.values[i + 1 :]
            yield "operand", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "operand", node.operand
    elif isinstance(node, ast.IfExp):
        yield "condition", ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.comprehension):
        for i in range(len(node.ifs)):
            other = copy.copy(node)
            other.ifs = node.ifs[:i] + node.ifs[i + 1 :]
            yield "condition", other
    elif isinstance(node, ast.Tuple) and key and isinstance(node.ctx, ast.Load):
        for i in range(len(node.elts)):
            yield "key", ast.Tuple([*node.elts[:i], ast.Constant(None), *node.elts[i + 1 :]], ast.Load())
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mod, ast.FloorDiv)):
        if isinstance(node.right, ast.Constant) and type(node.right.value) is int:
            yield "bound", ast.BinOp(node.left, node.op, ast.Constant(node.right.value + 1))


def mutants(file: str) -> list[Mutant]:
    found = []
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    for number, (statement, function, kind, node, other) in enumerate(changes(tree)):
        before, after = (" ".join(ast.unparse(ast.fix_missing_locations(x)).split())[:200] for x in (node, other))
        found.append(Mutant(file, statement.lineno, function, kind, number, before, after))
    return found


class Replace(ast.NodeTransformer):
    def __init__(self, node: ast.AST, other: ast.AST) -> None:
        self.node, self.other = node, other

    def visit(self, node: ast.AST) -> Any:
        return ast.copy_location(self.other, node) if node is self.node else self.generic_visit(node)


def mutated(mutant: Mutant) -> CodeType:
    tree = ast.parse((ROOT / mutant.file).read_text(encoding="utf-8"))
    *_, node, other = next(found for i, found in enumerate(changes(tree)) if i == mutant.number)
    if isinstance(other, ast.comprehension):
        node.ifs = other.ifs  # it has no place of its own
    else:
        # Not inside of `other`, which may hold `node`'s parts, but never `node`.
        Replace(node, other).visit(tree)
    return compile(ast.fix_missing_locations(tree), str(ROOT / mutant.file), "exec", dont_inherit=True)


def codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes(constant)


def by_place(code: CodeType) -> dict[Any, CodeType]:
    """Those that have a place of their own: two lambdas of one line have not."""
    found = list(codes(code))
    count = Counter((c.co_qualname, c.co_firstlineno) for c in found)
    return {p: c for c in found if count[p := (c.co_qualname, c.co_firstlineno)] == 1}


def apply(mutant: Mutant, functions: list[FunctionType]) -> int:
    """Give the living ``functions`` of the file the mutant's code; how many have changed."""
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    made, before = (by_place(c) for c in (mutated(mutant), compile(source, "", "exec")))
    number = 0
    for function in functions:
        place = function.__code__.co_qualname, function.__code__.co_firstlineno
        if place in made and made[place].co_freevars == function.__code__.co_freevars:
            number += place in before and not same(made[place], before[place])
            function.__code__ = made[place]
    return number


def same(a: CodeType, b: CodeType) -> bool:
    return a.replace(co_filename="") == b.replace(co_filename="")
