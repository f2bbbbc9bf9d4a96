"""A function's own syntax tree, found in its source file (or notebook cell) by line number."""

from __future__ import annotations

import ast
import copy
import functools
import linecache
from types import FunctionType

from tilewright.errors import StagingError


def tree_of(function: FunctionType) -> tuple[ast.FunctionDef, str]:
    """A fresh copy of the tree of ``function``, and the name of the class around it ('' if there is none)."""
    code = function.__code__
    if code.co_name == "<lambda>":
        raise StagingError("a lambda cannot be marked @cute.jit or @cute.kernel: write it as a `def`")
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise StagingError(
            f"the source of {function.__qualname__} ({code.co_filename}:{code.co_firstlineno}) is not to be "
            "found: staged functions must come from a file or a notebook cell (or be marked with preprocessor=False)"
        )
    found = _definitions("".join(lines), code.co_filename).get((code.co_name, code.co_firstlineno))
    if found is None:
        raise StagingError(
            f"{code.co_filename}:{code.co_firstlineno}: {function.__qualname__} is not there any more: the "
            f"file was changed "
            "after it was imported"
        )
    node, owner = found
    if isinstance(node, ast.AsyncFunctionDef):
        raise StagingError(f"{code.co_filename}:{node.lineno}: `async def` has no meaning in a staged function")
    return copy.deepcopy(node), owner


Definition = tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]


@functools.lru_cache(maxsize=64)
def _definitions(text: str, filename: str) -> dict[tuple[str, int], Definition]:
    """Every function of a file by its name and first line (that of its first decorator)."""
    found: dict[tuple[str, int], Definition] = {}

    def visit(node: ast.AST, owner: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                found[child.name, first] = (child, owner)
                visit(child, owner)
            else:
                visit(child, child.name if isinstance(child, ast.ClassDef) else owner)

    visit(ast.parse(text, filename), "")
    return found
