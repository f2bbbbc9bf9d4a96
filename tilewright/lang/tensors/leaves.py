"""The run-time integers inside layouts and coordinates: found, replaced, and left out of comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilewright.ir.core import Value
from tilewright.lang.numbers.facts import EXTENT_BOUND, Facts
from tilewright.lang.numbers.numeric import Integer
from tilewright.layout.basis import ScaledBasis
from tilewright.layout.composed import ComposedLayout
from tilewright.layout.layout import Layout


def dynamic_leaves(x: Any) -> list[Any]:
    if isinstance(x, Layout):
        return [*dynamic_leaves(x.shape), *dynamic_leaves(x.stride)]
    if isinstance(x, ComposedLayout):
        return [*dynamic_leaves(x.offset), *dynamic_leaves(x.outer)]
    if isinstance(x, tuple):
        leaves: list[Any] = []
        for part in x:
            if isinstance(part, Integer):
                leaves.append(part)
            elif type(part) is not int:
                leaves += dynamic_leaves(part)
        return leaves
    if isinstance(x, ScaledBasis):
        return dynamic_leaves(x.value)
    return [x] if isinstance(x, Integer) else []


def plain_values(leaves: list[Any]) -> list[Value]:
    return [x if isinstance(x, Value) else x.ir_value() for x in leaves]


def rebuild(x: Any, values: Iterator[Value], keep: bool = False) -> Any:
    """``x`` with its run-time leaves replaced, in order; with ``keep`` sign, divisor and bound stay known of them."""
    if isinstance(x, Layout):
        return Layout(rebuild(x.shape, values, True), rebuild(x.stride, values, True))
    if isinstance(x, ComposedLayout):
        return ComposedLayout(x.inner, rebuild(x.offset, values), rebuild(x.outer, values))
    if isinstance(x, tuple):
        return tuple([rebuild(part, values, keep) for part in x])
    if isinstance(x, ScaledBasis):
        return ScaledBasis(rebuild(x.value, values, keep), x.mode)
    if not isinstance(x, Integer):
        return x
    value = next(values)
    if value is x.value:
        return x
    made = type(x)(value)
    bound = EXTENT_BOUND[x.width] if is_extent(x) else None
    return made.learn(Facts(x.nonneg, x.divisibility, bound)) if keep else made


def is_extent(x: Integer) -> bool:
    """Whether ``x`` is known to be below the bound of extents and strides."""
    return x.facts.bound is not None and x.facts.bound <= EXTENT_BOUND.get(x.width, 0)


def pattern(x: Any) -> Any:
    """``x`` with run-time leaves as None: hashable and comparable."""
    if isinstance(x, Layout):
        return ("layout", pattern(x.shape), pattern(x.stride))
    if isinstance(x, ComposedLayout):
        return ("composed", x.inner, pattern(x.offset), pattern(x.outer))
    if isinstance(x, tuple):
        return tuple([part if type(part) is int else pattern(part) for part in x])
    if isinstance(x, ScaledBasis):
        return ("basis", pattern(x.value), x.mode)
    return None if isinstance(x, Integer) else x
