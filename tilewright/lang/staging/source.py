"""A function's own syntax tree: found in its file (or notebook cell) by name and line, and checked against its code.

Python does not keep the text that a function was compiled from, and the text of its file may now be another one: the
file was edited after it was imported, or the name (``<string>``) stands for many texts. Therefore a marked function
remembers the text of its file from the moment at which it is marked, and the definition that is found in a text is
compiled and compared with the function: what is staged is what Python would run, or nothing.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import sys
import weakref
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from tilewright.errors import StagingError

STATEMENTS = ("body", "orelse", "finalbody", "handlers", "cases")
"""The fields of statements that hold statements, or parts of one that do."""
FUTURES = 0x1FF0000
"""The compiler flags that `from __future__ import ...` sets."""
_TEXTS: weakref.WeakKeyDictionary[FunctionType, list[str]] = weakref.WeakKeyDictionary()


class Definition(NamedTuple):
    """A function in a file: its node, the class around it ('' outside of a class), and what must be compiled to get its
    code: the statement of the file that holds it, behind the file's imports, for Python calls the functions of imported
    modules in a way of its own. Notebooks compile each statement of a cell by itself."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    owner: str
    module: ast.Module
    alone: ast.Module


def remember(function: FunctionType) -> None:
    """Keep the text of the file that ``function`` was defined in, as it is now."""
    if function not in _TEXTS:
        filename = function.__code__.co_filename
        if os.path.isfile(filename):  # what else has lines (a notebook's cells) could be dropped by checkcache
            linecache.checkcache(filename)
        _TEXTS[function] = linecache.getlines(filename, function.__globals__)


def tree_of(function: FunctionType) -> tuple[ast.FunctionDef, str]:
    """A fresh copy of the tree of ``function``, and the name of the class around it ('' outside of a class)."""
    code = function.__code__
    place = f"{code.co_filename}:{code.co_firstlineno}"
    if code.co_name == "<lambda>":
        raise StagingError(f"{place}: a lambda cannot be marked @cute.jit or @cute.kernel: write it as a `def`")
    remember(function)
    lines = _TEXTS[function]
    if not lines:
        raise StagingError(
            f"the source of {function.__qualname__} ({place}) is not to be found: staged functions must come from a "
            "file or a notebook cell (or be marked with preprocessor=False)"
        )
    definition = _find(code, "".join(lines), "@pytest_ar" in function.__globals__)
    if definition is None:
        raise StagingError(
            f"{place}: {function.__qualname__} was not compiled from the text that is found there: "
            f"{_reason(code.co_filename)}"
        )
    if isinstance(definition.node, ast.AsyncFunctionDef):
        raise StagingError(f"{place}: `async def` has no meaning in a staged function")
    return _copied(definition.node), definition.owner


def _copied(node: Any) -> Any:
    """A copy of a tree, or of the list of trees of a field: what ``copy.deepcopy`` gives, in a third of the time."""
    if isinstance(node, list):
        return [_copied(item) for item in node]
    if not isinstance(node, ast.AST):
        return node
    made: Any = type(node).__new__(type(node))  # without its constructor, which asks for fields
    made.__dict__.update({name: _copied(value) for name, value in node.__dict__.items()})
    return made


def _reason(filename: str) -> str:
    if os.path.isfile(filename):
        return "the file has changed since it was imported; import it again (importlib.reload), or restart Python"
    return (
        f"several texts go by the name {filename!r} (exec, python -c); write the function in a file or a notebook "
        "cell, or mark it with preprocessor=False"
    )


def _find(code: CodeType, text: str, rewritten: bool) -> Definition | None:
    """The definition in ``text`` that ``code`` was compiled from, or None.

    ``rewritten``: pytest has put other statements in place of the module's assertions before it was compiled.
    """
    try:
        definition = _definitions(text, code.co_filename, False).get((code.co_name, code.co_firstlineno))
        compiled = _definitions(text, code.co_filename, rewritten).get((code.co_name, code.co_firstlineno))
    except SyntaxError:
        return None
    if definition is None or compiled is None:
        return None
    # Code objects compare by content: an equal one shows that the text is what Python compiled.
    flags = code.co_flags & FUTURES
    forms = (compiled.module, compiled.alone)
    return definition if any(code in _compiled(form, code.co_filename, flags) for form in forms) else None


@functools.lru_cache(maxsize=64)
def _definitions(text: str, filename: str, rewritten: bool) -> dict[tuple[str, int], Definition]:
    """Every function of a file by its name and first line (that of its first decorator)."""
    definitions: dict[tuple[str, int], Definition] = {}

    def visit(node: ast.AST, owner: str, module: ast.Module, alone: ast.Module) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            definitions[node.name, first] = Definition(node, owner, module, alone)
        owner = node.name if isinstance(node, ast.ClassDef) else owner
        for part in STATEMENTS:  # no expression holds a definition
            for child in getattr(node, part, ()):
                visit(child, owner, module, alone)

    tree = ast.parse(text, filename)
    if rewritten:
        sys.modules["_pytest.assertion.rewrite"].rewrite_asserts(tree, text.encode())
    imports = list(_imports(tree))
    for statement in tree.body:
        visit(statement, "", ast.Module([*imports, statement], []), ast.Module([statement], []))
    return definitions


def _imports(node: ast.AST) -> Iterator[ast.stmt]:
    """The imports that bind names of the module."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        elif not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from _imports(child)


@functools.lru_cache(maxsize=64)
def _compiled(module: ast.Module, filename: str, flags: int) -> frozenset[CodeType]:
    """All code objects of a module, or a part of one."""
    return frozenset(codes_in(compile(module, filename, "exec", flags, dont_inherit=True)))


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """A code object, and those of the functions and classes inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


@functools.lru_cache(maxsize=1024)
def names_of(code: CodeType) -> set[str]:
    """The global names and attributes that a code object and those inside it mention."""
    return {name for inner in codes_in(code) for name in inner.co_names}


@functools.lru_cache(maxsize=1024)
def names_in_texts(code: CodeType) -> set[str]:
    """What may be names among the texts of a code object and those inside it: ``getattr(x, "name")``,
    ``attrgetter("a.b")``, ``globals()["name"]``."""
    texts = [x for inner in codes_in(code) for x in inner.co_consts if isinstance(x, str)]
    return {part for text in texts for part in text.split(".") if part.isidentifier()}
