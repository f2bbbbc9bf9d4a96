"""What a program's code brings along: the functions, classes and modules that can be reached from one of them.

Every region would read the same hundreds of them, before it and after each side of it, and they hardly ever change. So
they are gathered once for a staged function, and compared as a whole. The plain rule is the walk of
:class:`~tilewright.lang.staging.region_state.RegionState`; here ``unchanged()`` is True only if each store of each
member would read as it did, and where it is False the plain rule looks at them.
"""

from __future__ import annotations

import gc
import operator
from itertools import chain, repeat
from types import FunctionType
from typing import Any

from tilewright.ir.builder import Builder
from tilewright.lang.staging.builder import StagingBuilder
from tilewright.lang.staging.contents import (
    BEHIND,
    CLASS,
    EMPTY,
    MARKED,
    MODULE,
    NAMED,
    Held,
    Store,
    followed,
    is_users,
    stores_of,
    users_bases,
)

Entry = tuple[str, Any, type, Store, Held]
"""What one store holds: a path of its holder, the holder, its class, the store, and what was read."""

_ATTRIBUTES = operator.attrgetter("__dict__")
_PARTS = operator.attrgetter("__code__", "__defaults__", "__kwdefaults__", "__dict__")
_FUNCTION = operator.attrgetter("function")
_BASES = operator.attrgetter("__mro__")
_ABSENT = object()


def is_lasting(value: Any) -> bool:
    """Whether an object belongs to what is gathered."""
    return type(value) is FunctionType or stores_of(type(value)) in ((CLASS,), (MODULE,), (BEHIND,), (MARKED,))


class Lasting:
    """All that can be reached from ``root`` through members alone: ``entries`` of the members, and in ``others`` what
    they hold besides, with its path and whether the program names it."""

    def __init__(self, path: str, root: Any) -> None:
        self.members: dict[int, Any] = {}
        self.entries: list[Entry] = []
        self.others: list[tuple[str, Any, bool]] = []
        self._functions: list[FunctionType] = []
        self._bare: list[FunctionType] = []
        """The functions without attributes of their own."""
        self._cells: list[Any] = []
        self._named: dict[int, tuple[dict[str, Any], dict[str, None]]] = {}
        """By the identity of a module's variables: these, and which of them functions name."""
        self._classes: list[type] = []
        self._tables: list[Any] = []
        """The variables of classes and modules, the attributes of functions."""
        self._generators: list[Any] = []
        """Libraries with a generator of random numbers."""
        self._behind: list[Any] = []
        self._marked: list[Any] = []
        self._gather(path, root, True)
        self._before = self._now()

    def unchanged(self) -> bool:
        """Whether all members hold the same objects under the same names as when they were gathered."""
        now = self._now()
        same = len(now) == len(self._before) and all(map(operator.is_, now, self._before))
        return same and not any(map(_ATTRIBUTES, self._bare))

    def _now(self) -> list[Any]:
        """Every object that the members hold, and the names of variables, in one order."""
        named = [map(scope.get, names, repeat(_ABSENT)) for scope, names in self._named.values()]
        return [
            *chain.from_iterable(map(_PARTS, self._functions)),
            *chain.from_iterable(named),
            *map(_BASES, self._classes),
            *chain.from_iterable(self._tables),
            *chain.from_iterable([table.values() for table in self._tables]),
            *chain.from_iterable([MODULE.read(module).values() for module in self._generators]),
            *gc.get_referents(*self._behind, *self._cells),
            *map(EMPTY.__eq__, self._cells),  # an empty cell has no referent
            *map(_FUNCTION, self._marked),
        ]

    def _gather(self, path: str, value: Any, by_name: bool) -> None:
        if id(value) in self.members:
            return
        if not is_lasting(value):
            self.others.append((path, value, by_name))
            return
        self.members[id(value)] = value
        cls = type(value)
        for store in stores_of(cls):
            held = store.read(value)
            self.entries.append((path, value, cls, store, held))
            for key, item in held.items():
                if stores_of(type(item)):
                    self._gather(store.label.format(path=path, key=key), item, store.label in NAMED)
        self._note(value, stores_of(cls)[0])
        self._gather(cls.__name__, cls, False)

    def _note(self, value: Any, store: Store) -> None:
        """Where to look for what ``value`` holds."""
        if type(value) is FunctionType:
            self._functions.append(value)
            self._cells += value.__closure__ or ()
            self._tables += filter(None, (value.__dict__, value.__kwdefaults__))
            self._bare += () if value.__dict__ else (value,)
            scope = value.__globals__
            self._named.setdefault(id(scope), (scope, {}))[1].update(dict.fromkeys(followed(value.__code__)))
        elif store is CLASS:
            self._classes.append(value)
            self._tables += map(vars, users_bases(value))
        elif store is MODULE:
            if is_users(value):
                self._tables.append(vars(value))
            elif store.read(value):
                self._generators.append(value)
        elif store is BEHIND:
            self._behind.append(value)
        else:
            self._marked.append(value)


def gathered(path: str, root: Any) -> Lasting:
    """What is gathered from ``root``, as it is now. It is kept with the function that is being staged."""
    builder = Builder.current() if Builder.active() else None
    lasting = builder.lasting if isinstance(builder, StagingBuilder) else {}
    entry = lasting.get((path, id(root)))  # a message says the path by which this region reaches it
    if entry is None or not entry.unchanged():
        entry = lasting[path, id(root)] = Lasting(path, root)
    return entry
