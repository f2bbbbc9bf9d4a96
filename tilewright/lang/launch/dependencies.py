"""The state that a program was staged from besides its arguments: when it changes, the program must be staged again.

Followed are the staged functions and the user's plain functions that they can call, whose names they mention: globals,
closures, functions of the user's modules, methods of the user's classes, what decorators, partials, properties and
containers hold. Of each function its code, defaults, attributes, and the globals and closure variables that it reads
are compared; of each object that is reached (``self`` and other ``Constexpr`` arguments included) the elements or
attributes, and those of the objects in it. A value has changed when another object is there that is not equal to the
old one. Names in texts count as mentioned (``getattr(module, "name")``); where a function reads variables by names that
it makes, all of the modules that it reaches are compared.

Settings of the environment that Tilewright itself asks while it stages are compared for every function.

Not compared are the numbers in arrays, what objects of Tilewright and of other packages hold, and what is behind
the first :data:`MOST` objects.
"""

from __future__ import annotations

import builtins
import functools
import operator
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CellType, FunctionType, ModuleType
from typing import Any, NamedTuple

from tilewright.lang.arguments.arrays import is_array
from tilewright.lang.launch.marked import MarkedFunction
from tilewright.lang.staging.class_modules import module_of
from tilewright.lang.staging.contents import (
    CLASS,
    EMPTY,
    MODEL,
    Held,
    Store,
    is_lasting_state,
    is_users,
    stores_of,
    users_bases,
)
from tilewright.lang.staging.location import is_user_file
from tilewright.lang.staging.objects import same_static
from tilewright.lang.staging.source import names_in_texts, names_of

MOST = 1000
ABSENT = object()
_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_CALLED = (FunctionType, MarkedFunction, staticmethod, classmethod, property, functools.cached_property)
"""Members of classes that are followed where their names are mentioned."""
_CONSTRUCTION = ("__init__", "__new__", "__post_init__", "__init_subclass__")
_ENVIRONMENT = ("environ", "getenv")
SETTINGS = ("CUTE_DSL_ARCH", "TILEWRIGHT_OUTSIDE_REGISTERS")
"""The variables of the environment that what Tilewright offers to programs reads: architectures, figures of the GPU."""
_BY_TEXT = frozenset(("getattr", "vars", "dir", "eval", "exec", "globals", "attrgetter", "getmembers", "__dict__"))
"""What reads variables by names that the program makes: of modules all are compared then."""
_OF_SCOPE = frozenset(("eval", "exec", "globals"))
"""The names among these that read variables of the function's own module."""
_PARTS = operator.attrgetter("__code__", "__defaults__", "__kwdefaults__")
_ATTRIBUTES = operator.attrgetter("__dict__")


class Entry(NamedTuple):
    """What ``read(holder)`` gave under the keys that are compared. ``keys`` are all keys that there were; None where
    others may come and go, as staging itself put some there. ``word`` tells the entries of one holder apart."""

    holder: Any
    word: str
    read: Callable[[Any], Held]
    held: Held
    keys: frozenset[Any] | None

    def changed(self) -> bool:
        try:
            now = self.read(self.holder)
        except Exception:  # it has become something that cannot be read
            return True
        if self.keys is not None and now.keys() != self.keys:
            return True
        return not all(_same(now.get(key, ABSENT), value) for key, value in self.held.items())


class Dependencies:
    """What some functions read, and objects of the program (``values``) hold now.

    With ``before``, which was made before the functions were staged: what staging itself changed (an attribute of
    ``self``, a list of what was staged) is not compared.
    """

    def __init__(
        self, functions: Iterable[FunctionType], values: Iterable[Any], before: Dependencies | None = None
    ) -> None:
        self._before = before._held() if before is not None else {}
        self._members: dict[int, Any] = {}
        self._entries: list[Entry] = []
        self._names: set[str] = set()
        """All names that the functions mention."""
        self._texts: set[str] = set()
        """The names among them that occur in texts: a module may get such a variable later."""
        self._namespaces: list[tuple[Any, bool]] = []
        """Modules and classes, of which members are followed by name; True: a class of which objects are made."""
        self._identities = Identities()
        self._entries.append(_entry(os.environ, _settings))
        encoded = [os.environ.encodekey(name) for name in SETTINGS]
        self._identities.add_variables(os.environ._data, encoded)  # type: ignore[attr-defined]  # as it is, not decoded
        for function in functions:
            self._add_function(function)
        self._follow([*values])
        self._follow_names()
        self._before = {}

    def hold(self) -> bool:
        """Whether everything is as it was."""
        return self._identities.same() or not any(entry.changed() for entry in self._entries)

    def changed(self) -> list[Any]:
        """The objects whose elements, attributes or variables are not as they were."""
        return [entry.holder for entry in self._entries if entry.changed()]

    def holders(self) -> list[Any]:
        """All objects that are compared."""
        return [entry.holder for entry in self._entries]

    def _held(self) -> dict[tuple[int, str], Entry]:
        return {(id(entry.holder), entry.word): entry for entry in self._entries}

    # -- the walk ------------------------------------------------------------------------------------------------------

    def _follow(self, values: list[Any]) -> None:
        """Add objects and what they hold."""
        waiting = [*values]
        while waiting:
            value = waiting.pop()
            if isinstance(value, MarkedFunction):
                value = value.function
            if type(value) in _PLAIN or id(value) in self._members or len(self._members) >= MOST:
                continue
            if isinstance(value, FunctionType):
                if is_user_file(value.__code__.co_filename):
                    self._add_function(value)
            elif isinstance(value, functools._lru_cache_wrapper):
                waiting.append(value.__wrapped__)
            elif isinstance(value, ModuleType):
                if is_users(value):
                    self._members[id(value)] = value
                    self._namespaces.append((value, False))
            elif isinstance(value, type):
                self._add_class(value, True)
            else:
                waiting += self._add_object(value)

    def _add_function(self, function: FunctionType) -> None:
        if id(function) in self._members:
            return
        self._members[id(function)] = function
        texts, scope = names_in_texts(function.__code__), function.__globals__
        names = names_of(function.__code__) | texts
        self._texts |= texts
        if names & _OF_SCOPE:
            names = names | _variables(scope).keys()
            self._add_variables(scope)
        self._names |= names
        read = [name for name in names if name in scope or hasattr(builtins, name)]
        cells = function.__closure__ or ()
        self._identities.add_function(function, read)
        self._entries.append(_entry(function, _of_function))
        self._entries.append(_entry(scope, functools.partial(_of_scope, read)))
        self._entries += [_entry(cell, _of_cell) for cell in cells]
        if names.intersection(_ENVIRONMENT):
            self._entries.append(_entry(os.environ, dict))
            self._identities.add_table(os.environ._data)  # type: ignore[attr-defined]  # as it is, not decoded
        globals_read = [scope[name] for name in read if name in scope]
        globals_read += [
            sys.modules[name] for name in names if name in sys.modules and name not in scope
        ]  # imported inside
        globals_read += [cell.cell_contents for cell in cells if cell != EMPTY]
        globals_read += [
            *(function.__defaults__ or ()),
            *(function.__kwdefaults__ or {}).values(),
            *vars(function).values(),
        ]
        self._follow(globals_read)

    def _add_class(self, cls: type, made: bool) -> None:
        """A class, and its bases. ``made``: the program can make objects of it."""
        if _package(cls) == "tilewright" or not users_bases(cls):
            return
        if id(cls) in self._members:
            self._namespaces += [(cls, True)] if made and (cls, True) not in self._namespaces else []
            return
        self._members[id(cls)] = cls
        self._namespaces.append((cls, made))
        for base in users_bases(cls):
            self._identities.add_table(vars(base))
        self._follow([value for value in self._compare(cls, CLASS, CLASS.read) if not isinstance(value, _CALLED)])

    def _add_object(self, value: Any) -> list[Any]:
        """Compare an object, if it can change; what it holds."""
        cls, parts = type(value), list[Any]()
        package = _package(cls)
        if is_array(value) or package in ("tilewright", "numpy", "jaxlib"):
            return []
        self._members[id(value)] = value
        for store in filter(is_lasting_state, stores_of(cls)):
            read = dict.fromkeys if isinstance(value, (set, frozenset)) else store.read
            try:
                read(value)
            except Exception:  # it is not initialised yet, say
                continue
            held = self._compare(value, store, read)
            parts += held if store is not MODEL else ()
            self._identities.add_object(value, store, read)
        self._add_class(cls, False)
        return parts

    def _follow_names(self) -> None:
        """Follow members of modules and classes that the functions mention, which may mention others."""
        seen: set[tuple[int, str]] = set()
        count = -1
        while count != len(seen):
            count = len(seen)
            for holder, made in [*self._namespaces]:
                bases = [holder] if isinstance(holder, ModuleType) else users_bases(holder)
                for base in bases:
                    members = {n: v for n, v in [*vars(base).items()] if self._is_mentioned(n, holder, made)}
                    fresh = [(n, v) for n, v in members.items() if (id(base), n) not in seen]
                    seen.update((id(base), n) for n, _ in fresh)
                    self._follow([v for _, v in fresh])
        for holder, _ in self._namespaces:
            if isinstance(holder, ModuleType):
                if self._names & _BY_TEXT:
                    self._add_variables(vars(holder))
                    continue
                read = sorted(self._texts | (self._names & vars(holder).keys()))
                self._entries.append(_entry(vars(holder), functools.partial(_of_scope, read)))
                self._identities.add_variables(vars(holder), read)

    def _add_variables(self, scope: dict[str, Any]) -> None:
        """Compare all variables of a module, and which there are."""
        self._entries.append(_entry(scope, _variables))
        self._identities.add_table(scope)

    def _is_mentioned(self, name: str, holder: Any, made: bool) -> bool:
        special = isinstance(holder, type) and name.startswith("__") and (made or name not in _CONSTRUCTION)
        if isinstance(holder, ModuleType) and self._names & _BY_TEXT and not name.startswith("__"):
            return True
        return special or name in self._names

    def _compare(self, holder: Any, store: Store, read: Callable[[Any], Held]) -> list[Any]:
        """Note what an object holds, without what staging changed, and give it back."""
        now = read(holder)
        keys: frozenset[Any] | None = frozenset(now)
        before = self._before.get((id(holder), store.word))
        if before is not None:
            if before.keys != keys:
                if store.word != "attributes" and not isinstance(holder, dict):  # elements have other places then
                    return []
                keys = None
            now = {key: value for key, value in now.items() if key in before.held and _same(before.held[key], value)}
        self._entries.append(Entry(holder, store.word, read, now, keys))
        return list(now.values())


class Identities:
    """All objects that the entries hold. As long as they are the same, nothing has changed: this is asked first, as it
    takes a tenth of the time of comparing the entries."""

    def __init__(self) -> None:
        self.functions: list[tuple[FunctionType, Any, Any, Any]] = []
        self.bare: list[FunctionType] = []
        """Functions without attributes."""
        self.variables: list[tuple[Callable[..., Any], str, Any]] = []
        """The ``get`` of a scope, a name and what it gave."""
        self.cells: list[tuple[CellType, Any]] = []
        self.empty: list[CellType] = []
        self.tables: list[tuple[Mapping[Any, Any], list[Any], list[Any]]] = []
        """Dicts and the variables of classes, with their keys and values."""
        self.sequences: list[tuple[Sequence[Any], list[Any]]] = []
        self.objects: list[tuple[Any, type, list[Any], list[Any]]] = []
        self.others: list[tuple[Any, Callable[[Any], Held], list[Any], list[Any]]] = []

    def add_function(self, function: FunctionType, read: list[str]) -> None:
        self.functions.append((function, *_PARTS(function)))
        self.add_variables(function.__globals__, read)
        for cell in function.__closure__ or ():
            if cell == EMPTY:
                self.empty.append(cell)
            else:
                self.cells.append((cell, cell.cell_contents))
        for table in filter(None, (function.__kwdefaults__, function.__dict__)):
            self.add_table(table)
        self.bare += [] if function.__dict__ else [function]

    def add_variables(self, scope: dict[str, Any], names: Iterable[str]) -> None:
        self.variables += [(scope.get, name, scope.get(name, ABSENT)) for name in names]

    def add_table(self, table: Mapping[Any, Any]) -> None:
        self.tables.append((table, *_parts_of(table)))

    def add_object(self, value: Any, store: Store, read: Callable[[Any], Held]) -> None:
        """The simplest way to what the store holds."""
        cls = type(value)
        if cls is list:
            self.sequences.append((value, [*value]))
        elif cls is dict:
            self.add_table(value)
        elif (
            store.word == "attributes" and cls.__dictoffset__ and not any(vars(b).get("__slots__") for b in cls.__mro__)
        ):
            self.objects.append((value, cls, *_parts_of(vars(value))))
        elif cls not in (tuple, frozenset):
            self.others.append((value, read, *_parts_of(read(value))))

    def same(self) -> bool:
        try:
            return self._same()
        except Exception:  # a variable or slot has no value any more: the entries tell
            return False

    def _same(self) -> bool:
        for get, name, value in self.variables:
            if get(name, ABSENT) is not value:
                return False
        for function, code, defaults, keywords in self.functions:
            if function.__code__ is not code or function.__defaults__ is not defaults:
                return False
            if function.__kwdefaults__ is not keywords:
                return False
        for cell, value in self.cells:
            if cell.cell_contents is not value:
                return False
        return (
            not any(map(EMPTY.__ne__, self.empty))
            and not any(map(_ATTRIBUTES, self.bare))
            and all([_is_like(table, keys, values) for table, keys, values in self.tables])
            and all([len(x) == len(items) and all(map(operator.is_, x, items)) for x, items in self.sequences])
            and all([type(x) is cls and _is_like(vars(x), keys, values) for x, cls, keys, values in self.objects])
            and all([_is_like(read(x), keys, values) for x, read, keys, values in self.others])
        )


def _settings(environment: Mapping[str, str]) -> Held:
    return {name: environment.get(name) for name in SETTINGS}


def _parts_of(table: Mapping[Any, Any]) -> tuple[list[Any], list[Any]]:
    return [*table], [*table.values()]


def _is_like(table: Mapping[Any, Any], keys: list[Any], values: list[Any]) -> bool:
    return (
        len(table) == len(keys)
        and all(map(operator.is_, table, keys))
        and all(map(operator.is_, table.values(), values))
    )


def _entry(holder: Any, read: Callable[[Any], Held]) -> Entry:
    held = read(holder)
    return Entry(holder, "variables", read, held, frozenset(held))


def _of_function(function: FunctionType) -> Held:
    parts = dict(zip(("__code__", "__defaults__", "__kwdefaults__"), _PARTS(function), strict=True))
    return {**parts, **function.__dict__, "in __kwdefaults__": dict(function.__kwdefaults__ or {})}


def _of_scope(names: list[str], scope: dict[str, Any]) -> Held:
    return {name: scope.get(name, ABSENT) for name in names}


def _of_cell(cell: Any) -> Held:
    return {"value": cell.cell_contents} if cell != EMPTY else {}


def _variables(scope: Mapping[str, Any]) -> Held:
    return {name: value for name, value in scope.items() if not name.startswith("__")}


def _package(cls: type) -> str:
    return module_of(cls).partition(".")[0]


def _same(now: Any, before: Any) -> bool:
    return now is before or same_static(now, before)
