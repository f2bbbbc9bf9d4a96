"""What a region may change: the variables that it assigns, and what lies behind the objects that it names.

A *place* is a list's element, a dict's value or an attribute of a user's object. Before a region, the places behind
the variables that its body names are remembered; after it, those that hold something else are carried as variables are.
Functions are entered for what their closures hold. What cannot differ from one path of a program to the other (the
length of a list, the keys of a dict, which attributes an object has, sets, NumPy arrays) may not change: that is an
error. Objects that cannot change (layouts, tensors, numerics) are not entered, nor are tables longer than any state.
"""

from __future__ import annotations

import collections
import enum
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from tilewright.ir.core import Value
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.staging import values as run_time
from tilewright.lang.staging.location import fail
from tilewright.lang.staging.undefined import Undefined

TABLE = 1024
"""A longer list or dict is a table of constants: nobody carries its elements."""
_STATIC_PACKAGES = ("layout", "ir", "atoms", "lang", "errors", "cute")
_FOREIGN = frozenset("builtins numpy torch cuda functools types enum typing collections abc pathlib".split())
"""Packages whose objects hold no run-time values of ours."""
_FIXED = (Numeric, Value, Undefined, type, enum.Enum, BaseException, ModuleType)


def _kind_of(cls: type) -> str:
    """What instances are to a region: ``list``, ``dict``, ``tuple``, ``callable`` (entered for its closure), ``object``
    (has attributes), ``watched`` (may not change) or ``fixed`` (cannot)."""
    if issubclass(cls, (list, dict, tuple)):
        return next(kind.__name__ for kind in (list, dict, tuple) if issubclass(cls, kind))
    if cls in (FunctionType, MethodType, functools.partial) :
        return "callable"
    if issubclass(cls, (set, collections.deque, bytearray)) or cls is getattr(sys.modules.get("numpy"), "ndarray", 0):
        return "watched"
    packages = cls.__module__.split(".")
    ours = packages[0] == "tilewright" and packages[1:2] and packages[1] in _STATIC_PACKAGES
    frozen = getattr(getattr(cls, "__dataclass_params__", None), "frozen", False)
    fixed = issubclass(cls, _FIXED) or frozen or ours or packages[0] in _FOREIGN
    return "fixed" if fixed or not (cls.__dictoffset__ or hasattr(cls, "__slots__")) else "object"


kind_of: Callable[[Any], str] = functools.cache(_kind_of)


class Place:
    """``holder[key]`` (an item) or ``holder.key``; ``before`` is what was there."""

    __slots__ = ("before", "holder", "is_item", "key", "path")

    def __init__(self, holder: Any, key: Any, path: str, is_item: bool) -> None:
        self.holder, self.key, self.path, self.is_item = holder, key, path, is_item
        self.before = self.get()

    def get(self) -> Any:
        return self.holder[self.key] if self.is_item else getattr(self.holder, self.key)

    def put(self, value: Any) -> None:
        if self.is_item:
            self.holder[self.key] = value
        else:
            object.__setattr__(self.holder, self.key, value)


def same(a: Any, b: Any) -> bool:
    """Whether a place that held ``a`` and now holds ``b`` has not changed."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, Numeric):
        return a.value is b.value or (a.is_static and b.is_static and repr(a.value) == repr(b.value))
    return type(a) in (int, float, bool, str) and a == b


class State:
    """All that a region may change: the variables that it assigns, and the ``places`` behind those that it names.

    ``labels`` name them, ``before`` is what they held before; lists of objects in this order are what regions exchange.
    """

    def __init__(
        self, names: Sequence[str], values: Sequence[Any], touched: Sequence[str], objects: Sequence[Any]
    ) -> None:
        self.places: list[Place] = []
        self._watched: list[tuple[str, Any, tuple[Any, ...]]] = []
        self._seen: set[int] = set()
        for name, value in zip(touched, objects, strict=True):
            self._visit(name, value)
        self.count = len(names)
        self.labels = [*names, *(place.path for place in self.places)]
        self.before = [*values, *(place.before for place in self.places)]

    def now(self, values: Sequence[Any], region: Any) -> list[Any]:
        """What variables and places hold at the end of a region. An error where it changed what may not change."""
        for path, holder, before in self._watched:
            now = _extent(holder)
            kind = kind_of(type(holder))
            if now != before and not (kind == "object" and _only_adds_static(holder, before)):
                raise fail(
                    f"'{path}' changes its {_WHAT.get(kind, 'contents')} in the {region}, which is staged once and "
                    "runs many times or never; assign to places that exist before the region, or make the "
                    f"{type(holder).__name__} inside"
                )
        return [*values, *(place.get() for place in self.places)]

    def changed(self) -> Iterator[Place]:
        """The places that are not as they were."""
        return (place for place in self.places if not same(place.get(), place.before))

    def restore(self, objects: Sequence[Any] | None = None) -> tuple[Any, ...]:
        """Put objects (those of ``before``) into the places, and give those of the variables back."""
        objects = self.before if objects is None else objects
        for place, value in zip(self.places, objects[self.count :], strict=True):
            if place.get() is not value:
                place.put(value)
        return tuple(objects[: self.count])

    def _visit(self, path: str, value: Any) -> None:
        kind = kind_of(type(value))
        if kind == "fixed" or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if kind in ("tuple", "callable"):
            inside = ((f"{path}[{i}]", item) for i, item in enumerate(value)) if kind == "tuple" else _captured(value)
            for name, item in inside:
                self._visit(name, item)
            return
        extent = _extent(value)
        if kind != "object" and (len(value) > TABLE or getattr(value, "nbytes", 0) > 8 * TABLE):
            return
        self._watched.append((path, value, extent))
        keys: Any = () if kind == "watched" else range(len(value)) if kind == "list" else extent
        for key in keys:
            place = Place(value, key, f"{path}.{key}" if kind == "object" else f"{path}[{key!r}]", kind != "object")
            self.places.append(place)
            self._visit(place.path, place.before)


_WHAT = {"list": "length", "dict": "keys", "object": "attributes"}


def _extent(holder: Any) -> tuple[Any, ...]:
    """What of an object cannot differ from one path to the other: its length, keys, attributes or contents."""
    if isinstance(holder, list):
        return (len(holder),)
    if isinstance(holder, (dict, set, collections.deque)):
        return tuple(holder)
    if kind_of(type(holder)) == "watched":
        return (bytes(holder),)
    listed = (base.__dict__.get("__slots__", ()) for base in type(holder).__mro__)
    slots = [name for names in listed for name in ((names,) if isinstance(names, str) else names)]
    return (*getattr(holder, "__dict__", ()), *(n for n in slots if n != "__dict__" and hasattr(holder, n)))


def _only_adds_static(holder: Any, before: tuple[Any, ...]) -> bool:
    """Whether an object got attributes that hold nothing of the program, such as a layout that it keeps."""
    new = [name for name in _extent(holder) if name not in before]
    return len(new) == len(_extent(holder)) - len(before) and not any(
        run_time.spec_of(getattr(holder, name), promote=False).types() for name in new
    )


def _captured(function: Any) -> Iterator[tuple[str, Any]]:
    """The objects that a function, method or partial brings along, by name."""
    if isinstance(function, MethodType):
        yield from (("self", function.__self__), ("method", function.__func__))
    elif isinstance(function, functools.partial):
        yield from (("partial", item) for item in (function.func, *function.args, *function.keywords.values()))
    else:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        yield from ((name, cell.cell_contents) for name, cell in cells if cell != CellType())
