"""What staging sees in a Python object: a number, a container and its parts, the value protocol, what stays the same.

This module takes a Python object apart; :mod:`values` puts like objects together again.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from tilewright.ir.core import Value
from tilewright.ir.fold import normalise
from tilewright.lang.numbers.numeric import Boolean, Float32, Int32, Int64, Numeric, Uint64
from tilewright.lang.staging.class_modules import module_of

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


def static_part(value: Any) -> Any:
    """The part of a protocol object, besides its values, in which two have to agree (a tensor's static layout)."""
    asked = getattr(type(value), "__carry_key__", None)  # of the class: an object's own __getattr__ is not asked
    return asked(value) if asked is not None else None


def known_facts(value: Any) -> Any:
    asked = getattr(type(value), "__carry_facts__", None)
    return asked(value) if asked is not None else None


def same_static(a: Any, b: Any) -> bool:
    """Whether two objects without run-time parts are equal; objects that cannot tell are compared by identity.

    Python's ``==`` does not suffice: ``1``, ``1.0`` and ``True``, or ``0.0`` and ``-0.0``, make different programs.

    >>> same_static((1, 0.0), (1, 0.0)), same_static((1, 0.0), (True, 0.0)), same_static((1, 0.0), (1, -0.0))
    (True, False, False)
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) is float:
        return repr(a) == repr(b)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same_static, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(same_static(x, y) for x, y in zip(a.items(), b.items(), strict=True))
    try:
        equal = bool(a == b)
    except Exception:  # an == of a class of the program; whatever it raises, the two are not known to be equal
        return False
    if equal and is_record(a):
        missing = object()
        return all(same_static(getattr(a, f.name, missing), getattr(b, f.name, missing)) for f in dataclasses.fields(a))
    return equal


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
    if isinstance(value, (tuple, list, dict)):
        return f"{type(value).__name__} of {len(value)}"
    text = repr(value) if module_of(type(value)).startswith("tilewright.") else str(value)
    return f"{type(value).__name__} {text}" if len(text) < 60 and "object at 0x" not in text else type(value).__name__
