"""What a region may change: the variables that it assigns, and what lies behind the objects that it names.

A *place* is a list's element, a dict's value or an attribute of a user's object. Before a region, the places behind
the variables that its body names are remembered; after it, those that hold something else are carried as variables are.
Functions are entered for what their closures hold and which global objects they name. What cannot differ from one path
of a program to the other (the length of a list, the keys of a dict, which attributes an object has, the elements of a
set or deque, NumPy arrays) may not change: that is an error. Objects that cannot change (layouts, tensors, numerics)
are not entered, nor are tables longer than any state.
"""

from __future__ import annotations

import collections
import enum
import functools
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import CellType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

from tilewright.ir.core import Value
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.staging import values as run_time
from tilewright.lang.staging.location import counts_as_user, fail
from tilewright.lang.staging.objects import codec, has_protocol, is_record, labels_of
from tilewright.lang.staging.source import names_of
from tilewright.lang.staging.undefined import Undefined

TABLE = 1024
"""A longer list or dict is a table of constants: nobody carries its elements."""
_STATIC_PACKAGES = ("layout", "ir", "atoms", "lang", "errors", "cute")
_FOREIGN = frozenset("builtins numpy torch cuda enum typing abc pathlib".split())
"""Packages whose objects hold no run-time values of ours."""
_FIXED = (Numeric, Value, Undefined, enum.Enum, BaseException, ModuleType)
_WHOLE = (set, collections.deque, bytearray)
_ENTERED = (tuple, frozenset, MappingProxyType)
_CALLABLE = (FunctionType, MethodType, functools.partial)


def _kind_of(cls: type) -> str:
    """What instances are to a region: ``list``, ``dict``, ``object`` (their elements or attributes are places),
    ``watched`` (may not change), ``entered`` (cannot change, but what they hold can), ``callable`` (entered for its
    closure), ``class`` (its attributes may not change), ``iterator`` (may not be named: it changes unseen) or ``fixed``
    (cannot change)."""
    if issubclass(cls, (list, dict)):
        return "list" if issubclass(cls, list) else "dict"
    if issubclass(cls, _CALLABLE) or hasattr(cls, "marked"):
        return "callable"
    if issubclass(cls, _WHOLE) or cls is getattr(sys.modules.get("numpy"), "ndarray", 0):
        return "watched"
    if issubclass(cls, type):
        return "class"
    packages = cls.__module__.split(".")
    ours = packages[0] == "tilewright" and packages[1:2] and packages[1] in _STATIC_PACKAGES
    if issubclass(cls, _ENTERED) or (is_frozen(cls) and not ours):
        return "entered"
    if issubclass(cls, Iterator):
        return "iterator"
    fixed = issubclass(cls, _FIXED) or ours or packages[0] in _FOREIGN or getattr(cls, "__carry_immutable__", False)
    return "fixed" if fixed or not (cls.__dictoffset__ or hasattr(cls, "__slots__")) else "object"


def is_frozen(cls: type) -> bool:
    """Whether instances are dataclasses whose fields cannot be assigned."""
    return bool(getattr(getattr(cls, "__dataclass_params__", None), "frozen", False))


kind_of: Callable[[Any], str] = functools.cache(_kind_of)


ONE_OF_TWO = (
    "it is one of two objects that can change, and only the running program knows which; take a copy of each "
    "(`list(x)`, `x.clone()`), or choose between their numbers"
)


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
    return type(a) in (int, float, bool, str, bytes) and a == b


class State:
    """All that a region may change: the variables that it assigns, and the ``places`` behind those that it names.

    ``labels`` name them, ``before`` is what they held before; lists of objects in this order are what regions exchange.
    """

    def __init__(
        self, names: Sequence[str], values: Sequence[Any], touched: Sequence[str], objects: Sequence[Any]
    ) -> None:
        self.places: list[Place] = []
        self._watched: list[tuple[str, Any, tuple[Any, ...]]] = []
        self._seen: dict[int, Any] = {}
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
            kept = len(now) == len(before) and all(map(same, now, before))
            if not kept and not (kind == "object" and _only_adds_static(holder, before)):
                made = "keep it in an object" if kind == "class" else f"make the {type(holder).__name__} inside"
                raise fail(
                    f"'{path}' changes its {_WHAT.get(kind, 'contents')} in the {region}, which is staged once and "
                    f"runs many times or never; assign to places that exist before the region, or {made}"
                )
        return [*values, *(place.get() for place in self.places)]

    def end(self, values: Sequence[Any], region: Any) -> tuple[list[Any], list[Any]]:
        """The same for a region after which the places are restored; and again, with copies of what changes then."""
        now = self.now(values, region)
        return now, [detached(value) for value in now] if any(True for _ in self.changed()) else list(now)

    def moves(self, value: Any, before: Any) -> bool:
        """Whether ``value``, which is where ``before`` was, is or holds an object of before the region that can change
        and was elsewhere: it goes by two names now, and what is written to one of them shows under the other."""
        kind = kind_of(type(value))
        if value is before or kind in ("fixed", "callable", "class"):
            return False
        if kind != "entered" and id(value) in self._seen:
            return True
        if not isinstance(value, (tuple, list, dict)) and not is_record(value):
            return False
        split, _ = codec(value)
        alike = type(before) is type(value) and labels_of(before) == labels_of(value)
        olds = split(before) if alike else [None] * len(split(value))
        return any(map(self.moves, split(value), olds))

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
        self._seen[id(value)] = value
        if kind == "class":
            if value.__module__.partition(".")[0] not in ("tilewright", *_FOREIGN):
                self._watched.append((path, value, _extent(value)))
            return
        if kind == "iterator":
            raise fail(f"'{path}' is an iterator from outside the region: it would advance once, while staging; take a "
                       "list of its items, or make it inside")  # fmt: skip
        if kind in ("entered", "callable"):
            for name, item in _captured(value) if kind == "callable" else _inside(path, value):
                self._visit(name, item)
            return
        if kind != "object" and (len(value) > TABLE or getattr(value, "nbytes", 0) > 8 * TABLE):
            return
        extent = _extent(value)
        self._watched.append((path, value, extent))
        if isinstance(value, (set, collections.deque)):
            for name, item in _inside(path, value):
                self._visit(name, item)
        if kind == "object":
            self._visit(type(value).__name__, type(value))
            for name, scope in globals_of(type(value)):
                self._visit(name, scope.get(name))
        keys: Any = () if kind == "watched" else range(len(value)) if kind == "list" else extent
        for key in keys:
            place = Place(value, key, f"{path}.{key}" if kind == "object" else f"{path}[{key!r}]", kind != "object")
            self.places.append(place)
            self._visit(place.path, place.before)


_WHAT = {"list": "length", "dict": "keys", "object": "attributes", "class": "attributes"}


def _extent(holder: Any) -> tuple[Any, ...]:
    """What of an object cannot differ from one path to the other: its length, keys, attributes or contents."""
    if isinstance(holder, list):
        return (len(holder),)
    if isinstance(holder, (dict, set, collections.deque)):
        return tuple(holder)
    if isinstance(holder, type):
        return tuple(value for name, value in vars(holder).items() if not name.startswith("__"))  # Python keeps notes
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


def _inside(path: str, holder: Any) -> Iterator[tuple[str, Any]]:
    """The objects that a tuple, set, deque, read-only dict or frozen dataclass holds, by name."""
    if is_frozen(type(holder)):
        return ((f"{path}.{name}", getattr(holder, name)) for name in _extent(holder))
    if isinstance(holder, MappingProxyType):
        return ((f"{path}[{key!r}]", value) for key, value in holder.items())
    return ((f"{path}[{i}]", item) for i, item in enumerate(holder))


def _captured(function: Any) -> Iterator[tuple[str, Any]]:
    """The objects that a function, method or partial brings along, by name."""
    if isinstance(function, MethodType):
        yield from (("self", function.__self__), ("method", function.__func__))
    elif isinstance(function, functools.partial):
        yield from (("partial", item) for item in (function.func, *function.args, *function.keywords.values()))
    elif not isinstance(function, FunctionType):
        yield function.function.__name__, function.function
    else:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        yield from ((name, cell.cell_contents) for name, cell in cells if cell != CellType())
        yield from ((name, scope[name]) for name, scope in globals_of(function) if name in scope)


def has_code(value: Any) -> bool:
    """Whether a value is a function, marked or not, or a class of them."""
    return isinstance(value, (FunctionType, property, type)) or hasattr(type(value), "marked")


_GLOBALS: weakref.WeakKeyDictionary[Any, tuple[tuple[str, dict[str, Any]], ...]] = weakref.WeakKeyDictionary()


def globals_of(owner: Any) -> tuple[tuple[str, dict[str, Any]], ...]:
    """The global variables that a function of the user's (or the methods of a class), and the functions and classes
    that it names, could change the contents of: each with its namespace."""
    known = _GLOBALS.get(owner)
    if known is None:
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


def detached(value: Any) -> Any:
    """A copy of an object that is not changed by what is put into its places or those of its parts."""
    if isinstance(value, (tuple, list, dict)) or is_record(value):
        split, make = codec(value)
        return make([detached(item) for item in split(value)])
    if has_protocol(value) and kind_of(type(value)) == "object":
        return value.__new_from_mlir_values__(value.__extract_mlir_values__())
    return value
