"""Layouts as tuples of modes: picking, grouping, flattening, slicing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from tilewright.errors import LayoutError
from tilewright.layout.basis import ScaledBasis, add_coords
from tilewright.layout.composed import ComposedLayout, lifted
from tilewright.layout.coords import compact, coord_of, offset_of
from tilewright.layout.drawable import LayoutOrTensor
from tilewright.layout.ints import same_int
from tilewright.layout.layout import Layout
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import Coord, as_int_tuple, checked_rank, flatten_to_tuple, product, transform_leaf


def on_both(x: Any, f: Callable[[Any], Any]) -> Any:
    """``f`` on the tree ``x``, or on shape and stride of a layout, or on the outer layout of a composed one."""
    if isinstance(x, Layout):
        return Layout(f(x.shape), f(x.stride))
    if isinstance(x, ComposedLayout):
        return x.on_outer(lambda outer: on_both(outer, f))
    return f(x)


def _path(mode: Any) -> tuple[int, ...]:
    return () if mode is None else (mode,) if isinstance(mode, int) else tuple(mode)


@overload
def get(input: LayoutOrTensor, mode: Any, *, loc: Any = None, ip: Any = None) -> LayoutOrTensor: ...
@overload
def get(input: Any, mode: Any, *, loc: Any = None, ip: Any = None) -> Any: ...
def get(input: Any, mode: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Mode ``mode`` (an index, or a path of indices from the outside in) of a tree or layout.

    >>> get(Layout((4, (2, 3)), (1, (4, 8))), [1, 0]), get((4, (2, 3)), 1)
    (2:4, (2, 3))
    """
    path = _path(mode)

    def pick(t: Any) -> Any:
        for i in path:
            n = len(t) if isinstance(t, tuple) else 1
            if not -n <= i < n:
                raise LayoutError(f"get: mode {list(path)} is out of range in {format_tree(input)}")
            t = t[i] if isinstance(t, tuple) else t
        return t

    return on_both(input, pick)


@overload
def select(input: LayoutOrTensor, mode: Any, *, loc: Any = None, ip: Any = None) -> LayoutOrTensor: ...
@overload
def select(input: Any, mode: Any, *, loc: Any = None, ip: Any = None) -> Any: ...
def select(input: Any, mode: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """A tree or layout of the top-level modes listed in ``mode``.

    >>> select(Layout((4, 8, 3), (1, 4, 32)), mode=[0, 2])
    (4,3):(1,32)
    """
    picks = _path(mode)
    return on_both(input, lambda t: tuple([get(t, i) for i in picks]))


@overload
def group_modes(
    input: LayoutOrTensor, begin: int, end: int | None = -1, *, loc: Any = None, ip: Any = None
) -> LayoutOrTensor: ...
@overload
def group_modes(input: Any, begin: int, end: int | None = -1, *, loc: Any = None, ip: Any = None) -> Any: ...
def group_modes(input: Any, begin: int, end: int | None = -1, *, loc: Any = None, ip: Any = None) -> Any:
    """Modes ``begin`` up to ``end`` (exclusive; -1 or None: to the last) wrapped into one.

    >>> group_modes(Layout((2, 3, 5, 7)), 1, 3)
    (2,(3,5),7):(1,(2,6),30)
    """
    n = rank(input)
    stop = n if end is None or end == -1 else end
    if not 0 <= begin <= stop <= n:
        raise LayoutError(f"group_modes: [{begin}, {stop}) is not a range of the {n} modes of {format_tree(input)}")

    def group(t: Any) -> Any:
        t = t if isinstance(t, tuple) else (t,)
        return (*t[:begin], t[begin:stop], *t[stop:]) if stop > begin else t

    return on_both(input, group)


@overload
def flatten(a: LayoutOrTensor, *, loc: Any = None, ip: Any = None) -> LayoutOrTensor: ...
@overload
def flatten(a: Any, *, loc: Any = None, ip: Any = None) -> Any: ...
def flatten(a: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Every leaf a mode of its own; a scalar stays scalar.

    >>> flatten(Layout((2, (2, 2)), (4, (2, 1))))
    (2,2,2):(4,2,1)
    """
    return on_both(a, lambda t: flatten_to_tuple(t) if isinstance(t, tuple) else t)


@overload
def append(
    input: LayoutOrTensor, elem: Any = None, up_to_rank: int | None = None, *, loc: Any = None, ip: Any = None
) -> LayoutOrTensor: ...
@overload
def append(input: Any, elem: Any = None, up_to_rank: int | None = None, *, loc: Any = None, ip: Any = None) -> Any: ...
def append(input: Any, elem: Any = None, up_to_rank: int | None = None, *, loc: Any = None, ip: Any = None) -> Any:
    """``input`` with ``elem`` as further last mode, or as many as make its rank ``up_to_rank``.

    ``elem`` defaults to ``1:0`` for a layout and 1 for a tree.

    >>> append(Layout(8), Layout(4, 8)), append(Layout((8,), (1,)), up_to_rank=3)
    ((8,4):(1,8), (8,1,1):(1,0,0))
    """
    return _pad(input, elem, up_to_rank, after=True)


@overload
def prepend(
    input: LayoutOrTensor, elem: Any = None, up_to_rank: int | None = None, *, loc: Any = None, ip: Any = None
) -> LayoutOrTensor: ...
@overload
def prepend(input: Any, elem: Any = None, up_to_rank: int | None = None, *, loc: Any = None, ip: Any = None) -> Any: ...
def prepend(input: Any, elem: Any = None, up_to_rank: int | None = None, *, loc: Any = None, ip: Any = None) -> Any:
    """``input`` with ``elem`` as further first mode, or as many as make its rank ``up_to_rank``.

    >>> prepend(Layout(8), Layout(4, 8))
    (4,8):(8,1)
    """
    return _pad(input, elem, up_to_rank, after=False)


@overload
def append_ones(
    t: LayoutOrTensor, up_to_rank: int | None = None, *, loc: Any = None, ip: Any = None
) -> LayoutOrTensor: ...
@overload
def append_ones(t: Any, up_to_rank: int | None = None, *, loc: Any = None, ip: Any = None) -> Any: ...
def append_ones(t: Any, up_to_rank: int | None = None, *, loc: Any = None, ip: Any = None) -> Any:
    """:func:`append` of size-1 modes.

    >>> append_ones((4, 8), 3)
    (4, 8, 1)
    """
    return append(t, None, up_to_rank)


@overload
def prepend_ones(
    t: LayoutOrTensor, up_to_rank: int | None = None, *, loc: Any = None, ip: Any = None
) -> LayoutOrTensor: ...
@overload
def prepend_ones(t: Any, up_to_rank: int | None = None, *, loc: Any = None, ip: Any = None) -> Any: ...
def prepend_ones(t: Any, up_to_rank: int | None = None, *, loc: Any = None, ip: Any = None) -> Any:
    """:func:`prepend` of size-1 modes.

    >>> prepend_ones((4, 8), 3)
    (1, 4, 8)
    """
    return prepend(t, None, up_to_rank)


def _pad(x: Any, elem: Any, up_to_rank: int | None, after: bool) -> Any:
    if isinstance(x, ComposedLayout):
        return x.on_outer(lambda outer: _pad(outer, elem, up_to_rank, after))
    n = rank(x)
    count = 1 if up_to_rank is None else checked_rank(up_to_rank, "append/prepend") - n
    if count < 0:
        raise LayoutError(f"append/prepend: {format_tree(x)} already has more than {up_to_rank} modes")
    if count == 0:
        return x

    def extend(t: Any, e: Any) -> Any:
        t = t if isinstance(t, tuple) else (t,)
        return t + (e,) * count if after else (e,) * count + t

    if isinstance(x, Layout):
        elem = Layout(1, 0) if elem is None else elem
        if not isinstance(elem, Layout):
            raise LayoutError(f"append/prepend: {format_tree(elem)} is not a layout, as {x} is")
        return Layout(extend(x.shape, elem.shape), extend(x.stride, elem.stride))
    return extend(x, 1 if elem is None else elem)


def _as_shape(a: Any) -> Any:
    if isinstance(a, tuple) and any(not isinstance(x, int) for x in a):  # a tiler may have layouts in it
        return tuple(_as_shape(x) for x in a)
    return a.shape if hasattr(a, "shape") else a


def shape(input: Any, *, mode: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """The shape of a layout or tree, or of one of its modes.

    >>> shape((2, (3, 4)), mode=[1])
    (3, 4)
    >>> shape((Layout(4, 2), 8))
    (4, 8)
    """
    return get(_as_shape(input), mode)


def stride(input: Any, *, mode: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """The stride of a layout, or of one of its modes.

    >>> from tilewright.layout import Layout
    >>> stride(Layout((2, (3, 4)), (12, (4, 1))), mode=[1, 0])
    4
    """
    if not hasattr(input, "stride"):
        lifted(input, "stride", stride)
    return get(input.stride, mode)


def size(a: Any, mode: Any = None, *, loc: Any = None, ip: Any = None) -> Any:
    """Number of elements of a layout, a shape or of the given modes of it; of a tiled copy or MMA, its threads.

    >>> size(Layout((4, (2, 3)))), size((4, (2, 3)), mode=[1])
    (24, 6)
    """
    if mode is None and not hasattr(a, "shape") and isinstance(getattr(type(a), "size", None), property):
        return a.size
    return product(get(_as_shape(a), mode))


def rank(a: Any, mode: Any = None, *, loc: Any = None, ip: Any = None) -> int:
    """Number of top-level modes (1 for a scalar).

    >>> rank((2, (3, 4))), rank((2, (3, 4)), [1]), rank(7)
    (2, 2, 1)
    """
    t = get(_as_shape(a), mode)
    return len(t) if isinstance(t, tuple) else 1


def depth(a: Any, mode: Any = None, *, loc: Any = None, ip: Any = None) -> int:
    """Nesting depth: 0 for a scalar, 1 for a flat tuple, also an empty one.

    >>> depth(7), depth((2, 3)), depth((2, (3, 4)))
    (0, 1, 2)
    """
    t = get(_as_shape(a), mode)
    return 1 + max(map(depth, t), default=0) if isinstance(t, tuple) else 0


def coshape(layout: Any, mode: Any = None, *, loc: Any = None, ip: Any = None) -> Any:
    """The smallest shape that holds every result of the layout; a tuple for basis strides.

    >>> coshape(Layout((4, 8), (1, 10)))
    74
    """
    layout = get(layout, mode)
    if layout.__class__ is not Layout:
        layout = lifted(layout, "coshape", lambda outer: outer).outer
    largest = last_offset(layout.shape, layout.stride)
    return transform_leaf(lambda c: c + 1, largest.to_tuple() if isinstance(largest, ScaledBasis) else largest)


def last_offset(s: Any, d: Any) -> Any:
    """The largest result with every stride taken as positive."""
    if type(s) is tuple:
        result: Any = 0
        for x, y in zip(s, d, strict=True):
            part = last_offset(x, y)
            result = add_coords(result, part)
        return result
    if type(d) is int:
        return (s - 1) * (d if d >= 0 else -d) if d else 0
    return (s - 1) * (abs(d) if isinstance(d, ScaledBasis) else d)


def cosize(a: Any, mode: Any = None, *, loc: Any = None, ip: Any = None) -> Any:
    """Size of the codomain: the largest offset plus one. Of a composed layout, that of the layout below its swizzle,
    which may move offsets further, to :meth:`Swizzle.reach` of it.

    >>> cosize(Layout((4, (3, 2)), (2, (8, 1))))
    24
    """
    return product(coshape(a, mode))


def is_compatible(a: Any, b: Any) -> bool:
    """Whether every coordinate of shape ``a`` is also one of shape ``b``: equal sizes at every leaf of ``a``.

    >>> is_compatible(24, (4, 6)), is_compatible((4, 6), ((2, 2), 6)), is_compatible((4, 6), 24)
    (True, True, False)
    """
    a, b = _as_shape(a), _as_shape(b)
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(is_compatible, a, b))
    return same_int(a, product(b))


def crd2idx(coord: Coord, layout: Any, stride: Any = None, *, loc: Any = None, ip: Any = None) -> Any:
    """The offset of ``coord`` in a layout, or in ``shape:stride`` (column-major without a stride).

    >>> crd2idx((1, 2), Layout((4, 8), (1, 10))), crd2idx((1, 2), (4, 8))
    (21, 9)
    """
    if isinstance(layout, Layout | ComposedLayout):
        return layout(coord)
    return offset_of(as_int_tuple(coord), layout, compact(layout) if stride is None else stride)


def idx2crd(idx: Any, shape: Any, stride: Any = None, *, loc: Any = None, ip: Any = None) -> Coord:
    """The coordinate in ``shape`` (a shape or a compact layout) of the index ``idx``.

    ``idx`` may be a coordinate with an index for each mode: those of nested modes are then resolved, each by itself.

    >>> idx2crd(11, (4, (2, 3))), idx2crd(3, Layout((4, 8), (8, 1))), idx2crd((1, 5), (4, (2, 3)))
    ((3, (0, 1)), (0, 3), (1, (1, 2)))
    """
    if isinstance(shape, Layout):
        shape, stride = shape.shape, shape.stride
    if stride is None and not isinstance(shape, tuple):
        return idx
    if stride is None and isinstance(idx, tuple):
        if len(idx) != len(shape):
            raise LayoutError(f"index {format_tree(idx)} does not fit the shape {format_tree(shape)}")
        return tuple(map(idx2crd, idx, shape))
    return coord_of(idx, shape, compact(shape) if stride is None else stride)


def _slice_tree(c: Coord, t: Any, keep_none: bool) -> tuple[Any, ...]:
    """The parts of ``t`` that meet a None (``keep_none``) or no None, as a tuple to be concatenated."""
    if isinstance(c, tuple):
        if not isinstance(t, tuple) or len(c) != len(t):
            raise LayoutError(f"coordinate {format_tree(c)} does not fit {format_tree(t)}")
        return tuple([x for ci, ti in zip(c, t, strict=True) for x in _slice_tree(ci, ti, keep_none)])
    return (t,) if (c is None) == keep_none else ()


def modes_at(c: Coord, t: Any, keep_none: bool) -> Any:
    """The modes of the tree ``t`` where ``c`` has None, or those where it has none (``keep_none`` is False)."""
    # A scalar coordinate keeps or drops the whole; a tuple always leaves a tuple behind, nested tuples dissolve.
    parts = _slice_tree(c, t, keep_none)
    return parts if isinstance(c, tuple) or not parts else parts[0]


def dice(src: Any, dicer: Coord) -> Any:
    """The modes of ``src`` where ``dicer`` has *no* None: what ``slice_`` leaves out.

    >>> dice(Layout((4, 8, 3), (1, 4, 32)), (1, None, 1))
    (4,3):(1,32)
    """
    return on_both(src, lambda t: modes_at(dicer, t, False))


def zeros_for_none(c: Coord) -> Coord:
    """``c`` with every None replaced by 0."""
    return tuple(map(zeros_for_none, c)) if isinstance(c, tuple) else 0 if c is None else c


def domain_offset(coord: Coord, layout: Any) -> tuple[Any, Any]:
    """The layout moved so that its origin is at ``coord``: the (possibly changed) layout and the offset to add.

    Along modes where ``coord`` has None it is not moved.

    >>> domain_offset((1, 2), Layout((4, 8), (1, 10))), domain_offset((None, 2), Layout((4, 8), (1, 10)))
    (((4,8):(1,10), 21), ((4,8):(1,10), 20))
    """
    coord = zeros_for_none(coord)
    if isinstance(layout, ComposedLayout):
        moved = add_coords(layout.offset, layout.outer(coord))
        return ComposedLayout(layout.inner, moved, layout.outer), 0
    return layout, layout(coord)
