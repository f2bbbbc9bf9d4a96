"""What staging sees in a Python object: a number, a container and its parts, the value protocol, what stays the same.

This module takes a Python object apart; :mod:`values` puts like objects together again.
"""

from __future__ import annotations

import copy
import dataclasses
import dis
import functools
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any

from tilewright.ir.core import Value
from tilewright.ir.fold import normalise
from tilewright.lang.numbers.dtypes import numeric_of_dtype
from tilewright.lang.numbers.numeric import Boolean, Float32, Int32, Int64, Numeric, Uint64
from tilewright.lang.staging.class_modules import module_of
from tilewright.lang.staging.contents import stores_of

LITERALS = (bool, int, float)
Values = Iterator[Value]


def number_class(value: Any) -> Any:
    """The numeric class of a numeric or Python number, else None."""
    if isinstance(value, Numeric):
        return type(value)
    kind = type(value)
    # The narrowest of the types that hold it, as a literal in C.
    if kind is int:
        return Int32 if -(1 << 31) <= value < 1 << 31 else Int64 if value < 1 << 63 else Uint64
    return Boolean if kind is bool else Float32 if kind is float else None


def accepts_literal(cls: Any, literal: Any) -> bool:
    """Whether a Python literal may replace a number of ``cls``: it must keep its kind, and fit."""
    if type(literal) is bool:
        return bool(cls is Boolean)
    if type(literal) is int:
        return cls is not Boolean and (cls.is_float or normalise(cls.ir_type, literal) == literal)
    return bool(cls.is_float)


def is_record(value: Any) -> bool:
    """A dataclass instance that is carried field by field."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type) and not has_protocol(value)


def labels_of(value: Any) -> tuple[str, ...]:
    if isinstance(value, dict):
        return tuple(f"[{k!r}]" for k in value)
    if isinstance(value, (tuple, list)):
        return (
            tuple(f".{n}" for n in value._fields)
            if hasattr(value, "_fields")
            else tuple(f"[{i}]" for i in range(len(value)))
        )
    return tuple(f".{f.name}" for f in dataclasses.fields(value)) if is_record(value) else ()


def codec(value: Any) -> tuple[Callable[[Any], list[Any]], Callable[[list[Any]], Any]]:
    kind: Any = type(value)
    if isinstance(value, dict):
        keys = list(value)

        def like(items: list[Any]) -> Any:
            made = {} if kind is dict else copy.copy(value)  # a defaultdict keeps its factory
            made.update(zip(keys, items, strict=True))
            return made

        return (lambda d: list(d.values())), like
    if isinstance(value, (tuple, list)):
        return list, (lambda items: kind(*items)) if hasattr(value, "_fields") else kind
    names = [f.name for f in dataclasses.fields(value)]

    def make(items: list[Any]) -> Any:
        made = copy.copy(value)
        for name, item in zip(names, items, strict=True):
            object.__setattr__(made, name, item)
        return made

    return (lambda record: [getattr(record, n) for n in names]), make


def has_protocol(value: Any) -> bool:
    cls = type(value)
    return hasattr(cls, "__extract_mlir_values__") and hasattr(cls, "__new_from_mlir_values__")


def is_made_of_values(value: Any) -> bool:
    """Whether an object is as good as a copy of itself: it goes through regions by the documented protocol, and no
    method of its class assigns to its attributes once it is made."""
    return has_protocol(value) and not _changes_itself(type(value))


def _assigns_later(cls: type) -> bool:
    makers = ("__init__", "__post_init__", "__new__", "__new_from_mlir_values__")
    held = [x for base in cls.__mro__ if base is not object for n, x in vars(base).items() if n not in makers]
    functions = [f for x in held for f in _functions_of(x)]
    return any(_stores(f.__code__) for f in functions if hasattr(f, "__code__"))


_changes_itself: Callable[[type], bool] = functools.cache(_assigns_later)


def _functions_of(held: Any) -> list[Any]:
    """What a name of a class executes: a method, or those of a property."""
    if isinstance(held, property):
        return [f for f in (held.fget, held.fset, held.fdel) if f is not None]
    return [getattr(held, "__func__", held)]


def _stores(code: CodeType) -> bool:
    """Whether a function may write to an attribute, or to a place of a container that an attribute holds."""
    if not {"setattr", "delattr", "__setattr__", "__dict__", "vars"}.isdisjoint(code.co_names):
        return True
    if any(one.opname in _STORES for one in dis.get_instructions(code)):
        return True
    return any(_stores(inner) for inner in code.co_consts if isinstance(inner, CodeType))


_STORES = ("STORE_ATTR", "DELETE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR")


def static_part(value: Any) -> Any:
    """The part of a protocol object, besides its values, in which two have to agree (a tensor's static layout)."""
    key_of = getattr(type(value), "__carry_key__", None)  # of the class: an object's own __getattr__ is not asked
    return key_of(value) if key_of is not None else None


def known_facts(value: Any) -> Any:
    facts_of = getattr(type(value), "__carry_facts__", None)
    return facts_of(value) if facts_of is not None else None


def same_static(a: Any, b: Any) -> bool:
    """Whether two objects without run-time parts are equal; objects that cannot tell are compared by identity.

    Python's ``==`` does not suffice: ``1``, ``1.0`` and ``True``, or ``0.0`` and ``-0.0``, make different programs, and
    a class may leave out attributes. Equal objects are compared by what they hold.

    >>> same_static((1, 0.0), (1, 0.0)), same_static((1, 0.0), (True, 0.0)), same_static((1, 0.0), (1, -0.0))
    (True, False, False)
    """
    return _same(a, b, set())


def _same(a: Any, b: Any, pairs: set[tuple[int, int]]) -> bool:
    """``pairs``: the objects that are being compared already."""
    if a is b or (id(a), id(b)) in pairs:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind in _BY_VALUE:
        return bool(a == b)
    if kind is tuple:  # without attributes; what holds itself does so through something that can change
        return _same_elements(a, b, pairs)
    if isinstance(a, Numeric):  # == of run-time numbers would be an operation of the program
        return a.value is b.value or (a.is_static and b.is_static and repr(a.value) == repr(b.value))
    if kind is float:
        return repr(a) == repr(b)
    pairs.add((id(a), id(b)))
    if isinstance(a, (tuple, list)):
        return _same_elements(a, b, pairs) and _holds(a, b, pairs)
    if isinstance(a, dict):
        return _same_elements(list(a.items()), list(b.items()), pairs) and _holds(a, b, pairs)
    return _same_by_comparison(a, b, pairs)


def _same_elements(a: Sequence[Any], b: Sequence[Any], pairs: set[tuple[int, int]]) -> bool:
    if len(a) != len(b):
        return False
    for x, y in zip(a, b, strict=True):
        if x is not y and not _same(x, y, pairs):
            return False
    return True


def _same_by_comparison(a: Any, b: Any, pairs: set[tuple[int, int]]) -> bool:
    """Whether ``==`` of two objects of one class is true, and what ``==`` does not compare is the same."""
    try:
        equal = bool(a == b)
        if equal and isinstance(a, (set, frozenset)):
            others = {y: y for y in b}  # equal sets may have their elements in another order
            return all(_same(x, others[x], pairs) for x in a) and _holds(a, b, pairs)
    except Exception:  # an == of a class of the program; whatever it raises, the two are not known to be equal
        return False
    # Of equal numbers and times the text tells the sign of a zero, the digits, the time zone.
    texts = isinstance(a, _WRITTEN_OUT) or module_of(type(a)).partition(".")[0] in _WRITTEN_MODULES
    return equal and (not texts or repr(a) == repr(b)) and _holds(a, b, pairs)


_BY_VALUE = frozenset((int, bool, str, bytes, type(None), type))
_WRITTEN_OUT = (float, complex, range, slice)
_WRITTEN_MODULES = ("decimal", "datetime")


def _holds(a: Any, b: Any, pairs: set[tuple[int, int]]) -> bool:
    """Whether two objects of a class have the same attributes; of a library's dataclass, the same fields."""
    stores = [store for store in stores_of(type(a)) if store.word == "attributes"]
    if not stores and is_record(a):
        names = [field.name for field in dataclasses.fields(a)]
        missing = object()
        return all(_same(getattr(a, n, missing), getattr(b, n, missing), pairs) for n in names)
    for store in stores:
        first, second = store.read(a), store.read(b)
        if first.keys() != second.keys() or not all(_same(x, second[n], pairs) for n, x in first.items()):
            return False
    return True


class StaticKey:
    """A static object as part of a key: by value where it hashes, by identity otherwise. Keeps the object alive."""

    __slots__ = ("hash", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        try:
            self.hash = hash((type(value), value))
        except TypeError:
            # Equal lists and dicts have one repr; __eq__ decides about the rest.
            self.hash = id(value) if not isinstance(value, (list, dict, tuple)) else hash(repr(value))

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticKey) and same_static(self.value, other.value)


def describe(value: Any) -> str:
    """A value in an error message."""
    if isinstance(value, Numeric):
        return f"{type(value).__name__}{f' {value}' if value.is_static else ''}"
    if isinstance(value, Value):
        return str(value.type)
    if type(value) in LITERALS:
        return f"Python {type(value).__name__} {value!r}"
    if value is None or isinstance(value, str):
        return repr(value)
    if getattr(value, "shape", None) == () and module_of(type(value)) in ("numpy", "ml_dtypes"):
        number = f"{numeric_of_dtype(value.dtype).__name__}({value})"
        return f"{type(value).__name__} {value} of NumPy (known only while staging: write {number})"
    if isinstance(value, (tuple, list, dict)):
        return f"{type(value).__name__} of {len(value)}"
    text = repr(value) if module_of(type(value)).startswith("tilewright.") else str(value)
    return f"{type(value).__name__} {text}" if len(text) < 60 and "object at 0x" not in text else type(value).__name__
