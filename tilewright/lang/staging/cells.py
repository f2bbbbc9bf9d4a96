"""What a region may change behind a name: the contents of mutable objects that it can reach.

A *cell* is one place in a mutable object: a list element, a dict value, an attribute of a user's object, or the
run-time
values inside an object of the carry protocol. Regions remember the cells of the objects that their body names, and
afterwards see which ones differ. Library objects that are immutable (layouts, tensors, numerics) are never entered.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Iterable
from typing import Any

from tilewright.ir.core import Constant, Value
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.staging import objects
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
    frozen = getattr(getattr(cls, "__dataclass_params__", None), "frozen", False)
    if issubclass(cls, (Numeric, Value, Undefined, type, enum.Enum, BaseException, types.ModuleType)) or frozen:
        return "fixed"
    rooms = cls.__module__.split(".")
    if rooms[0] in _FOREIGN or (rooms[0] == "tilewright" and len(rooms) > 1 and rooms[1] in _STATIC_ROOMS):
        return "fixed"
    if hasattr(cls, "__extract_mlir_values__") and hasattr(cls, "__new_from_mlir_values__"):
        return "protocol"
    return "object" if cls.__dictoffset__ else "fixed"


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


def _same_value(x: Value, y: Value) -> bool:
    if isinstance(x, Constant) and isinstance(y, Constant):
        return x.type == y.type and x.value == y.value and type(x.value) is type(y.value)
    return x is y


def content(thing: Any) -> dict[str, Any]:
    """The attributes of an object, those in slots included."""
    found = dict(getattr(thing, "__dict__", {}))
    for cls in type(thing).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(thing, name):
                found[name] = getattr(thing, name)
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


def reach(roots: Iterable[tuple[str, Any]]) -> list[Cell]:
    """The cells of everything mutable behind the named objects."""
    found: list[Cell] = []
    seen: set[int] = set()
    for name, value in roots:
        _visit(name, value, found, seen)
    return found


def _visit(path: str, value: Any, found: list[Cell], seen: set[int]) -> None:
    kind = _KINDS.get(type(value)) or kind_of(type(value))
    if kind == "fixed" or id(value) in seen or (kind in ("list", "dict") and len(value) > TABLE):
        return
    seen.add(id(value))
    if kind == "protocol":
        found.append(Cell("protocol", value, None, path))
    elif kind == "tuple":
        for i, item in enumerate(value):
            _visit(f"{path}[{i}]", item, found, seen)
    elif kind == "list":
        for i, item in enumerate(list(value)):
            found.append(Cell("list", value, i, f"{path}[{i}]"))
            _visit(f"{path}[{i}]", item, found, seen)
    elif kind == "dict":
        for key, item in list(value.items()):
            found.append(Cell("dict", value, key, f"{path}[{key!r}]"))
            _visit(f"{path}[{key!r}]", item, found, seen)
    else:
        for key, item in list(vars(value).items()):
            found.append(Cell("object", value, key, f"{path}.{key}"))
            _visit(f"{path}.{key}", item, found, seen)


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
