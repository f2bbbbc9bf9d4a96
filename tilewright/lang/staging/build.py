"""Rewritten trees made into functions that share the globals, closure cells, defaults and lines of the original."""

from __future__ import annotations

import ast
import weakref
from types import CellType, CodeType, FunctionType
from typing import Any

from tilewright.lang.staging import runtime
from tilewright.lang.staging.contents import stores_of
from tilewright.lang.staging.location import register_code
from tilewright.lang.staging.nodes import TOOL
from tilewright.lang.staging.rewrite import rewrite
from tilewright.lang.staging.source import FUTURES, codes_in, names_of, tree_of

_CODES: weakref.WeakKeyDictionary[CodeType, CodeType] = weakref.WeakKeyDictionary()


def staged(function: FunctionType) -> FunctionType:
    """``function`` with its control flow rewritten (once for each code object; closures share the work)."""
    original = function.__code__
    code = _CODES.get(original)
    if code is None or code.co_filename != original.co_filename:  # equal code may come from two files
        code = _CODES[original] = _compile(function)
    return _bind(function, code)


def _compile(function: FunctionType) -> CodeType:
    original = function.__code__
    node, owner = tree_of(function)
    free = [name for name in original.co_freevars if name != TOOL]
    rewrite(node, original.co_filename, set(free), _shared(function))
    node.name = f"{TOOL}_function"  # the function's own name means what it means around it
    body: list[ast.stmt] = [node]
    if owner:  # private names are mangled, and super() finds its class, as in the original place
        body = [ast.ClassDef(owner, bases=[], keywords=[], body=body, decorator_list=[])]
    # A factory takes the free variables as parameters, so that they are cells of the function inside it, as they
    # are in the original. Only its code is used: ``_bind`` gives it the original's own cells.
    outer = [name for name in free if not (owner and name == "__class__")]
    arguments = [ast.arg(name) for name in [*outer, TOOL]]
    spec = ast.arguments(posonlyargs=[], args=arguments, kwonlyargs=[], kw_defaults=[], defaults=[])
    if owner and owner not in free:  # a method that names its own class means the global, not the class made here
        body.insert(0, ast.Global([owner]))
    factory = ast.FunctionDef("_tw_factory", spec, [], [])
    for place in (factory, *body):
        ast.copy_location(place, node)
    module = ast.fix_missing_locations(ast.Module([factory], []))
    factory.body = body  # has its locations
    compiled = compile(module, original.co_filename, "exec", original.co_flags & FUTURES, dont_inherit=True)
    code = next(code for code in codes_in(compiled) if code.co_name == node.name)
    code = code.replace(co_name=original.co_name, co_qualname=function.__qualname__)
    for inner in codes_in(code):
        register_code(inner)
    return code


def _shared(function: FunctionType) -> set[str]:
    """The names of the global variables behind which something could change."""
    scope = function.__globals__
    return {name for name in names_of(function.__code__) & scope.keys() if stores_of(type(scope[name]))}


def _bind(function: FunctionType, code: CodeType) -> FunctionType:
    cells: dict[str, Any] = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[TOOL] = CellType(runtime)
    closure = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__, made.__doc__ = function.__qualname__, function.__module__, function.__doc__
    return made
