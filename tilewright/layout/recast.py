"""Changing the element width of a layout, and how far it can be widened."""

from __future__ import annotations

import itertools
import math
from typing import Any, overload

from tilewright.errors import LayoutError
from tilewright.layout.basis import ScaledBasis
from tilewright.layout.cache import remembered
from tilewright.layout.composed import ComposedLayout, LayoutT
from tilewright.layout.divides import logical_divide
from tilewright.layout.ints import UNDECIDED, RuntimeInt, exact_quotient, same_int
from tilewright.layout.inverse import right_inverse
from tilewright.layout.layout import Layout
from tilewright.layout.simplify import coalesce, on_leaves
from tilewright.layout.swizzle import Swizzle
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import flatten_to_tuple, product


@remembered
def _upcast(static: bool, x: Any, n: int) -> Any:
    if isinstance(x, ComposedLayout):
        return ComposedLayout(_upcast(x.inner, n), _upcast(x.offset, n), _upcast(x.outer, n))
    if isinstance(x, Swizzle):
        base = x.base - _log2(x, n, "upcast")
        if base < 0 and x.shift < 0 and x.bits:
            raise LayoutError(f"upcast({x}, {n}): places within {n} elements decide where they go")
        return Swizzle(x.bits, base, x.shift) if base >= 0 else Swizzle(max(x.bits + base, 0), 0, x.shift)
    if isinstance(x, Layout):
        _check_units(x, n)
        return on_leaves(lambda s, d: _upcast_leaf(x, s, d, n), x)
    quotient = exact_quotient(x, n)
    if quotient is None:
        raise LayoutError(f"upcast: the offset {x} is not divisible by {n}")
    return quotient


def _check_units(x: Layout, n: int) -> None:
    """Steps smaller than a unit of ``n`` must together stay within one unit, from its first element on."""
    within = 0
    for s, d in zip(flatten_to_tuple(x.shape), flatten_to_tuple(x.stride), strict=True):
        if isinstance(d, int) and abs(d) % n and not same_int(s, 1):
            if d < 0:
                raise LayoutError(f"upcast({x}, {n}): the stride {d} steps backward through a unit of {n} elements")
            group = -(-n // d)
            within += (min(s, group) - 1 if isinstance(s, int) else group - 1) * d
    if within >= n:
        raise LayoutError(f"upcast({x}, {n}): modes that step within a unit of {n} elements reach {within}")


def _upcast_leaf(whole: Layout, s: Any, d: Any, n: int) -> tuple[Any, Any]:
    if isinstance(d, ScaledBasis):
        raise LayoutError(f"upcast({whole}, {n}): a basis stride has no element width")
    if isinstance(d, int):
        if d == 0:
            return s, 0
        width = abs(d)
        if width % n and n % width:
            raise LayoutError(f"upcast({whole}, {n}): neither of {n} and the stride {d} divides the other")
        group = -(-n // width)
        fewer = exact_quotient(s, group)
        if fewer is None:
            if not isinstance(s, int):
                question = f"whether the extent {format_tree(s)} is divisible by {group}"
                raise LayoutError(f"upcast({whole}, {n}): {question} {UNDECIDED}")
            if group % s:
                raise LayoutError(f"upcast({whole}, {n}): the extent {s} is not divisible by {group}")
            fewer = 1
        return fewer, (1 if d > 0 else -1) * -(-width // n)
    stride = exact_quotient(d, n)
    if stride is None:
        question = f"whether the stride of the mode {format_tree(s)}:{format_tree(d)} is divisible by {n}"
        raise LayoutError(f"upcast({whole}, {n}): {question} {UNDECIDED}")
    return s, stride


def _log2(x: Any, n: int, name: str) -> int:
    if n < 1 or n & (n - 1):
        raise LayoutError(f"{name}({x}, {n}): a swizzle can be widened only by a power of two")
    return n.bit_length() - 1


@overload
def upcast(input: LayoutT, n: int, *, loc: Any = None, ip: Any = None) -> LayoutT: ...
@overload
def upcast(input: Any, n: int, *, loc: Any = None, ip: Any = None) -> Any: ...
def upcast(input: Any, n: int, *, loc: Any = None, ip: Any = None) -> Any:
    """The layout in units of ``n`` elements: strides are divided by ``n``, contiguous modes become shorter.

    A swizzle loses what it permutes within a unit; a mode of fewer than ``n`` elements becomes one unit.

    >>> upcast(Layout((8, 4), (1, 8)), 4), upcast(Swizzle(3, 4, 3), 2)
    ((2,4):(1,2), Sw<3,3,3>)
    """
    return _upcast(input, _count(n, "upcast"))


def _count(n: Any, operation: str) -> int:
    if not isinstance(n, int) or n < 1:
        raise LayoutError(f"{operation}: {n!r} is not a positive number of elements")
    return n


@remembered
def _downcast(static: bool, x: Any, n: int) -> Any:
    if isinstance(x, ComposedLayout):
        return ComposedLayout(_downcast(x.inner, n), x.offset * n, _downcast(x.outer, n))
    if isinstance(x, Swizzle):
        return Swizzle(x.bits, x.base + _log2(x, n, "downcast"), x.shift)
    if isinstance(x, Layout):
        split = _contiguous_mode(x, n) if n != 1 else -1
        position = itertools.count()
        return on_leaves(lambda s, d: (s * n, 1 if same_int(s, 1) else d) if next(position) == split else (s, d * n), x)
    return x * n


def _contiguous_mode(x: Layout, n: int) -> int:
    """Which leaf of ``x`` steps by one element; one of size 1 only if no other does."""
    flat = list(zip(flatten_to_tuple(x.shape), flatten_to_tuple(x.stride), strict=True))
    unit = [i for i, (s, d) in enumerate(flat) if isinstance(d, int) and (d == 1 or (d == -1 and same_int(s, 1)))]
    moving = [i for i in unit if not same_int(flat[i][0], 1)]
    if not unit:
        raise LayoutError(f"downcast({x}, {n}): needs a mode of stride 1, whose elements can be split")
    if len(moving) > 1:
        raise LayoutError(f"downcast({x}, {n}): two modes step by one element, so that the layout is not one-to-one")
    return (moving or unit)[0]


@overload
def downcast(input: LayoutT, n: int, *, loc: Any = None, ip: Any = None) -> LayoutT: ...
@overload
def downcast(input: Any, n: int, *, loc: Any = None, ip: Any = None) -> Any: ...
def downcast(input: Any, n: int, *, loc: Any = None, ip: Any = None) -> Any:
    """The layout in units of one ``n``-th of an element: the contiguous mode becomes longer, other strides grow.

    >>> downcast(Layout((2, 4), (1, 2)), 4)
    (8,4):(1,8)
    """
    return _downcast(input, _count(n, "downcast"))


def recast_layout(new_type_bits: int, old_type_bits: int, src_layout: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The layout of the same bytes seen as elements of another width.

    >>> recast_layout(16, 8, Layout((16, 8), (1, 16))), recast_layout(8, 16, Layout((16, 8), (1, 16)))
    ((8,8):(1,8), (32,8):(1,32))
    """
    if min(new_type_bits, old_type_bits) < 1:
        raise LayoutError(f"recast_layout: elements of {old_type_bits} and {new_type_bits} bits: both must be positive")
    common = math.gcd(new_type_bits, old_type_bits)
    up, down = new_type_bits // common, old_type_bits // common
    result = upcast(src_layout, up) if up > 1 else src_layout
    return downcast(result, down) if down > 1 else result


def max_alignment(input: Any, *, loc: Any = None, ip: Any = None) -> int:
    """The widest unit in which the layout can be moved: all its offsets are in whole runs of ``n``, ``n`` apart.

    Run-time extents and strides are taken to be large multiples.

    >>> max_alignment(Layout((8, 4), (1, 32))), max_alignment(Layout((8, 4), (4, 32)))
    (8, 1)
    """
    if isinstance(input, ComposedLayout):
        if not isinstance(input.inner, Swizzle):
            return 1
        parts = (1 << input.inner.base, max_alignment(input.offset), max_alignment(input.outer))
        return math.gcd(*parts)
    if isinstance(input, Swizzle):
        return 1 << input.base
    if isinstance(input, int | RuntimeInt):
        return input if isinstance(input, int) else input.divisibility
    flat = coalesce(input)
    shapes = [s if isinstance(s, int) else 1 for s in flatten_to_tuple(flat.shape)]
    strides = [d if isinstance(d, int) else 0 for d in flatten_to_tuple(flat.stride)]
    static = Layout(tuple(shapes), tuple(strides)) if isinstance(flat.shape, tuple) else Layout(shapes[0], strides[0])
    permuted = logical_divide(static, right_inverse(static))
    return math.gcd(product(permuted.shape[0]), *flatten_to_tuple(permuted.stride[1]))
