"""Python objects as lists of run-time values, and back: what crosses function borders and control flow.

``spec_of(object)`` finds the *spec* of an object: where its run-time values are and what stays the same around them. A
spec lists the values of an object of its shape (``conform``) and makes a like object around new values (``rebuild``);
``unify`` finds the spec that two objects share. Numerics, Python numbers, tuples, named tuples, lists, dicts,
dataclasses and objects with ``__extract_mlir_values__``/``__new_from_mlir_values__`` have run-time
parts; everything else is static.
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import PtrType, Type
from tilewright.lang.numbers import facts
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.staging.contents import can_change
from tilewright.lang.staging.objects import (
    LITERALS,
    StaticKey,
    Values,
    accepts_literal,
    codec,
    describe,
    has_protocol,
    is_record,
    known_facts,
    labels_of,
    number_class,
    same_static,
    static_part,
)


class ShapeMismatch(Exception):
    """Two objects do not have one shape. ``path`` leads into the object; ``hard`` if a number's type differs."""

    def __init__(self, path: str, expected: str, got: str, hard: bool = False) -> None:
        super().__init__(f"{path}: {expected} against {got}")
        self.path, self.expected, self.got, self.hard = path, expected, got, hard


class Spec:
    """Base of the shapes."""

    __slots__ = ()

    def types(self) -> list[Type]:
        return []

    def conform(self, value: Any, path: str) -> list[Value]:
        raise NotImplementedError

    def weaken(self, value: Any) -> bool:
        """Widen the shape to cover ``value``, of whose pointers less may be known (alignment); whether it changed."""
        return False

    def rebuild(self, values: Values) -> Any:
        raise NotImplementedError

    def key(self) -> Any:
        """Hashable; equal for shapes that stage to the same program."""
        raise NotImplementedError

    def describe(self) -> str:
        raise NotImplementedError


class NumberSpec(Spec):
    """One numeric. ``weak``: it began as a Python number. ``facts`` hold for the rebuilt number."""

    __slots__ = ("cls", "facts", "weak")

    def __init__(self, cls: Any, weak: bool, known: facts.Facts | None = None) -> None:
        self.cls, self.weak, self.facts = cls, weak, known

    def types(self) -> list[Type]:
        return [self.cls.ir_type]

    def conform(self, value: Any, path: str) -> list[Value]:
        value = _number_of_member(value)
        cls = number_class(value)
        if cls is None:
            raise ShapeMismatch(path, self.describe(), describe(value))
        if cls is not self.cls:
            literal = type(value) in LITERALS
            fits = literal and accepts_literal(self.cls, value)
            if not fits:
                raise ShapeMismatch(path, self.describe(), describe(value), hard=True)
        return [self.cls(value).ir_value()]

    def rebuild(self, values: Values) -> Any:
        made = self.cls(next(values))
        return made.learn(self.facts) if self.facts is not None and not made.is_static else made

    def key(self) -> Any:
        return (self.cls, self.facts)

    def describe(self) -> str:
        return f"{self.cls.__name__}{' (from a Python number)' if self.weak else ''}"


class StaticSpec(Spec):
    """An object without run-time parts: it stays the same."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def conform(self, value: Any, path: str) -> list[Value]:
        if not same_static(self.value, value):
            raise ShapeMismatch(path, describe(self.value), describe(value))
        return []

    def rebuild(self, values: Values) -> Any:
        return self.value

    def key(self) -> Any:
        return StaticKey(self.value)

    def describe(self) -> str:
        return describe(self.value)


class KeptObjectSpec(StaticSpec):
    """An object that can change: it stays the same object, with other values in its places."""

    __slots__ = ()

    def conform(self, value: Any, path: str) -> list[Value]:
        if value is not self.value:
            raise ShapeMismatch(path, describe(self.value), describe(value))
        return []

    def key(self) -> Any:
        return id(self.value)


class CompoundSpec(Spec):
    """A container: its parts by position, ``split`` takes a like container apart and ``make`` puts one together."""

    __slots__ = ("labels", "make", "parts", "split", "type")

    def __init__(
        self,
        type_: type,
        labels: Sequence[str],
        parts: list[Spec],
        split: Callable[[Any], list[Any]],
        make: Callable[[list[Any]], Any],
    ) -> None:
        self.type, self.labels, self.parts, self.split, self.make = type_, tuple(labels), parts, split, make

    def types(self) -> list[Type]:
        return [t for part in self.parts for t in part.types()]

    def conform(self, value: Any, path: str) -> list[Value]:
        if type(value) is not self.type or labels_of(value) != self.labels:
            raise ShapeMismatch(path, self.describe(), describe(value))
        items = self.split(value)
        return [
            v
            for part, label, item in zip(self.parts, self.labels, items, strict=True)
            for v in part.conform(item, f"{path}{label}")
        ]

    def weaken(self, value: Any) -> bool:
        if type(value) is not self.type or labels_of(value) != self.labels:
            return False
        return any([part.weaken(item) for part, item in zip(self.parts, self.split(value), strict=True)])

    def rebuild(self, values: Values) -> Any:
        return self.make([part.rebuild(values) for part in self.parts])

    def key(self) -> Any:
        return (self.type, self.labels, tuple(part.key() for part in self.parts))

    def describe(self) -> str:
        return f"{self.type.__name__} of {len(self.parts)}"


class ProtocolSpec(Spec):
    """An object of the documented protocol."""

    __slots__ = ("template", "type_list")

    def __init__(self, template: Any, types: Sequence[Type] | None = None) -> None:
        self.template = template
        self.type_list: list[Any] = [v.type for v in template.__extract_mlir_values__()] if types is None else [*types]

    def types(self) -> list[Type]:
        return self.type_list

    def conform(self, value: Any, path: str) -> list[Value]:
        if type(value) is not type(self.template):
            raise ShapeMismatch(path, describe(self.template), describe(value))
        values = value.__extract_mlir_values__()
        same = same_static(static_part(self.template), static_part(self._joined(value)))
        if len(values) != len(self.type_list) or not same:
            raise ShapeMismatch(path, describe(self.template), describe(value))
        return [self._fit(v, want, path) for v, want in zip(values, self.type_list, strict=True)]

    def _joined(self, value: Any) -> Any:
        """The object that stands for the template and for ``value``: of pointers less may be known."""
        join = getattr(self.template, "__carry_join__", None)
        joined = join(value) if join is not None else None
        return value if joined is None else joined

    def _fit(self, value: Value, want: Any, path: str) -> Value:
        got: Any = value.type
        if want == got:
            return value
        # A pointer that is aligned better than the shape says may take its place, not the other way round.
        if _same_but_for_alignment(want, got) and got.align % want.align == 0:
            return Builder.current().ptr_cast(value, want)
        shown = describe(self.template)
        raise ShapeMismatch(path, f"{shown} with {want}", f"{shown} with {got}", hard=True)

    def weaken(self, value: Any) -> bool:
        if type(value) is not type(self.template):
            return False
        before = static_part(self.template), list(self.type_list)
        if self._joined(value) is not value:
            self.template = self._joined(value)
        for i, (want, v) in enumerate(zip(self.type_list, value.__extract_mlir_values__(), strict=False)):
            if _same_but_for_alignment(want, v.type):
                # Types that differ in their alignment alone are those of pointers.
                self.type_list[i] = PtrType(want.elem, want.space, math.gcd(want.align, v.type.align))
        return not same_static((static_part(self.template), self.type_list), before)

    def rebuild(self, values: Values) -> Any:
        return self.template.__new_from_mlir_values__([next(values) for _ in self.type_list])

    def key(self) -> Any:
        static = StaticKey(static_part(self.template))
        return type(self.template), tuple(self.type_list), static, known_facts(self.template)

    def describe(self) -> str:
        return describe(self.template)


def _same_but_for_alignment(a: Type, b: Type) -> bool:
    return isinstance(a, PtrType) and isinstance(b, PtrType) and (a.elem, a.space) == (b.elem, b.space)


_FIXED: set[type] = {str, bytes, type(None), type, complex, range, slice}


def spec_of(value: Any, promote: bool = True, path: str = "", keeps: Callable[[Any, str], bool] | None = None) -> Spec:
    """The shape of ``value``; with ``promote`` Python numbers count as run-time numbers, else as static. Of objects
    inside it, ``keeps(object, path)`` says which stay the objects that they are."""
    kind = type(value)
    if kind in _FIXED:
        return StaticSpec(value)
    if kind in LITERALS:
        return NumberSpec(number_class(value), True) if promote else StaticSpec(value)
    if isinstance(value, Numeric):
        return NumberSpec(kind, False)
    if keeps is not None and keeps(value, path):
        return KeptObjectSpec(value)
    if isinstance(value, (tuple, list, dict)) or is_record(value):
        split, make = codec(value)
        labels = labels_of(value)
        labelled = zip(split(value), labels, strict=True)
        parts = [spec_of(item, promote, f"{path}{label}", keeps) for item, label in labelled]
        return StaticSpec(value) if _all_static(parts) else CompoundSpec(kind, labels, parts, split, make)
    return ProtocolSpec(value) if has_protocol(value) else StaticSpec(value)


def _all_static(parts: list[Spec]) -> bool:
    return all(type(part) is StaticSpec for part in parts)


def _stays(value: Any, path: str) -> bool:
    """Whether an object that both sides hold is more than its numbers: it stays the object that it is."""
    return can_change(value)


def unify(a: Any, b: Any, path: str = "") -> Spec:
    """The shape that both objects have, or a Mismatch. Equal Python values stay static."""
    if a is b:
        return spec_of(a, promote=False, keeps=_stays)
    a, b = _number_of_member(a), _number_of_member(b)
    first, second = number_class(a), number_class(b)
    if first is not None and second is not None:
        return _unify_numbers(a, b, first, second, path)
    if type(a) is type(b):
        if isinstance(a, (tuple, list, dict)) or is_record(a):
            if labels_of(a) != labels_of(b):
                raise ShapeMismatch(path, describe(a), describe(b))
            split, make = codec(a)
            labels = labels_of(a)
            parts = [unify(x, y, f"{path}{label}") for x, y, label in zip(split(a), split(b), labels, strict=True)]
            return StaticSpec(a) if _all_static(parts) else CompoundSpec(type(a), labels, parts, split, make)
        # The object of one side is rebuilt; pointers in it are as aligned as the less aligned of both sides.
        if has_protocol(a):
            spec = ProtocolSpec(a)
            spec.weaken(b)
            return spec
    if same_static(a, b):
        return StaticSpec(a)
    raise ShapeMismatch(path, describe(a), describe(b))


def _number_of_member(value: Any) -> Any:
    """The integer of a member of an IntEnum: which of several members a run-time branch chose is a run-time number."""
    return int(value) if isinstance(value, enum.IntEnum) else value


def _unify_numbers(a: Any, b: Any, first: Any, second: Any, path: str) -> Spec:
    weak_a, weak_b = type(a) in LITERALS, type(b) in LITERALS
    if weak_a and weak_b:
        # Two Python numbers: equal ones stay static, others become a run-time number that holds both.
        if type(a) is type(b):
            if same_static(a, b):
                return StaticSpec(a)
            return NumberSpec(first if first.width > second.width else second, True)
    elif first is second or (weak_b and accepts_literal(first, b)):
        return NumberSpec(first, False, _joined(a, b))
    elif weak_a and accepts_literal(second, a):
        return NumberSpec(second, False, _joined(a, b))
    raise ShapeMismatch(path, describe(a), describe(b), hard=True)


def _joined(a: Any, b: Any) -> facts.Facts | None:
    """The facts that hold of either of two integers."""
    of_both = [facts.of_number(int(x)) if type(x) in (bool, int) else getattr(x, "facts", None) for x in (a, b)]
    return facts.join(of_both[0], of_both[1]) if of_both[0] is not None and of_both[1] is not None else None


def promoted(value: Any, spec: Spec | None = None) -> Any:
    """``value`` with numbers of the machine in place of Python's, where its shape ``spec`` (by default its own) has
    numbers.

    >>> promoted([1, (True, "static")])
    [Int32(1), (Boolean(True), 'static')]
    """
    spec = spec_of(value) if spec is None else spec
    if isinstance(spec, NumberSpec):
        return number_class(value)(value) if type(value) in LITERALS else value
    if not isinstance(spec, CompoundSpec) or type(value) is not spec.type or labels_of(value) != spec.labels:
        return value
    items = spec.split(value)
    parts = [promoted(item, part) for item, part in zip(items, spec.parts, strict=True)]
    return value if all(map(operator.is_, parts, items)) else spec.make(parts)


def flatten(value: Any, promote: bool = False) -> tuple[list[Value], Spec]:
    """The run-time values inside ``value`` and its shape.

    >>> from tilewright.lang.numbers.numeric import Int32
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
    if isinstance(spec, CompoundSpec):
        parts = zip(spec.parts, spec.labels, spec.split(value), strict=True)
        return [n for part, label, item in parts for n in value_names(part, item, name + _identifier(label))]
    return object_names(value, name, len(spec.types()))


class ExtentName(str):
    """``a_shape0``, the name of an extent of the parameter ``array``, as opposed to a user's number of that name.
    ``mode``: of the array; None for a mode of a mode, which is not an extent of the array."""

    array = ""
    mode: int | None = None

    @classmethod
    def of(cls, array: str, path: str) -> ExtentName:
        made = cls(f"{array}_shape{path}")
        made.array, made.mode = array, int(path) if path.isdigit() else None
        return made


def object_names(value: Any, name: str, count: int) -> list[str]:
    """The same for one object with ``count`` values."""
    layout = getattr(value, "linear", None) or getattr(value, "layout", None)
    if count < 2 or layout is None:
        return [name] if count == 1 else [f"{name}_{i}" for i in range(count)]
    leaves: list[str] = [ExtentName.of(name, path) for path in _paths(getattr(layout, "shape", ()))]
    leaves += [f"{name}_stride{path}" for path in _paths(getattr(layout, "stride", ()))]
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
