"""Python objects as lists of run-time values, and back: what crosses function borders and control flow.

A *spec* is the shape of an object: where its run-time values sit and what stands still around them. ``spec_of(object)``
makes one, ``spec.conform(object)`` lists the values of another object of the same shape, ``spec.rebuild(values)``
makes a
like object around new values. Numerics, Python numbers, tuples, named tuples, lists, dicts, dataclasses, raw IR values
and objects with ``__extract_mlir_values__``/``__new_from_mlir_values__`` have run-time parts; everything else is
static.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import PtrType, Type
from tilewright.lang.numbers import facts
from tilewright.lang.numbers.numeric import Boolean, Float32, Int32, Int64, Numeric


class Mismatch(Exception):
    """Two objects do not have one shape. ``path`` leads into the object; ``hard`` if a number's type differs."""

    def __init__(self, path: str, expected: str, got: str, hard: bool = False) -> None:
        super().__init__(f"{path}: {expected} against {got}")
        self.path, self.expected, self.got, self.hard = path, expected, got, hard


class Weaker(Exception):
    """A pointer comes with less alignment than the spec assumes: the spec was weakened, start again."""


Values = Iterator[Value]


class Spec:
    """Base of the shapes."""

    __slots__ = ()

    def types(self) -> list[Type]:
        return []

    def conform(self, value: Any, path: str) -> list[Value]:
        raise NotImplementedError

    def rebuild(self, values: Values) -> Any:
        raise NotImplementedError

    def key(self) -> Any:
        """Hashable; equal for shapes that stage to the same program."""
        raise NotImplementedError

    def describe(self) -> str:
        raise NotImplementedError


class Number(Spec):
    """One numeric. ``weak``: it began as a Python number. ``facts`` are told of the rebuilt number."""

    __slots__ = ("cls", "facts", "weak")

    def __init__(self, cls: Any, weak: bool, known: facts.Facts | None = None) -> None:
        self.cls, self.weak, self.facts = cls, weak, known

    def types(self) -> list[Type]:
        return [self.cls.ir_type]

    def conform(self, value: Any, path: str) -> list[Value]:
        found = number_class(value)
        if found is None:
            raise Mismatch(path, self.describe(), describe(value))
        if found is not self.cls:
            literal = type(value) in LITERALS
            fits = literal and accepts_literal(self.cls, value)
            if not fits:
                raise Mismatch(path, self.describe(), describe(value), hard=True)
        return [self.cls(value).ir_value()]

    def rebuild(self, values: Values) -> Any:
        made = self.cls(next(values))
        return made.learn(self.facts) if self.facts is not None and not made.is_static else made

    def key(self) -> Any:
        return (self.cls, self.facts)

    def describe(self) -> str:
        return f"{self.cls.__name__}{' (from a Python number)' if self.weak else ''}"


class Raw(Spec):
    """A bare IR value."""

    __slots__ = ("type",)

    def __init__(self, type_: Type) -> None:
        self.type = type_

    def types(self) -> list[Type]:
        return [self.type]

    def conform(self, value: Any, path: str) -> list[Value]:
        if not isinstance(value, Value) or value.type != self.type:
            raise Mismatch(path, str(self.type), describe(value), hard=True)
        return [value]

    def rebuild(self, values: Values) -> Any:
        return next(values)

    def key(self) -> Any:
        return self.type

    def describe(self) -> str:
        return str(self.type)


class Static(Spec):
    """An object without run-time parts: it stands still."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def conform(self, value: Any, path: str) -> list[Value]:
        if not same_static(self.value, value):
            raise Mismatch(path, describe(self.value), describe(value))
        return []

    def rebuild(self, values: Values) -> Any:
        return self.value

    def key(self) -> Any:
        return StaticKey(self.value)

    def describe(self) -> str:
        return describe(self.value)


class Compound(Spec):
    """A container: its parts by position, ``split`` takes a like container apart and ``make`` puts one together."""

    __slots__ = ("labels", "make", "parts", "split", "type")

    def __init__(
        self, type_: type, labels: Sequence[str], parts: list[Spec],
        split: Callable[[Any], list[Any]], make: Callable[[list[Any]], Any],
    ) -> None:  # fmt: skip
        self.type, self.labels, self.parts, self.split, self.make = type_, tuple(labels), parts, split, make

    def types(self) -> list[Type]:
        return [t for part in self.parts for t in part.types()]

    def conform(self, value: Any, path: str) -> list[Value]:
        if type(value) is not self.type or labels_of(value) != self.labels:
            raise Mismatch(path, self.describe(), describe(value))
        items = self.split(value)
        return [
            v
            for part, label, item in zip(self.parts, self.labels, items, strict=True)
            for v in part.conform(item, f"{path}{label}")
        ]

    def rebuild(self, values: Values) -> Any:
        return self.make([part.rebuild(values) for part in self.parts])

    def key(self) -> Any:
        return (self.type, self.labels, tuple(part.key() for part in self.parts))

    def describe(self) -> str:
        return f"{self.type.__name__} of {len(self.parts)}"


class Protocol(Spec):
    """An object of the documented protocol."""

    __slots__ = ("nesting", "template", "type_list")

    def __init__(self, template: Any, values: list[Value], nesting: Any) -> None:
        self.template, self.nesting = template, nesting
        self.type_list = [v.type for v in values]

    def types(self) -> list[Type]:
        return self.type_list

    def conform(self, value: Any, path: str) -> list[Value]:
        if type(value) is not type(self.template):
            raise Mismatch(path, describe(self.template), describe(value))
        values, _ = extract(value)
        mine, other = static_part(self.template), static_part(value)
        if len(values) != len(self.type_list) or not (same_static(mine, other) or self._stands_for(value, mine)):
            raise Mismatch(path, describe(self.template), describe(value))
        return [self._fit(i, v, path) for i, v in enumerate(values)]

    def _stands_for(self, value: Any, mine: Any) -> bool:
        """Whether the template covers ``value``, of which other facts are known; Weaker once it has forgotten some."""
        join = getattr(self.template, "__carry_join__", None)
        joined = join(value) if join is not None else None
        if joined is None:
            return False
        if not same_static(mine, static_part(joined)):
            self.template = joined
            raise Weaker
        return True

    def _fit(self, i: int, value: Value, path: str) -> Value:
        want, got = self.type_list[i], value.type
        if want == got:
            return value
        if isinstance(want, PtrType) and isinstance(got, PtrType) and (want.elem, want.space) == (got.elem, got.space):
            if got.align % want.align == 0:
                return Builder.current().ptr_cast(value, want)
            self.type_list[i] = PtrType(want.elem, want.space, math.gcd(want.align, got.align))
            raise Weaker
        raise Mismatch(
            path, f"{describe(self.template)} with {want}", f"{describe(self.template)} with {got}", hard=True
        )

    def rebuild(self, values: Values) -> Any:
        taken = [next(values) for _ in self.type_list]
        return self.template.__new_from_mlir_values__(nest(self.nesting, iter(taken)))

    def key(self) -> Any:
        return (
            type(self.template),
            tuple(self.type_list),
            StaticKey(static_part(self.template)),
            known_facts(self.template),
        )

    def describe(self) -> str:
        return describe(self.template)


class StaticKey:
    """A static object as part of a key: by value where it hashes, by identity otherwise. Keeps the object alive."""

    __slots__ = ("hash", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        try:
            self.hash = hash((type(value), value))
        except TypeError:
            self.hash = id(value) if not isinstance(value, (list, dict, tuple)) else hash(repr(value))

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticKey) and same_static(self.value, other.value)


LITERALS = (bool, int, float)
_FIXED: set[type] = {str, bytes, type(None), type, complex, range, slice}


def number_class(value: Any) -> Any:
    """The numeric class of a numeric or Python number, else None."""
    if isinstance(value, Numeric):
        return type(value)
    kind = type(value)
    if kind is int:
        return Int32 if -(1 << 31) <= value < 1 << 31 else Int64
    return Boolean if kind is bool else Float32 if kind is float else None


def accepts_literal(cls: Any, literal: Any) -> bool:
    """Whether a Python literal may stand where a number of ``cls`` is: it must keep its kind."""
    if type(literal) is bool:
        return bool(cls is Boolean)
    if type(literal) is int:
        return cls is not Boolean
    return bool(cls.is_float)


def extract(value: Any) -> tuple[list[Value], Any]:
    """The values of a protocol object, flat, and how they were nested (an int: a flat list of that many)."""
    found = value.__extract_mlir_values__()
    if not any(isinstance(v, (list, tuple)) for v in found):
        return list(found), len(found)
    flat: list[Value] = []
    nesting: list[int | None] = []
    for item in found:
        if isinstance(item, (list, tuple)):
            flat += item
            nesting.append(len(item))
        else:
            flat.append(item)
            nesting.append(None)
    return flat, nesting


def nest(nesting: Any, values: Values) -> list[Any]:
    if isinstance(nesting, int):
        return list(values)
    return [next(values) if n is None else [next(values) for _ in range(n)] for n in nesting]


def static_part(value: Any) -> Any:
    """What must be equal for two protocol objects to be alike besides their values (a tensor's static layout)."""
    asked = getattr(value, "__carry_key__", None)
    return asked() if asked is not None else None


def known_facts(value: Any) -> Any:
    asked = getattr(value, "__carry_facts__", None)
    return asked() if asked is not None else None


def has_protocol(value: Any) -> bool:
    cls = type(value)
    return hasattr(cls, "__extract_mlir_values__") and hasattr(cls, "__new_from_mlir_values__")


def spec_of(value: Any, promote: bool = True) -> Spec:
    """The shape of ``value``; with ``promote`` Python numbers count as run-time numbers, else as static."""
    kind = type(value)
    if kind in _FIXED:
        return Static(value)
    if kind in LITERALS:
        return Number(number_class(value), True) if promote else Static(value)
    if isinstance(value, Numeric):
        return Number(kind, False)
    if isinstance(value, Value):
        return Raw(value.type)
    if isinstance(value, (tuple, list, dict)) or is_record(value):
        return _compound(value, promote)
    if has_protocol(value):
        values, nesting = extract(value)
        return Protocol(value, values, nesting)
    return Static(value)


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


def _compound(value: Any, promote: bool) -> Spec:
    kind: type = type(value)
    split, make = _codec(value)
    parts = [spec_of(item, promote) for item in split(value)]
    if all(isinstance(part, Static) for part in parts):
        return Static(value)
    return Compound(kind, labels_of(value), parts, split, make)


def _codec(value: Any) -> tuple[Callable[[Any], list[Any]], Callable[[list[Any]], Any]]:
    kind: Any = type(value)
    if isinstance(value, dict):
        keys = list(value)
        return (lambda d: list(d.values())), (lambda items: kind(zip(keys, items, strict=True)))
    if isinstance(value, (tuple, list)):
        return list, (lambda items: kind(*items)) if hasattr(value, "_fields") else kind
    names = [f.name for f in dataclasses.fields(value)]

    def make(items: list[Any]) -> Any:
        made = copy.copy(value)
        for name, item in zip(names, items, strict=True):
            object.__setattr__(made, name, item)
        return made

    return (lambda record: [getattr(record, n) for n in names]), make


def unify(a: Any, b: Any, path: str = "") -> Spec:
    """The shape that both objects have; Mismatch if there is none. Equal Python values stay static."""
    if a is b:
        return spec_of(a, promote=False)
    first, second = number_class(a), number_class(b)
    if first is not None and second is not None:
        return _unify_numbers(a, b, first, second, path)
    if type(a) is type(b):
        if isinstance(a, (tuple, list, dict)) or is_record(a):
            if labels_of(a) != labels_of(b):
                raise Mismatch(path, describe(a), describe(b))
            split, make = _codec(a)
            labels = labels_of(a)
            parts = [unify(x, y, f"{path}{label}") for x, y, label in zip(split(a), split(b), labels, strict=True)]
            if all(isinstance(part, Static) for part in parts):
                return Static(a)
            return Compound(type(a), labels, parts, split, make)
        if isinstance(a, Value) or has_protocol(a):
            return spec_of(a)
    if same_static(a, b):
        return Static(a)
    raise Mismatch(path, describe(a), describe(b))


def _unify_numbers(a: Any, b: Any, first: Any, second: Any, path: str) -> Spec:
    weak_a, weak_b = type(a) in LITERALS, type(b) in LITERALS
    if weak_a and weak_b:
        if type(a) is type(b):
            same = a == b or (a != a and b != b)
            return Static(a) if same else Number(first if first is Int64 else second, True)
    elif first is second or (weak_b and accepts_literal(first, b)):
        return Number(first, False, _joined(a, b))
    elif weak_a and accepts_literal(second, a):
        return Number(second, False, _joined(a, b))
    raise Mismatch(path, describe(a), describe(b), hard=True)


def _joined(a: Any, b: Any) -> facts.Facts | None:
    """What holds of either of two integers."""
    known = [facts.of_number(int(x)) if type(x) in (bool, int) else getattr(x, "facts", None) for x in (a, b)]
    return facts.join(known[0], known[1]) if known[0] is not None and known[1] is not None else None


def same_static(a: Any, b: Any) -> bool:
    """Whether two objects without run-time parts are equal; objects that cannot tell are compared by identity."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    try:
        return bool(a == b)
    except Exception:  # an == of somebody else's class; whatever it raises, the two are not known to be equal
        return False


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
    text = str(value)
    return f"{type(value).__name__} {text}" if len(text) < 60 and "object at 0x" not in text else type(value).__name__


def flatten(value: Any, promote: bool = False) -> tuple[list[Value], Spec]:
    """The run-time values inside ``value`` and its shape.

    >>> values, spec = flatten((Int32(1), "static", 2.5))
    >>> values, spec.rebuild(iter(values))
    ([1: i32], (Int32(1), 'static', 2.5))
    """
    spec = spec_of(value, promote)
    return spec.conform(value, ""), spec


def unflatten(spec: Spec, values: Sequence[Value]) -> Any:
    """The inverse of :func:`flatten`."""
    return spec.rebuild(iter(values))


def value_names(spec: Spec, value: Any, name: str) -> list[str]:
    """A readable name for each of the values of ``value``: ``a``, ``a_shape0``, ``a_stride1``, ``pair_0``."""
    if isinstance(spec, Compound):
        parts = zip(spec.parts, spec.labels, spec.split(value), strict=True)
        return [n for part, label, item in parts for n in value_names(part, item, name + _identifier(label))]
    return object_names(value, name, len(spec.types()))


def object_names(value: Any, name: str, count: int) -> list[str]:
    """The same for one object with ``count`` values."""
    layout = getattr(value, "layout", None)
    if count < 2 or layout is None:
        return [name] if count == 1 else [f"{name}_{i}" for i in range(count)]
    leaves = [f"{name}_{kind}{path}" for kind in ("shape", "stride") for path in _paths(getattr(layout, kind, ()))]
    heads = count - len(leaves)
    return [name if heads == 1 else f"{name}_{i}" for i in range(heads)] + leaves if heads > 0 else leaves[:count]


def _paths(tree: Any, path: str = "") -> Iterator[str]:
    if isinstance(tree, tuple):
        for i, part in enumerate(tree):
            yield from _paths(part, f"{path}_{i}" if path else str(i))
    elif isinstance(tree, Numeric):
        yield path


def _identifier(label: str) -> str:
    return "_" + "".join(c if c.isalnum() else "_" for c in label).strip("_")
