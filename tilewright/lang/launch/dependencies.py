"""What a program was staged from besides its arguments: when it changes, the program must be staged again.

Functions read globals and closure variables, those of the plain functions that they call included, and attributes of
modules of the user's. Whether such a variable holds the same object is quickly seen; of objects whose contents may
change (lists, dicts, the user's objects and classes) a *snapshot* is compared as well: their plain values, typed, for
``1`` and ``1.0`` make different programs.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from tilewright.lang.launch.jit import JitFunction
from tilewright.lang.launch.kernel import KernelFunction
from tilewright.lang.staging.build import names_of
from tilewright.lang.staging.location import is_user_file
from tilewright.lang.staging.objects import same_static
from tilewright.lang.staging.places import kind_of, slots_of

DEPTH, LONGEST = 4, 256
"""Snapshots go this deep, and into containers up to this long."""
_PLAIN = (int, bool, str, bytes, type(None))
_CONTAINERS = ("list", "dict", "object")


class Variable(NamedTuple):
    """A global or closure variable with the value that it had; ``scope`` is a namespace or a closure's cell."""

    scope: Any
    name: str
    value: Any

    def holds(self) -> bool:
        now = self.scope.get(self.name, self) if isinstance(self.scope, dict) else _contents(self.scope)
        return now is self.value or (type(now) in (*_PLAIN, float, tuple) and snapshot(now) == snapshot(self.value))


class Outside:
    """The ``variables`` of some functions, and what those of them that may change inside contain.

    With ``before``, which was made before the functions were staged: what staging changed is left out. A function that
    counts how often it is staged does not depend on the count.
    """

    def __init__(self, functions: Iterable[FunctionType], before: Outside | None = None) -> None:
        self._found: dict[tuple[int, str], Variable] = {}
        self._seen: set[FunctionType] = set()
        for function in functions:
            self._read(function)
        self.variables = list(self._found.values())
        self.moving = [v.value for v in self.variables if moves(v.value)]
        if before is not None:
            changed = {id(v) for v, was in zip(before.moving, before.contents, strict=True) if snapshot(v) != was}
            self.moving = [value for value in self.moving if id(value) not in changed]
        self.contents: list[Any] = self.contain()

    def contain(self) -> list[Any]:
        return [snapshot(value) for value in self.moving]

    def holds(self) -> bool:
        return all(v.holds() for v in self.variables) and (not self.moving or self.contain() == self.contents)

    def _read(self, function: FunctionType) -> None:
        if function in self._seen:
            return
        self._seen.add(function)
        names = names_of(function.__code__)
        for name in names & function.__globals__.keys():
            self._add(function.__globals__, name, function.__globals__[name], names)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._add(cell, name, _contents(cell), names)
        if function.__defaults__ or function.__kwdefaults__:
            self._add(_Defaults(function), "", _defaults(function), names)

    def _add(self, scope: Any, name: str, value: Any, names: set[str]) -> None:
        self._found.setdefault((id(scope), name), Variable(scope, name, value))
        value = value.function if isinstance(value, JitFunction | KernelFunction) else value
        if type(value) is FunctionType and is_user_file(value.__code__.co_filename):
            self._read(value)
        elif isinstance(value, ModuleType) and is_user_file(getattr(value, "__file__", None) or "<module>"):
            for attribute in names & vars(value).keys():
                if (id(vars(value)), attribute) not in self._found:
                    self._add(vars(value), attribute, vars(value)[attribute], names)


class _Defaults:
    """The default values of a function, in the manner of a closure's cell."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function

    @property
    def cell_contents(self) -> Any:
        return _defaults(self.function)


def _defaults(function: FunctionType) -> Any:
    if function.__kwdefaults__:
        return (*(function.__defaults__ or ()), *function.__kwdefaults__.items())
    return function.__defaults__


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


class Same:
    """An object that equals itself, and equal ones where its contents cannot change (a layout). It is kept alive, so
    that no other takes its place."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        if type(other) is not Same:
            return False
        mine, its = self.thing, other.thing
        return mine is its or (_kind(type(mine)) == "fixed" and same_static(mine, its))

    __hash__ = None  # type: ignore[assignment]


def moves(value: Any) -> bool:
    """Whether a variable can hold the same object and yet something else."""
    if isinstance(value, type):
        return bool(_plain_attributes(value))
    inside = _kind(type(value))
    return inside in _CONTAINERS or (inside == "tuple" and any(map(moves, value)))


def _find_kind(cls: type) -> str:
    """As :func:`~tilewright.lang.staging.places.kind_of`; objects of our own are what they were made as."""
    return "fixed" if cls.__module__.partition(".")[0] == "tilewright" else kind_of(cls)


_kind: Callable[[Any], str] = functools.cache(_find_kind)


def snapshot(value: Any, depth: int = DEPTH) -> Any:
    """What a value holds now, for comparison with what it holds later.

    >>> snapshot([1, 2.0]) == snapshot([1, 2.0]), snapshot([1]) == snapshot([True]), snapshot(0.0) == snapshot(-0.0)
    (True, False, False)
    """
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if kind is float:
        return value.hex()
    if isinstance(value, type):
        return Same(value), [snapshot(getattr(value, name, None), 0) for name in _plain_attributes(value)]
    inside = _kind(kind)
    if depth and (inside in _CONTAINERS or inside == "tuple"):
        inner = depth - 1
        if inside in ("list", "tuple"):
            if len(value) <= LONGEST:
                return kind, [snapshot(item, inner) for item in value]
        elif inside == "dict":
            if len(value) <= LONGEST:
                return kind, [(snapshot(k, inner), snapshot(item, inner)) for k, item in value.items()]
        else:
            own = [(name, snapshot(item, inner)) for name, item in getattr(value, "__dict__", {}).items()]
            slots = [snapshot(getattr(value, name, None), inner) for name in slots_of(kind)]
            return Same(value), own, slots, snapshot(kind, inner)
    return Same(value)


def _find_plain_attributes(cls: type) -> tuple[str, ...]:
    """The attributes of a class of the user's that hold plain values."""
    ours = cls.__module__.partition(".")[0] in ("tilewright", "builtins") or issubclass(cls, enum.Enum)
    listed = [] if ours else [base for base in cls.__mro__ if base.__module__ != "builtins"]
    names = (n for base in listed for n, v in vars(base).items() if type(v) in (int, bool, float))
    return tuple(sorted({n for n in names if not n.startswith("__")}))


_plain_attributes: Callable[[Any], tuple[str, ...]] = functools.cache(_find_plain_attributes)
