"""Python objects as lists of run-time values, and back: what crosses function borders and control flow.

``spec_of(object)`` finds the shape of an object, its *spec*: where its run-time values sit and what stands still
around them. ``unify`` finds the shape that two objects share. Numerics, Python numbers, tuples, named tuples, lists,
dicts, dataclasses, raw IR values and objects with ``__extract_mlir_values__``/``__new_from_mlir_values__`` have
run-time parts; everything else is static.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.ir.core import Value
from tilewright.lang.numbers import facts
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.staging.objects import (
    LITERALS,
    accepts_literal,
    codec,
    describe,
    extract,
    has_protocol,
    is_record,
    labels_of,
    number_class,
    same_static,
)
from tilewright.lang.staging.specs import Compound, Mismatch, Number, Protocol, Raw, Spec, Static

_FIXED: set[type] = {str, bytes, type(None), type, complex, range, slice}


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


def _compound(value: Any, promote: bool) -> Spec:
    kind: type = type(value)
    split, make = codec(value)
    parts = [spec_of(item, promote) for item in split(value)]
    if all(isinstance(part, Static) for part in parts):
        return Static(value)
    return Compound(kind, labels_of(value), parts, split, make)


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
            split, make = codec(a)
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
            if same_static(a, b):
                return Static(a)
            return Number(first if first.width > second.width else second, True)
    elif first is second or (weak_b and accepts_literal(first, b)):
        return Number(first, False, _joined(a, b))
    elif weak_a and accepts_literal(second, a):
        return Number(second, False, _joined(a, b))
    raise Mismatch(path, describe(a), describe(b), hard=True)


def _joined(a: Any, b: Any) -> facts.Facts | None:
    """What holds of either of two integers."""
    known = [facts.of_number(int(x)) if type(x) in (bool, int) else getattr(x, "facts", None) for x in (a, b)]
    return facts.join(known[0], known[1]) if known[0] is not None and known[1] is not None else None


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
    if isinstance(spec, Compound):
        parts = zip(spec.parts, spec.labels, spec.split(value), strict=True)
        return [n for part, label, item in parts for n in value_names(part, item, name + _identifier(label))]
    return object_names(value, name, len(spec.types()))


def object_names(value: Any, name: str, count: int) -> list[str]:
    """The same for one object with ``count`` values."""
    layout = getattr(value, "linear", None) or getattr(value, "layout", None)
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
