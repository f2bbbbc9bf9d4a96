"""Complement and inverses.

``complement(A, M)`` counts the copies of A that fill ``[0, M)``: it steps through the gaps that A leaves, so that
``(A, complement)`` is one-to-one. ``right_inverse`` answers "which coordinate has offset i" from 0 up to the first gap;
``left_inverse`` answers it for every offset that A has. All need strides that are static and sorted gap by gap:

    A = (2,2):(24,4)    strides 4, 24    gaps 4, then 24/4 = 6    left_inverse = (4,6,2):(0,2,1)
"""

from __future__ import annotations

import math
from itertools import takewhile
from typing import Any, NoReturn, overload

from tilewright.errors import LayoutError
from tilewright.layout.basis import ScaledBasis
from tilewright.layout.cache import remembered
from tilewright.layout.compose import compose, compose_layouts, composition
from tilewright.layout.composed import ComposedLayout, LayoutT, lifted
from tilewright.layout.coords import compact
from tilewright.layout.ints import divisor_of, exact_quotient, same_int
from tilewright.layout.layout import Layout, kept
from tilewright.layout.modes import cosize, size
from tilewright.layout.simplify import coalesce_shape, filter, from_modes, merged
from tilewright.layout.swizzle import Swizzle, compose_swizzle
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import flatten_to_tuple, is_static, same_tree, tiles_along


def complement_of(layout: Layout, cotarget: Any, covers: bool = True) -> tuple[Layout, int]:
    """:func:`complement` of a plain layout, and how many of its modes fill gaps; the last ones repeat what is filled.

    Without ``covers`` holes that no copy fills are let through. Run-time leaves are sorted and divided where that is
    certain.
    """
    modes: list[Any] = []
    if _collect_moving(modes, (layout.shape,), (layout.stride,)):
        modes.sort()
    else:
        modes = _by_stride(modes, f"complement({layout}, {format_tree(cotarget)})")
    shapes: list[Any] = []
    strides: list[Any] = []
    filled: Any = 1  # the offsets below it are those of the modes so far and of the copies in their gaps
    for stride, extent in modes:
        gap = _copies_below(layout, cotarget, stride, extent, filled, covers)
        if gap.__class__ is not int or gap > 1:
            shapes.append(gap)
            strides.append(filled)
        filled = stride * extent
    # The gaps never merge: each ends before the mode above it begins.
    gaps = len(shapes)
    both_static = cotarget.__class__ is int and filled.__class__ is int
    rest = -(-cotarget // filled) if both_static else coalesce_shape(tiles_along(cotarget, filled))
    if rest.__class__ is int:
        if rest != 1 or not shapes:
            shapes.append(rest)
            strides.append(filled)
        return from_modes(shapes, strides), gaps
    shapes += flatten_to_tuple(rest)
    strides += flatten_to_tuple(compact(rest, filled))
    return from_modes(*merged(tuple(shapes), tuple(strides))), gaps


def _copies_below(layout: Layout, cotarget: Any, stride: Any, extent: Any, filled: Any, covers: bool) -> Any:
    """How many copies of what fills the offsets below ``filled`` fit below the next mode's stride: 1 without a gap."""
    if stride.__class__ is not int or filled.__class__ is not int:
        copies = exact_quotient(stride, filled)
        if copies is None:
            below = f"{format_tree(filled)}, where the modes below it end,"
            why = f"whether the stride of {_mode(stride, extent)} is divisible by {below} is not known before run time"
            _cannot_fill(layout, cotarget, why)
    else:
        copies = stride // filled
        if covers and stride % filled and copies:
            why = f"no copy reaches the last {stride % filled} offsets below {_mode(stride, extent)}"
            _cannot_fill(layout, cotarget, why)
    if copies.__class__ is int and copies < 1:
        if stride < 0:
            _cannot_fill(layout, cotarget, "the layout is one with negative strides")
        why = f"{_mode(stride, extent)} begins below {filled}, where the modes under it end"
        _cannot_fill(layout, cotarget, f"the layout is not one-to-one, its modes nested: {why}")
    return copies


def _cannot_fill(layout: Layout, cotarget: Any, why: str) -> NoReturn:
    raise LayoutError(f"complement({layout}, {format_tree(cotarget)}): {why}")


def _collect_moving(modes: list[Any], shape: Any, stride: Any) -> bool:
    """Append (stride, extent) of the modes that move; gives whether all leaves are static."""
    static = True
    for s, d in zip(shape, stride):  # noqa: B905  (congruent by construction)
        if s.__class__ is tuple:
            static = _collect_moving(modes, s, d) and static
        elif s.__class__ is int and d.__class__ is int:
            if s != 1 and d != 0:
                modes.append((d, s))
        elif isinstance(d, ScaledBasis):
            raise LayoutError(f"complement({Layout(shape, stride)[0]}): a basis stride has no place among offsets")
        elif not (same_int(s, 1) or same_int(d, 0)):
            modes.append((d, s))
            static = False
    return static


def _by_stride(modes: list[Any], text: str) -> list[Any]:
    """Modes (stride, extent, ...) in the order of their strides.

    With run-time strides the next mode is one at whose end, or above it, all others are: their strides are multiples.
    """
    if all(mode[0].__class__ is int for mode in modes):
        return sorted(modes, key=lambda mode: mode[0])
    ordered = []
    rest = list(modes)
    while rest:
        lowest = next((mode for mode in rest if _is_below(mode, rest)), None)
        if lowest is None:
            unsorted = ", ".join(_mode(*mode[:2]) for mode in rest)
            raise LayoutError(f"{text}: which of {unsorted} has the smallest stride is not known before run time")
        ordered.append(lowest)
        rest = [mode for mode in rest if mode is not lowest]
    return ordered


def _is_below(mode: Any, modes: list[Any]) -> bool:
    end = mode[0] * mode[1]
    return all(other is mode or exact_quotient(other[0], end) is not None for other in modes)


def _mode(d: Any, s: Any) -> str:
    return f"the mode {format_tree(s)}:{format_tree(d)}"


def complement(input: Any, cotarget: Any = None, *, loc: Any = None, ip: Any = None) -> Layout:
    """The layout of the copies of ``input`` that fill ``cotarget`` (an int, a shape or a layout; default its cosize).

    Ordered, and disjoint from ``input`` except at 0; it covers at least ``cotarget`` (the last copy is rounded up).
    Raises LayoutError for a layout that is not one-to-one, apart from stride-0 modes, which are ignored.

    >>> complement(Layout(4, 2), 24), complement(Layout((2, 4), (4, 8)), 29)
    ((2,3):(1,8), 4:1)
    """
    if cotarget is None:
        cotarget = cosize(filter(input))
    elif cotarget.__class__ is int:
        if cotarget < 1:
            raise LayoutError(f"complement({input}, {cotarget}): what is to be filled must be positive")
    else:
        cotarget = getattr(cotarget, "shape", cotarget)
    layout = _outer_layout(input, "complement")
    if cotarget.__class__ is not int:
        return complement_of(layout, cotarget)[0]
    memo = layout._memo
    if memo is not None and cotarget in memo:
        return memo[cotarget]  # type: ignore[no-any-return]  # what kept() put there: a Layout
    return kept(layout, cotarget, complement_of(layout, cotarget)[0])


def _right_inverse(shapes: list[Any], strides: list[Any]) -> Layout:
    """From stride 1 on, the mode whose stride is where the modes so far end, while one is found: its extent, by the
    step of its coordinate in the 1-D coordinate."""
    by_stride: dict[int, tuple[Any, Any]] = {}
    runtime: list[tuple[Any, Any, Any]] = []
    step: Any = 1
    for s, d in zip(shapes, strides):  # noqa: B905  (congruent)
        if d.__class__ is not int:
            runtime.append((d, s, step))
        elif d not in by_stride:
            by_stride[d] = (s, step)
        step = step * s
    out_shapes: list[Any] = []
    out_strides: list[Any] = []
    reached: Any = 1
    while True:
        if reached.__class__ is int:
            following = by_stride.pop(reached, None)
        else:
            following = next(((s, step) for d, s, step in runtime if same_int(d, reached)), None)
        if following is None:
            break
        out_shapes.append(following[0])
        out_strides.append(following[1])
        reached = following[0] * reached
    # Nothing to coalesce: neighbours here would have been neighbours in the coalesced layout.
    return from_modes(out_shapes, out_strides) if out_shapes else Layout(1, 0)


def _outer_layout(input: Any, operation: str) -> Any:
    return input if input.__class__ is Layout else lifted(input, operation, lambda outer: outer).outer


def _inverse_composed(layout: ComposedLayout, name: str, inverse: Any) -> ComposedLayout:
    if not isinstance(layout.inner, Swizzle) or not (isinstance(layout.offset, int) and layout.offset == 0):
        raise LayoutError(f"{name}({layout}): only a swizzle with offset 0 over a layout can be inverted")
    return compose_swizzle(inverse(layout.outer), layout.inner)


@overload
def right_inverse(input: LayoutT, *, loc: Any = None, ip: Any = None) -> LayoutT: ...
@overload
def right_inverse(input: Any, *, loc: Any = None, ip: Any = None) -> Any: ...
def right_inverse(input: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The largest layout ``R`` with ``input(R(i)) == i`` for every index ``i`` of R; ``1:0`` without a stride of 1.

    >>> right_inverse(Layout((8, 4), (4, 1))), right_inverse(Layout((4, 2), (1, 8)))
    ((4,8):(8,1), 4:1)
    """
    if input is None or isinstance(input, Swizzle):
        return input
    if isinstance(input, ComposedLayout):
        return _inverse_composed(input, "right_inverse", right_inverse)
    layout = _outer_layout(input, "right_inverse")
    memo = layout._memo
    if memo is not None and "right_inverse" in memo:
        return memo["right_inverse"]
    return kept(layout, "right_inverse", _right_inverse(*merged(layout.shape, layout.stride)))


@remembered
def _left_inverse(static: bool, layout: Layout, _: None = None) -> Layout:
    """The modes in the order of their strides: each mode of the result counts the multiples of one stride up to the
    next one, and steps as the coordinate of the mode below does."""
    shapes, strides = merged(layout.shape, layout.stride)
    modes = []
    step: Any = 1
    for s, d in zip(shapes, strides, strict=True):
        if d.__class__ is int and d < 0:
            raise LayoutError(f"left_inverse({layout}): the stride {d} is negative")
        if isinstance(d, ScaledBasis):
            raise LayoutError(f"left_inverse({layout}): a basis stride has no place among offsets")
        if d.__class__ is not int or d:
            modes.append((d, s, step))
        step = step * s
    if not modes:
        return Layout(shapes[-1], 0)
    # The last mode reads past its end, unless a mode of size 1 follows it.
    unbounded = None if same_int(flatten_to_tuple(layout.shape)[-1], 1) else step
    modes = _by_stride(modes, f"left_inverse({layout})")
    out_shapes: list[Any] = []
    out_strides: list[Any] = [0]
    reached: Any = 1
    largest = 0
    for i, (d, s, step) in enumerate(modes):
        bridged = exact_quotient(d, reached)  # offsets from one stride to the next, in units of the smaller
        if bridged is None:
            smaller = f"is not divisible by the smaller {format_tree(reached)}"
            raise LayoutError(f"left_inverse({layout}): the stride {format_tree(d)} {smaller}")
        if static:
            # Where modes overlap, the digit read back here may be larger than any that was put in.
            largest += (s - 1) * d
            digit = largest // d if i + 1 == len(modes) else min(largest // d, modes[i + 1][0] // d - 1)
            if digit >= s and step * s != unbounded:
                raise LayoutError(f"left_inverse({layout}): coordinates share offsets in a way that no layout undoes")
        elif i + 1 < len(modes) and _overlap(d, s, modes[i + 1][0]):
            both = f"{_mode(d, s)} and {_mode(*modes[i + 1][:2])}"
            raise LayoutError(f"left_inverse({layout}): whether {both} share offsets is not known before run time")
        out_shapes.append(bridged)
        out_strides.append(step)
        reached = d
    out_shapes.append(modes[-1][1])
    return from_modes(*merged(tuple(out_shapes), tuple(out_strides)))


def _overlap(d: Any, s: Any, above: Any) -> bool:
    """Whether a mode and the one of stride ``above`` share offsets, as far as static ints tell, or start with the same
    ones."""
    return same_int(d, above) or (all(x.__class__ is int for x in (d, s, above)) and bool(s * d > above))


@overload
def left_inverse(input: LayoutT, *, loc: Any = None, ip: Any = None) -> LayoutT: ...
@overload
def left_inverse(input: Any, *, loc: Any = None, ip: Any = None) -> Any: ...
def left_inverse(input: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """A layout ``R`` with ``R(input(c)) == c`` (as 1-D index) for a one-to-one ``input``.

    In general ``input(R(input(c))) == input(c)``: of several coordinates with one offset R gives one, possibly past
    the end of the last mode. Offsets that ``input`` skips are bridged by stride-0 modes. A run-time extent is taken to
    end below the next larger stride.

    >>> left_inverse(Layout((2, 2), (24, 4))), left_inverse(Layout((8, 4), (4, 1)))
    ((4,6,2):(0,2,1), (4,8):(8,1))
    """
    if input is None or isinstance(input, Swizzle):
        return input
    if isinstance(input, ComposedLayout):
        return _inverse_composed(input, "left_inverse", left_inverse)
    return _left_inverse(_outer_layout(input, "left_inverse"))


def nullspace(layout: Any, *, loc: Any = None, ip: Any = None) -> Layout:
    """The layout of the 1-D coordinates that ``layout`` maps to 0: its stride-0 modes.

    >>> nullspace(Layout((4, 2, 3), (0, 1, 0)))
    (4,3):(1,8)
    """
    layout = _outer_layout(layout, "nullspace")
    flat = flatten_to_tuple(layout.shape)
    steps = compact(flat)
    picks = [
        (s, step)
        for s, step, d in zip(flat, steps, flatten_to_tuple(layout.stride), strict=True)
        if isinstance(d, int) and d == 0
    ]
    return from_modes([s for s, _ in picks], [step for _, step in picks]) if picks else Layout(1, 0)


def _common(a: Layout, b: Layout) -> tuple[Layout, int]:
    """The static part of the right inverse of ``b``, and how many of its first elements ``a`` also has in order."""
    a, b = _outer_layout(a, "max_common_layout"), _outer_layout(b, "max_common_layout")
    modes = list(takewhile(is_static, right_inverse(b)))
    inverse = from_modes([m.shape for m in modes], [m.stride for m in modes]) if modes else Layout(1, 0)
    try:
        together = compose_layouts(a, inverse.shape, inverse.stride, static=False)
    except LayoutError:
        return inverse, _run(a, inverse, size(inverse))
    shapes, strides = merged(together.shape, together.stride)
    d, s = strides[0], shapes[0]
    if d.__class__ is not int or d != 1:
        return inverse, 0
    try:
        compose(a, compose(inverse, Layout(s)))
    except LayoutError:
        return inverse, _run(a, inverse, s)
    return inverse, s


def _run(a: Layout, inverse: Layout, limit: Any) -> int:
    """The largest divisor of ``limit`` up to which ``a(inverse(i)) == i``, by trying; 0 when it cannot be tried."""
    if not is_static((a, inverse, limit)):
        return 0
    run = next((i for i in range(limit) if a(inverse(i)) != i), limit)
    return max((n for n in range(2, run + 1) if limit % n == 0), default=0)


def max_common_layout(a: Any, b: Any) -> Layout:
    """The longest layout ``R`` with ``a(R(i)) == b(R(i)) == i``: the elements that both keep contiguous and in order.

    >>> max_common_layout(Layout((4, 8), (1, 4)), Layout((4, 8), (1, 10)))
    4:1
    """
    if isinstance(a, ComposedLayout) or isinstance(b, ComposedLayout):
        limit = min(_chunk(a), _chunk(b))
        common = max_common_layout(getattr(a, "outer", a), getattr(b, "outer", b))
        while limit < size(common):  # the modes may not hold this many, but fewer
            try:
                return composition(common, limit)
            except LayoutError:
                limit //= 2
        return common
    inverse, count = _common(a, b)
    return composition(inverse, Layout(count, 1)) if count else Layout(1, 0)


def max_common_vector(a: Any, b: Any) -> int:
    """How many elements both layouts keep contiguous and in order: the widest vector for a copy between them.

    A swizzle ends the run at its chunk, unless both layouts have the same one: then both permute the run in the same
    way.

    >>> max_common_vector(Layout((4, 8), (1, 4)), Layout((4, 8), (1, 4)))
    32
    """
    if isinstance(a, ComposedLayout) or isinstance(b, ComposedLayout):
        count = max_common_vector(getattr(a, "outer", a), getattr(b, "outer", b))
        both = isinstance(a, ComposedLayout) and isinstance(b, ComposedLayout)
        same = both and a.inner == b.inner and same_tree(a.offset, b.offset)
        return count if same else min(count, _chunk(a), _chunk(b))
    return _common(a, b)[1] or 1


def _chunk(layout: Any) -> int:
    """Elements that a layout's inner function certainly leaves in place."""
    if not isinstance(layout, ComposedLayout):
        return 1 << 62
    if not isinstance(layout.inner, Swizzle):
        return 1
    return math.gcd(1 << layout.inner.base, divisor_of(layout.offset))
