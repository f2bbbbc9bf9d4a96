"""Stubs of functions that other functions make: ``size = _of_layout(_layout.size)``.

A type checker sees that such names are callable and no more. Their stubs have the parameters and the text of what is
called, with types by the *kind* of a function, which is the name of its maker.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Types(NamedTuple):
    """Types of the first parameters, and of the result; None leaves all as they are."""

    parameters: tuple[str, ...] = ()
    result: str | None = None


def alike(*types: str) -> tuple[Types, ...]:
    """The result is of the first parameter's type."""
    return tuple(Types((t,), t) for t in types)


# pyright takes the first of overloads that fit an argument of type Any, if the others give Any. So each of these kinds
# has several overloads of different results, and no type variable for all layouts.
LAYOUTS = {
    "_on_layout": alike("Tensor", "Layout", "ComposedLayout", "Any"),
    "_like_layout": alike("Layout", "ComposedLayout", "Any"),
    "_of_layout": (Types(),),
    "_of_extents": (Types(),),
    "_located": (Types(),),
}
MADE = {"lang/tensors/layout_functions.py": LAYOUTS}
HOMES = {
    "Tensor": "tilewright.lang.tensors.tensor", "Layout": "tilewright.layout.layout",
    "ComposedLayout": "tilewright.layout.composed", "Any": "typing", "overload": "typing",
}  # fmt: skip


def made_functions(kinds: dict[str, tuple[Types, ...]], tree: ast.Module, root: Path) -> str:
    """The stub, below its head, of a module of functions that are made by those of ``kinds``."""
    functions: list[ast.FunctionDef] = []
    needed: set[str] = set()
    for node in tree.body:
        match node:
            case ast.Assign(value=ast.Call(ast.Name(kind), [ast.Attribute(attr=namesake)])):
                home, module = _home_of(namesake, root)
                made = list(_lifted(home, namesake, kinds[kind]))
                needed |= _imported(made, home, module)
                functions += made
    lines = [ast.unparse(ast.fix_missing_locations(f)) for f in functions]
    return "\n".join(["", *sorted(needed), "", *lines]) + "\n"


def _home_of(name: str, root: Path) -> tuple[ast.Module, str]:
    """The module that defines ``tilewright.layout.name``."""
    for node in ast.parse((root / "tilewright/layout/__init__.pyi").read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and any(name == given.name for given in node.names):
            path = root.joinpath(*str(node.module).split(".")).with_suffix(".py")
            return ast.parse(path.read_text("utf-8")), str(node.module)
    raise SystemExit(f"stubs: tilewright.layout has no {name}")


def _lifted(home: ast.Module, name: str, kinds: tuple[Types, ...]) -> Iterator[ast.FunctionDef]:
    """The signatures of a function of the layout algebra, and ``loc`` and ``ip``: its own, or those of its kind."""
    *overloads, last = [n for n in home.body if isinstance(n, ast.FunctionDef) and n.name == name]
    doc = ast.get_docstring(last, clean=False)
    wanted = [(last, types) for types in kinds]
    if overloads:  # they say more than a kind does
        wanted = [(last, t) for t in kinds if "Tensor" in t.parameters] + [(own, Types()) for own in overloads]
    for k, (own, types) in enumerate(wanted):
        made = _stripped(own, None if k else doc, types)
        for option in ("loc", "ip"):
            made.args.kwonlyargs.append(ast.arg(option, ast.Name("Any")))
            made.args.kw_defaults.append(ast.Constant(None))
        yield _overload(made, len(wanted))


def _stripped(function: ast.FunctionDef, doc: str | None, types: Types) -> ast.FunctionDef:
    """A copy with other types and the text alone for its body."""
    made = ast.parse(ast.unparse(function)).body[0]
    assert isinstance(made, ast.FunctionDef)
    for parameter, wanted in zip([*made.args.posonlyargs, *made.args.args], types.parameters, strict=False):
        parameter.annotation = ast.parse(wanted, mode="eval").body
    if types.result:
        made.returns = ast.Name(types.result)
    made.body = [ast.Expr(ast.Constant(doc or ...))]
    return made


def _overload(function: ast.FunctionDef, count: int) -> ast.FunctionDef:
    function.decorator_list = [ast.Name("overload")] if count > 1 else []
    return function


def _imported(functions: list[ast.FunctionDef], home: ast.Module, module: str) -> set[str]:
    """The imports that signatures need, which are those of ``home`` or names that it defines."""
    used = {node.id for function in functions for node in ast.walk(function) if isinstance(node, ast.Name)}
    known = {name: f"from {HOMES[name]} import {name}" for name in used & set(HOMES)}
    given = {line for line in imports(home, used - set(known))}
    return {*known.values(), *given, *(f"from {module} import {n}" for n in (used - set(known)) & _defined(home))}


def _defined(home: ast.Module) -> set[str]:
    classes = {node.name for node in home.body if isinstance(node, ast.ClassDef)}
    aliases = (n for n in home.body if isinstance(n, ast.AnnAssign | ast.Assign))
    targets = (t for n in aliases for t in ([n.target] if isinstance(n, ast.AnnAssign) else n.targets))
    return classes | {target.id for target in targets if isinstance(target, ast.Name)}


def imports(tree: ast.Module, used: set[str]) -> Iterator[str]:
    """The module's own imports, one a line, of which its definitions have need and those that it shows."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            for name in node.names:
                if (name.asname or name.name) in used or name.asname == name.name:
                    yield f"from {node.module} import {ast.unparse(name)}"
