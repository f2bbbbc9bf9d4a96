"""Coordinates to indices and back.

A shape gives every element three names: its natural coordinate (congruent to the shape), any coarser coordinate, and
the 1-D index that counts colexicographically (mode 0 fastest). A stride turns a coordinate into an offset by an inner
product.
"""

from __future__ import annotations

from typing import Any

from tilewright.errors import LayoutError
from tilewright.layout.basis import ScaledBasis, add_coords
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import flatten_to_tuple, product


def offset_of(coord: Any, shape: Any, stride: Any) -> Any:
    """The offset of ``coord`` in ``shape:stride``; every leaf of ``coord`` may be an index into a whole subtree."""
    if type(coord) is tuple:
        if type(shape) is not tuple or len(coord) != len(shape):
            raise LayoutError(
                f"coordinate {format_tree(coord)} does not fit the shape {format_tree(shape)}: "
                "use an index or one entry per mode"
            )
        result: Any = 0
        for c, s, d in zip(coord, shape, stride, strict=True):
            result = _add(result, _scale(c, d) if type(s) is not tuple and type(c) is not tuple else offset_of(c, s, d))
        return result
    if type(shape) is not tuple:
        return _scale(coord, stride)
    if type(coord) is int and coord < 0:
        return _negated(offset_of(-coord, shape, stride))  # layouts are odd functions, as in C
    result = 0
    last = len(shape) - 1
    for i, s in enumerate(shape):
        d = stride[i]
        if i < last:
            extent = product(s)
            if type(extent) is int and extent == 1:  # no division of a run-time coordinate
                if not isinstance(d, tuple | ScaledBasis):
                    continue
                part = 0  # which has a place in a coordinate
            else:
                part, coord = coord % extent, coord // extent
        else:
            part = coord
        result = _add(result, offset_of(part, s, d) if type(s) is tuple else _scale(part, d))
    return result


def _scale(coord: Any, stride: Any) -> Any:
    if type(stride) is int and stride == 0:
        return 0  # a run-time coordinate times a static zero is a static zero
    return coord * stride


def _negated(x: Any) -> Any:
    return tuple(map(_negated, x)) if isinstance(x, tuple) else -x


def _add(a: Any, b: Any) -> Any:
    if type(a) is int:
        if a == 0:
            return b
        if type(b) is int:
            return a + b
    if isinstance(a, tuple | ScaledBasis) or isinstance(b, tuple | ScaledBasis):
        return add_coords(a, b)
    return b + a if type(a) is int else a + b


def coord_of(index: Any, shape: Any, stride: Any) -> Any:
    """The coordinate with the profile of ``shape`` that has offset ``index`` under a compact ``stride``."""
    if type(shape) is tuple:
        if type(index) is tuple:
            if len(index) != len(shape):
                raise LayoutError(f"index {format_tree(index)} does not fit the shape {format_tree(shape)}")
            return tuple(map(coord_of, index, shape, stride))
        return tuple([coord_of(index, s, d) for s, d in zip(shape, stride, strict=True)])
    if type(index) is tuple:
        raise LayoutError(f"index {format_tree(index)} does not fit the shape {format_tree(shape)}")
    if type(shape) is int and shape == 1:
        return 0
    if type(stride) is int and stride == 0:
        raise LayoutError(f"no unique coordinate: the mode {format_tree(shape)}:0 maps everything to one offset")
    return index % shape if type(stride) is int and stride == 1 else index // stride % shape


def compact(shape: Any, current: Any = 1) -> Any:
    """Column-major strides of ``shape`` starting at ``current``; size-1 modes get stride 0.

    >>> compact((4, (2, 1), 3))
    (1, (4, 0), 8)
    """
    return _compact(shape, current)[0]


def compact_right(shape: Any) -> Any:
    """Row-major strides of ``shape``.

    >>> compact_right((4, (2, 1), 3))
    (6, (3, 0), 1)
    """
    return _reverse(compact(_reverse(shape)))


def _reverse(t: Any) -> Any:
    return tuple([_reverse(x) for x in reversed(t)]) if isinstance(t, tuple) else t


def _compact(shape: Any, current: Any) -> tuple[Any, Any]:
    if type(shape) is tuple:
        strides = []
        for s in shape:
            if type(s) is int:
                if s == 1:
                    strides.append(0)
                else:
                    strides.append(current)
                    current = current * s
            else:
                stride, current = _compact(s, current)
                strides.append(stride)
        return tuple(strides), current
    if type(shape) is int and shape == 1:
        return 0, current
    return current, current * shape


def compact_order(shape: Any, order: Any) -> Any:
    """Compact strides of ``shape`` whose modes grow in the order that ``order`` ranks them.

    Run-time ranks count as large, left to right. Equal ranks start at the same stride, as in CuTe.

    >>> compact_order((2, 3, 4), (2, 0, 1))
    (12, 1, 3)
    """
    ranks = list(flatten_to_tuple(order))
    large = max([r for r in ranks if type(r) is int], default=0)
    for i, r in enumerate(ranks):
        if type(r) is not int:
            ranks[i] = large = large + 1
    sizes: list[Any] = []
    _sizes_at(shape, order, sizes)
    position = iter(ranks)

    def strides(s: Any, o: Any) -> Any:
        if type(o) is tuple:
            return tuple([strides(x, y) for x, y in zip(s, o, strict=True)])
        rank = next(position)
        start: Any = 1
        for size, r in zip(sizes, ranks, strict=True):
            if r < rank:
                start = start * size
        return compact(s, start)

    return strides(shape, order)


def _sizes_at(shape: Any, order: Any, out: list[Any]) -> None:
    if type(order) is tuple:
        if type(shape) is not tuple or len(shape) != len(order):
            raise LayoutError(
                f"the order {format_tree(order)} does not have the profile of the shape {format_tree(shape)}"
            )
        for s, o in zip(shape, order, strict=True):
            _sizes_at(s, o, out)
    else:
        out.append(product(shape))


def crd2crd(coord: Any, src_shape: Any, dst_shape: Any) -> Any:
    """The coordinate into ``dst_shape`` with the same 1-D index as ``coord`` into ``src_shape``.

    >>> crd2crd(5, 8, (2, 4)), crd2crd((1, 2), (2, 4), 8)
    ((1, 2), 5)
    """
    if isinstance(coord, tuple) and isinstance(src_shape, tuple) and isinstance(dst_shape, tuple):
        return tuple(map(crd2crd, coord, src_shape, dst_shape))
    index = offset_of(coord, src_shape, compact(src_shape)) if isinstance(src_shape, tuple) else coord
    return coord_of(index, dst_shape, compact(dst_shape)) if isinstance(dst_shape, tuple) else index
