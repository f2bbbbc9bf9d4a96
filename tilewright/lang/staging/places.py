"""What a region may change behind a name: the contents of mutable objects that it can reach.

A *place* is a list's element, a dict's value, an attribute of a user's object or a variable in a function's closure.
Before a region, the places behind the variables that its body names are remembered; after it, those that hold
something else are known. Objects of ours that cannot change (layouts, tensors, numerics) are not entered, nor are
tables longer than any program's state. What changes in another way (the length of a list, the keys of a dict, sets,
NumPy arrays) cannot differ from one path of a program to the other: that is an error.
"""

from __future__ import annotations

import collections
import enum
import functools
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tilewright.ir.core import Value
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.staging.location import fail
from tilewright.lang.staging.undefined import Undefined

MISSING = object()
TABLE = 1024
"""A longer list or dict is a table of constants: nobody carries its elements."""
_STATIC_PACKAGES = ("layout", "ir", "atoms", "lang", "errors", "cute")
_FOREIGN = frozenset("builtins numpy torch cuda functools types enum typing collections abc pathlib".split())
"""Packages whose objects hold no run-time values of ours."""
_CALLABLES = (types.FunctionType, types.MethodType, functools.partial)


def _kind_of(cls: type) -> str:
    """What instances are to a region: ``list``, ``dict``, ``tuple``, ``callable`` (entered for its closure), ``object``
    (has attributes), ``watched`` (may not change) or ``fixed`` (cannot)."""
    if issubclass(cls, (list, dict, tuple)):
        return next(kind.__name__ for kind in (list, dict, tuple) if issubclass(cls, kind))
    if cls in _CALLABLES or getattr(cls, "marks_function", False):
        return "callable"
    if issubclass(cls, (set, collections.deque, bytearray)) or cls is getattr(sys.modules.get("numpy"), "ndarray", 0):
        return "watched"
    frozen = getattr(getattr(cls, "__dataclass_params__", None), "frozen", False)
    if issubclass(cls, (Numeric, Value, Undefined, type, enum.Enum, BaseException, types.ModuleType)) or frozen:
        return "fixed"
    packages = cls.__module__.split(".")
    if packages[0] in _FOREIGN or (packages[0] == "tilewright" and packages[1:2] and packages[1] in _STATIC_PACKAGES):
        return "fixed"
    return "object" if cls.__dictoffset__ or slots_of(cls) else "fixed"


def _slots_of(cls: type) -> list[str]:
    """The names of the slots that instances have."""
    listed = (base.__dict__.get("__slots__", ()) for base in cls.__mro__)
    names = [name for slots in listed for name in ((slots,) if isinstance(slots, str) else slots)]
    return [name for name in names if name not in ("__dict__", "__weakref__")]


kind_of: Callable[[Any], str] = functools.cache(_kind_of)
slots_of: Callable[[Any], list[str]] = functools.cache(_slots_of)


class Place:
    """``holder[key]`` (an item) or ``holder.key``; ``before`` is what was there, MISSING if nothing was."""

    __slots__ = ("before", "holder", "is_item", "key", "path")

    def __init__(self, holder: Any, key: Any, path: str, is_item: bool) -> None:
        self.holder, self.key, self.path, self.is_item = holder, key, path, is_item
        self.before = self.get()

    def get(self) -> Any:
        try:
            return self.holder[self.key] if self.is_item else getattr(self.holder, self.key)
        except (LookupError, AttributeError, ValueError):  # ValueError: a closure's variable that is not set yet
            return MISSING

    def put(self, value: Any) -> None:
        if self.is_item:
            self.holder[self.key] = value
        elif value is not MISSING:
            object.__setattr__(self.holder, self.key, value)
        elif self.get() is not MISSING:
            object.__delattr__(self.holder, self.key)


def same(a: Any, b: Any) -> bool:
    """Whether a place that held ``a`` and now holds ``b`` has not changed."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, Numeric):
        return a.value is b.value or (a.is_static and b.is_static and repr(a.value) == repr(b.value))
    return type(a) in (int, float, bool, str) and a == b


class Reachable:
    """The ``places`` behind the objects of some named variables.

    ``own`` are the variables of the region itself, with their values: it assigns them, and need not look for them in
    the closures of functions.
    """

    def __init__(self, roots: Iterable[tuple[str, Any]], own: Iterable[tuple[str, Any]] = ()) -> None:
        self.places: list[Place] = []
        self._watched: list[tuple[str, Any, tuple[Any, ...]]] = []
        self._objects: list[tuple[Any, frozenset[str]]] = []
        self._own = dict(own)
        self._seen: set[int] = set()
        for name, value in roots:
            self._visit(name, value)

    def check(self, region: Any) -> None:
        """Raise where the region changed what may not change."""
        for path, holder, before in self._watched:
            now = _extent(holder)
            if len(now) == len(before) and all(a is b or a == b for a, b in zip(now, before, strict=True)):
                continue
            what = {"list": "length", "dict": "keys"}.get(kind_of(type(holder)), "contents")
            advice = "" if what == "contents" else "assign to places that exist before the region, or "
            raise fail(
                f"'{path}' changes its {what} in the {region}, which is staged once and runs many times or never; "
                f"{advice}make the {type(holder).__name__} inside"
            )

    def changed(self) -> Iterator[Place]:
        """The places that are not as they were."""
        return (place for place in self.places if not same(place.get(), place.before))

    def new_attributes(self) -> list[tuple[Any, str]]:
        """Attributes that the objects did not have before, as pairs of object and name."""
        return [(thing, name) for thing, known in self._objects for name in vars(thing).keys() - known]

    def _place(self, holder: Any, key: Any, path: str, item: Any, is_item: bool = False) -> None:
        self.places.append(Place(holder, key, path, is_item))
        self._visit(path, item)

    def _visit(self, path: str, value: Any) -> None:
        kind = kind_of(type(value))
        if kind == "fixed" or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if kind == "tuple":
            for i, item in enumerate(value):
                self._visit(f"{path}[{i}]", item)
        elif kind == "callable":
            self._visit_callable(path, value)
        elif kind == "object":
            own = getattr(value, "__dict__", None)
            if own is not None:
                self._objects.append((value, frozenset(own)))
            for key in [*(own or ()), *slots_of(type(value))]:
                self._place(value, key, f"{path}.{key}", getattr(value, key, MISSING))
        elif len(value) <= TABLE and (kind != "watched" or getattr(value, "nbytes", 0) <= 8 * TABLE):
            self._watched.append((path, value, _extent(value)))
            items: Iterable[Any] = () if kind == "watched" else enumerate(value) if kind == "list" else value.items()
            for key, item in list(items):
                self._place(value, key, f"{path}[{key!r}]", item, is_item=True)

    def _visit_callable(self, path: str, value: Any) -> None:
        if isinstance(value, types.MethodType):
            self._visit(f"{path}.__self__", value.__self__)
            self._visit(path, value.__func__)
        elif isinstance(value, functools.partial):
            for i, item in enumerate((value.func, *value.args, *value.keywords.values())):
                self._visit(f"{path}.args[{i}]", item)
        else:
            function = getattr(value, "function", value)
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
                item = getattr_of_cell(cell)
                if name not in self._own or self._own[name] is not item:
                    self._place(cell, "cell_contents", name, item)


def getattr_of_cell(cell: types.CellType) -> Any:
    """What a closure's variable holds; MISSING before it is assigned."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _extent(holder: Any) -> tuple[Any, ...]:
    """What of a container cannot differ from one path to the other."""
    if isinstance(holder, list):
        return (len(holder),)
    return tuple(holder) if isinstance(holder, (dict, set, collections.deque)) else (bytes(holder),)


class State:
    """All that a region may change: the variables that it assigns, and the places that it reaches.

    ``labels`` name them, ``before`` is what they held before; lists of objects in this order are what regions exchange.
    """

    def __init__(
        self, names: Sequence[str], values: Sequence[Any], touched: Sequence[str], objects: Sequence[Any]
    ) -> None:
        self.reach = Reachable(zip(touched, objects, strict=True), zip(names, values, strict=True))
        self.count = len(names)
        self.labels = [*names, *(place.path for place in self.reach.places)]
        self.before = [*values, *(place.before for place in self.reach.places)]

    def now(self, values: Sequence[Any], region: Any) -> list[Any]:
        """What variables and places hold at the end of a region, which may not have changed anything else."""
        self.reach.check(region)
        return [*values, *(place.get() for place in self.reach.places)]

    def restore(self, objects: Sequence[Any] | None = None) -> tuple[Any, ...]:
        """Put objects (those of ``before``) into the places, and give those of the variables back."""
        objects = self.before if objects is None else objects
        for place, value in zip(self.reach.places, objects[self.count :], strict=True):
            if place.get() is not value:
                place.put(value)
        return tuple(objects[: self.count])
