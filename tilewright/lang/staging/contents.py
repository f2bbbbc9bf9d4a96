"""What Python objects hold, and which of it can change: asked before and after a region.

Functions hold what their closures do and the global objects that they, and the functions that they call, name.
"""

from __future__ import annotations

import collections
import enum
import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from types import CellType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

from tilewright.ir.core import Value
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.staging.location import counts_as_user
from tilewright.lang.staging.source import names_of
from tilewright.lang.staging.undefined import Undefined

_STATIC_PACKAGES = ("layout", "ir", "atoms", "lang", "errors", "cute")
_FOREIGN = frozenset("builtins numpy torch cuda enum typing abc pathlib".split())
"""Packages whose objects hold no run-time values of ours."""
_FIXED = (Numeric, Value, Undefined, enum.Enum, BaseException, ModuleType)
_CALLABLE = (FunctionType, MethodType, functools.partial)
PLACES = ("list", "dict", "object")
"""Kinds of objects whose elements or attributes are places."""


def _kind_of(cls: type) -> str:
    """What instances are to a region: of :data:`PLACES`, ``class`` or ``watched`` (may not change), ``entered`` (cannot
    change, but what they hold can), ``iterator`` (changes unseen) or ``fixed`` (nothing of interest)."""
    if issubclass(cls, (list, dict)):
        return "list" if issubclass(cls, list) else "dict"
    if issubclass(cls, type):
        return "class"
    if issubclass(cls, (set, collections.deque, bytearray)) or cls is getattr(sys.modules.get("numpy"), "ndarray", 0):
        return "watched"
    packages = cls.__module__.split(".")
    if issubclass(cls, (*_CALLABLE, tuple, frozenset, MappingProxyType)) or hasattr(cls, "marked"):
        return "entered"
    if issubclass(cls, Iterator):
        return "iterator"
    ours = packages[0] == "tilewright" and packages[1:2] and packages[1] in _STATIC_PACKAGES
    if issubclass(cls, _FIXED) or ours or packages[0] in _FOREIGN or getattr(cls, "__carry_immutable__", False):
        return "fixed"
    if _is_frozen(cls):
        return "entered"
    return "object" if cls.__dictoffset__ or hasattr(cls, "__slots__") else "fixed"


kind_of: Callable[[Any], str] = functools.cache(_kind_of)


def contents(holder: Any) -> dict[Any, Any]:
    """What an object holds: elements, values or attributes by their keys, or what a function brings along."""
    if isinstance(holder, (dict, MappingProxyType)):
        return dict(holder)
    if isinstance(holder, (list, tuple, set, frozenset, collections.deque)):
        return dict(enumerate(holder))
    if isinstance(holder, type):  # but not where Python keeps notes; classes of others change for reasons of their own
        foreign = holder.__module__.partition(".")[0] in ("tilewright", *_FOREIGN)
        return {} if foreign else {n: value for n, value in vars(holder).items() if not n.startswith("__")}
    if kind_of(type(holder)) == "watched":
        return {0: bytes(holder)}
    if hasattr(type(holder), "marked"):
        return {holder.function.__name__: holder.function}
    if isinstance(holder, FunctionType):
        cells = zip(holder.__code__.co_freevars, holder.__closure__ or (), strict=True)
        found = {name: cell.cell_contents for name, cell in cells if cell != CellType()}
        return found | {name: scope[name] for name, scope in globals_of(holder) if name in scope}
    if isinstance(holder, MethodType):
        return {"self": holder.__self__, "method": holder.__func__}
    if isinstance(holder, functools.partial):
        return dict(enumerate((holder.func, *holder.args, *holder.keywords.values())))
    return {name: getattr(holder, name) for name in (*getattr(holder, "__dict__", ()), *_slots(type(holder)))
            if hasattr(holder, name)}  # fmt: skip


def label_of(path: str, holder: Any, key: Any) -> str:
    """How messages call what ``holder`` holds under ``key``; what a function brings along has a name of its own."""
    if isinstance(holder, _CALLABLE) or hasattr(type(holder), "marked"):
        return str(key)
    return f"{path}[{key!r}]" if hasattr(holder, "__getitem__") and not _is_frozen(type(holder)) else f"{path}.{key}"


def _is_frozen(cls: type) -> bool:
    return bool(getattr(getattr(cls, "__dataclass_params__", None), "frozen", False))


def _slots_of(cls: Any) -> tuple[str, ...]:
    listed = (base.__dict__.get("__slots__", ()) for base in cls.__mro__)
    every = [name for names in listed for name in ((names,) if isinstance(names, str) else names)]
    return tuple(name for name in every if name != "__dict__")


_slots: Callable[[Any], tuple[str, ...]] = functools.cache(_slots_of)


def same(a: Any, b: Any) -> bool:
    """Whether a place that held ``a`` and now holds ``b`` has not changed."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, Numeric):
        return a.value is b.value or (a.is_static and b.is_static and repr(a.value) == repr(b.value))
    return type(a) in (int, float, bool, str, bytes) and a == b


def has_code(value: Any) -> bool:
    """Whether a value is a function, marked or not, or a class of them."""
    return isinstance(value, (FunctionType, property, type)) or hasattr(type(value), "marked")


_GLOBALS: weakref.WeakKeyDictionary[Any, tuple[tuple[str, dict[str, Any]], ...]] = weakref.WeakKeyDictionary()


def globals_of(owner: Any) -> tuple[tuple[str, dict[str, Any]], ...]:
    """The global variables that a function of the user's (or the methods of a class), and the functions and classes
    that it names, could change the contents of: each with its namespace."""
    known = _GLOBALS.get(owner)
    if known is not None:
        return known
    found: dict[str, dict[str, Any]] = {}
    seen, waiting = set(), [owner]
    while waiting:
        function = waiting.pop()
        function = getattr(function, "function" if hasattr(type(function), "marked") else "fget", function)
        if function in seen:
            continue
        seen.add(function)
        if isinstance(function, type):
            waiting += [f for base in function.__mro__ for f in vars(base).values() if has_code(f)]
        elif isinstance(function, FunctionType) and counts_as_user(function.__code__):
            scope = function.__globals__
            for name in names_of(function.__code__) & scope.keys():
                value = scope[name]
                if has_code(value):
                    waiting.append(value)
                elif kind_of(type(value)) != "fixed":
                    found[name] = scope
    known = _GLOBALS[owner] = tuple(found.items())
    return known
