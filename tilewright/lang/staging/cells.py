"""What a region may change behind a name: the contents of mutable objects that it can reach.

A *cell* is one place in a mutable object: a list element, a dict value, an attribute of a user's object, or the
run-time values inside an object of the carry protocol. Regions remember the cells of the objects that their
body names, and afterwards see which ones differ. Library objects that are immutable (layouts, tensors, numerics) are
never entered.
Functions are entered for what their closures hold. What has no places that a region could choose or carry (the length
of a list, the keys of a dict, sets, NumPy arrays) is *watched*: changing it in a region is an error.
"""

from __future__ import annotations

import collections
import enum
import functools
import sys
import types
from collections.abc import Iterable
from typing import Any

from tilewright.ir.core import Constant, Value
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.staging import objects
from tilewright.lang.staging.location import fail
from tilewright.lang.staging.poison import Undefined

MISSING = object()
TABLE = 1024
"""A longer list or dict is a table of constants: nobody carries its elements."""
_STATIC_ROOMS = ("layout", "ir", "atoms", "lang", "errors", "cute")
_FOREIGN = {
    "builtins",
    "numpy",
    "torch",
    "cuda",
    "functools",
    "types",
    "enum",
    "typing",
    "collections",
    "abc",
    "pathlib",
}
_CALLABLES = (types.FunctionType, types.MethodType, functools.partial)
_KINDS: dict[type, str] = {}


def kind_of(cls: type) -> str:
    """``list``, ``dict``, ``protocol`` (mutable, with run-time values), ``object`` (attributes) or ``fixed``."""
    kind = _KINDS.get(cls)
    if kind is None:
        kind = _KINDS[cls] = _kind_of(cls)
    return kind


def _kind_of(cls: type) -> str:
    if issubclass(cls, list):
        return "list"
    if issubclass(cls, dict):
        return "dict"
    if issubclass(cls, tuple):
        return "tuple"
    if cls in _CALLABLES or getattr(cls, "marks_function", False):
        return "callable"
    if issubclass(cls, (set, collections.deque, bytearray)) or cls is getattr(sys.modules.get("numpy"), "ndarray", 0):
        return "watched"
    frozen = getattr(getattr(cls, "__dataclass_params__", None), "frozen", False)
    if issubclass(cls, (Numeric, Value, Undefined, type, enum.Enum, BaseException, types.ModuleType)) or frozen:
        return "fixed"
    rooms = cls.__module__.split(".")
    if rooms[0] in _FOREIGN or (rooms[0] == "tilewright" and len(rooms) > 1 and rooms[1] in _STATIC_ROOMS):
        return "fixed"
    if hasattr(cls, "__extract_mlir_values__") and hasattr(cls, "__new_from_mlir_values__"):
        return "protocol"
    return "object" if cls.__dictoffset__ or slots_of(cls) else "fixed"


def slots_of(cls: type) -> list[str]:
    """The names of the slots that instances have."""
    listed = (base.__dict__.get("__slots__", ()) for base in cls.__mro__)
    names = [name for slots in listed for name in ((slots,) if isinstance(slots, str) else slots)]
    return [name for name in names if name not in ("__dict__", "__weakref__")]


class Guard:
    """Something that a region may not change: its ``extent`` is the same before and after."""

    __slots__ = ("before", "holder", "path")

    def __init__(self, holder: Any, path: str) -> None:
        self.holder, self.path, self.before = holder, path, extent(holder)

    def check(self, region: Any) -> None:
        now = extent(self.holder)
        if len(now) == len(self.before) and all(a is b or a == b for a, b in zip(now, self.before, strict=True)):
            return
        what = "length" if isinstance(self.holder, list) else "keys" if isinstance(self.holder, dict) else "contents"
        places = what != "contents"
        raise fail(
            f"'{self.path}' changes its {what} in the {region}, which is staged once and runs many times or never; "
            + ("assign to places that exist before the region, or make the " if places else "make the ")
            + f"{type(self.holder).__name__} inside"
        )


def extent(holder: Any) -> tuple[Any, ...]:
    """What of a container cannot differ from one path to the other."""
    if isinstance(holder, list):
        return (len(holder),)
    if isinstance(holder, (dict, set, collections.deque)):
        return tuple(holder)
    return (bytes(holder),)


class Cell:
    """One place: ``holder`` and ``key`` say where (for ``protocol`` the holder itself), ``before`` what was there."""

    __slots__ = ("before", "holder", "key", "kind", "path")

    def __init__(self, kind: str, holder: Any, key: Any, path: str) -> None:
        self.kind, self.holder, self.key, self.path = kind, holder, key, path
        self.before = self.get()

    def get(self) -> Any:
        if self.kind == "protocol":
            return tuple(objects.extract(self.holder)[0]), content(self.holder)
        if self.kind == "object":
            return vars(self.holder).get(self.key, MISSING)
        if self.kind == "list":
            return self.holder[self.key] if self.key < len(self.holder) else MISSING
        if self.kind == "slot":
            return getattr(self.holder, self.key, MISSING)
        if self.kind == "closure":
            return _contents(self.holder)
        return self.holder.get(self.key, MISSING)

    def put(self, value: Any) -> None:
        if self.kind == "protocol":
            restore(self.holder, value[1])
        elif self.kind == "object":
            if value is MISSING:
                vars(self.holder).pop(self.key, None)
            else:
                vars(self.holder)[self.key] = value
        elif self.kind == "list":
            if self.key < len(self.holder):
                self.holder[self.key] = value
        elif self.kind in ("slot", "closure"):
            thing, name = (self.holder, self.key) if self.kind == "slot" else (self.holder, "cell_contents")
            if value is not MISSING:
                setattr(thing, name, value)
            elif self.get() is not MISSING:
                delattr(thing, name)
        elif value is MISSING:
            self.holder.pop(self.key, None)
        else:
            self.holder[self.key] = value

    def same(self, a: Any, b: Any) -> bool:
        if self.kind == "protocol":
            return len(a[0]) == len(b[0]) and all(_same_value(x, y) for x, y in zip(a[0], b[0], strict=True))
        return a is b or (type(a) is type(b) and type(a) in (int, float, bool, str) and a == b)

    # The value of a cell as an object that the carry protocol understands.

    def carried(self, state: Any) -> Any:
        return self.holder if self.kind == "protocol" else state

    def fill(self, value: Any) -> None:
        """Put an object of the carry protocol into the place."""
        if self.kind == "protocol":
            restore(self.holder, content(value))
        else:
            self.put(value)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _same_value(x: Value, y: Value) -> bool:
    if isinstance(x, Constant) and isinstance(y, Constant):
        return x.type == y.type and x.value == y.value and type(x.value) is type(y.value)
    return x is y


def content(thing: Any) -> dict[str, Any]:
    """The attributes of an object, those in slots included."""
    found = dict(getattr(thing, "__dict__", {}))
    found.update((name, getattr(thing, name)) for name in slots_of(type(thing)) if hasattr(thing, name))
    return found


def restore(thing: Any, attributes: dict[str, Any]) -> None:
    """Make ``thing`` hold exactly these attributes."""
    own = getattr(thing, "__dict__", None)
    if own is not None:
        for gone in own.keys() - attributes.keys():
            del own[gone]
    for name, value in attributes.items():
        if own is not None and (name in own or not hasattr(type(thing), name)):
            own[name] = value
        else:
            object.__setattr__(thing, name, value)


class Reach:
    """The ``cells`` of everything mutable behind the named objects, and the ``guards`` of what must stay.

    ``own`` are variables of the region, with their values: it knows of them without their cells in closures.
    """

    def __init__(self, roots: Iterable[tuple[str, Any]], own: Iterable[tuple[str, Any]] = ()) -> None:
        self.cells: list[Cell] = []
        self.guards: list[Guard] = []
        self._own = dict(own)
        self._seen: set[int] = set()
        for name, value in roots:
            self._visit(name, value)

    def check(self, region: Any) -> None:
        """Raise where the region changed what must stay."""
        for guard in self.guards:
            guard.check(region)

    def changed(self) -> str:
        """The path of a cell that is not as it was; '' if all are."""
        return next((cell.path for cell in self.cells if not cell.same(cell.get(), cell.before)), "")

    def restore(self) -> None:
        for cell in self.cells:
            if not cell.same(cell.get(), cell.before):
                cell.put(cell.before)

    def _cell(self, kind: str, holder: Any, key: Any, path: str, item: Any) -> None:
        self.cells.append(Cell(kind, holder, key, path))
        self._visit(path, item)

    def _visit(self, path: str, value: Any) -> None:
        kind = _KINDS.get(type(value)) or kind_of(type(value))
        if kind == "fixed" or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if kind == "protocol":
            self.cells.append(Cell("protocol", value, None, path))
        elif kind == "tuple":
            for i, item in enumerate(value):
                self._visit(f"{path}[{i}]", item)
        elif kind == "callable":
            self._visit_callable(path, value)
        elif kind == "object":
            for key, item in list(getattr(value, "__dict__", {}).items()):
                self._cell("object", value, key, f"{path}.{key}", item)
            for key in slots_of(type(value)):
                self._cell("slot", value, key, f"{path}.{key}", getattr(value, key, MISSING))
        elif len(value) <= TABLE and (kind != "watched" or getattr(value, "nbytes", 0) <= 8 * TABLE):
            self.guards.append(Guard(value, path))
            items = () if kind == "watched" else enumerate(value) if kind == "list" else value.items()
            for key, item in list(items):
                self._cell(kind, value, key, f"{path}[{key!r}]", item)

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
                item = _contents(cell)
                if name not in self._own or self._own[name] is not item:
                    self._cell("closure", cell, name, name, item)


def fresh_attributes(cells: Iterable[Cell]) -> list[tuple[Any, str, Any]]:
    """Attributes of the visited user objects that were not there before: (object, name, value)."""
    known: dict[int, tuple[Any, set[str]]] = {}
    for cell in cells:
        if cell.kind == "object":
            known.setdefault(id(cell.holder), (cell.holder, set()))[1].add(cell.key)
    return [
        (thing, name, value)
        for thing, names in known.values()
        for name, value in vars(thing).items()
        if name not in names
    ]
