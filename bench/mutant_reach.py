"""Which tests reach a mutant: they evaluate what it changes, and the changed expression has another value there.

Modules are loaded with each chosen mutant's expression in the place of the original one's: ``a and b`` becomes
``__see__(name, a and b, lambda: a)``. It returns what the original gives, and remembers whether the other differs. A
test for which it never differs cannot notice the mutant, so a study runs the others alone.
"""

from __future__ import annotations

import ast
import copy
import importlib.machinery
import pickle
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mutant_changes import ROOT, Mutant, changes

PLAIN = (bool, int, float, complex, str, bytes, type(None))
CHANGING = {
    "pop",
    "popleft",
    "popitem",
    "next",
    "append",
    "add",
    "remove",
    "discard",
    "setdefault",
    "update",
    "read",
    "write",
    "send",
    "super",
}
"""Functions and methods that are not called a second time: with one of them a mutant counts as different."""

executed: set[str] = set()
differing: set[str] = set()


def see(name: str, value: Any, other: Callable[[], Any] | None = None) -> Any:
    """``value``; remembers that the mutant ``name`` stands here, and whether ``other()`` is something else."""
    executed.add(name)
    if name not in differing:
        try:
            if other is None or not equal(value, other()):
                differing.add(name)
        except Exception:
            differing.add(name)
    return value


def equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, (np.ndarray, np.generic)):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return isinstance(a, PLAIN) and a == b


def is_repeatable(other: ast.AST) -> bool:
    """Whether an expression may stand in a ``lambda`` beside the original one."""
    for node in ast.walk(other):
        if isinstance(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)):
            return False
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in CHANGING:
                return False
    return True


class Beside(ast.NodeTransformer):
    """Puts the chosen mutants of a module beside its own expressions."""

    def __init__(self, tree: ast.Module, chosen: dict[int, str]) -> None:
        self.at: dict[ast.AST, list[tuple[str, ast.AST | None]]] = defaultdict(list)
        for number, (statement, _, kind, node, other) in enumerate(list(changes(tree))):
            if number not in chosen:
                continue
            if isinstance(other, ast.comprehension):  # without a condition: different where that does not hold
                node = next(one for one in node.ifs if one not in other.ifs)
                other = ast.Constant(True)
            elif kind == "refusal":
                node, other = statement, None
            elif isinstance(other, ast.UnaryOp) and other.operand is node:  # the negation is always different
                other = None
            elif not is_repeatable(other):
                other = None
            self.at[node].append((chosen[number], copy.deepcopy(other)))

    def visit(self, node: ast.AST) -> Any:
        seen = self.at.get(node, ())
        node = self.generic_visit(node)
        for name, other in seen:
            if isinstance(node, ast.Raise):
                node = [ast.copy_location(ast.Expr(self.call(name, ast.Constant(None), None)), node), node]
            elif isinstance(node, list):
                node.insert(0, ast.copy_location(ast.Expr(self.call(name, ast.Constant(None), None)), node[-1]))
            else:
                node = ast.copy_location(self.call(name, node, other), node)
        return node

    def call(self, name: str, value: ast.AST, other: ast.AST | None) -> ast.Call:
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        given = [ast.Constant(name), value, *([ast.Lambda(nothing, other)] if other is not None else [])]
        return ast.Call(ast.Name("__see__", ast.Load()), given, [])


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a module with its chosen mutants beside its expressions."""

    chosen: dict[str, dict[int, str]] = {}

    def get_code(self, fullname: str) -> Any:
        path = Path(self.get_filename(fullname))
        tree = ast.parse(path.read_text(encoding="utf-8"))
        tree = Beside(tree, self.chosen[str(path)]).visit(tree)
        return compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)

    def exec_module(self, module: Any) -> None:
        module.__dict__["__see__"] = see
        super().exec_module(module)


class Finder:
    """Finds the modules of the chosen mutants for :class:`Loader`."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not name.startswith("tilewright."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.origin in Loader.chosen:
            spec.loader = Loader(name, spec.origin)
        return spec


class Recorder:
    """A plugin of pytest that remembers each passed test: seconds, and the mutants it executes and tells apart."""

    def __init__(self) -> None:
        self.tests: dict[str, tuple[float, frozenset[str], frozenset[str]]] = {}
        self.failed: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        executed.clear()
        differing.clear()
        self.start = time.process_time()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            self.failed.add(report.nodeid)
        if report.when == "teardown" and report.nodeid not in self.failed:
            seconds = time.process_time() - self.start
            self.tests[report.nodeid] = seconds, frozenset(executed), frozenset(differing)


def reach(files: list[str], chosen: list[Mutant], store: Path, options: list[str]) -> str:
    """Run the tests of some files in this process, store what each reaches of ``chosen``, and say how many ran."""
    import pytest

    for mutant in chosen:
        Loader.chosen.setdefault(str(ROOT / mutant.file), {})[mutant.number] = mutant.name
    sys.meta_path.insert(0, Finder())
    recorder = Recorder()
    start = time.process_time()
    pytest.main([*options, *files], plugins=[recorder])
    store.write_bytes(pickle.dumps(recorder.tests))
    seconds = time.process_time() - start
    ran = f"{len(recorder.tests)} passed, {len(recorder.failed)} failed or left out"
    return f"{seconds:6.1f} s  {files[0]} and {len(files) - 1} more: {ran}"
