"""Shapes of TensorSSAs: broadcasting and the groups of a reduction, as positions in colexicographic order."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.layout.coords import compact
from tilewright.layout.layout import Layout
from tilewright.layout.modes import idx2crd
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import flatten_to_tuple, product


def broadcast_shape(left: Any, right: Any) -> Any:
    """The shape of an elementwise result; numbers have none."""
    a, b = getattr(left, "shape", None), getattr(right, "shape", None)
    if a is None or b is None or a == b:
        return b if a is None else a
    one, other = a, b
    if isinstance(a, tuple) != isinstance(b, tuple) and product(a) != product(b):  # a vector is a tensor of one mode
        one, other = (x if isinstance(x, tuple) else (x,) for x in (a, b))
    return joined(one, other, a, b)


def joined(a: Any, b: Any, whole_a: Any, whole_b: Any) -> Any:
    """The shape to which both broadcast: extents of 1 and missing trailing modes stretch."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        n = max(len(a), len(b))
        a, b = a + (1,) * (n - len(a)), b + (1,) * (n - len(b))
        return tuple([joined(x, y, whole_a, whole_b) for x, y in zip(a, b, strict=True)])
    if isinstance(a, tuple) or isinstance(b, tuple):
        if a == 1 or b == 1:
            return b if a == 1 else a
        tree, leaf = (a, b) if isinstance(a, tuple) else (b, a)
        if product(tree) in (1, leaf):
            return leaf
    elif a == b or b == 1 or a == 1:
        return b if a == 1 else a
    raise ConstraintError(
        f"the shapes {format_tree(whole_a)} and {format_tree(whole_b)} do not broadcast: {a} against {b}"
    )


@lru_cache(1024)
def broadcast_picks(shape: Any, target: Any) -> tuple[int, ...]:
    """For every element of ``target`` the 1-D index of the element of ``shape`` that it repeats."""

    def strides(s: Any, d: Any, t: Any) -> Any:
        if isinstance(t, tuple) and isinstance(s, tuple):
            s, d = s + (1,) * (len(t) - len(s)), d + (0,) * (len(t) - len(d))
            if len(s) != len(t):
                raise mismatch
            return tuple([strides(*part) for part in zip(s, d, t, strict=True)])
        if isinstance(t, tuple):
            return _zeros(t) if s == 1 else compact(t, d) if product(t) == s else _raise(mismatch)
        if isinstance(s, tuple):
            return 0 if product(s) == 1 else _step(s, d) if product(s) == t else _raise(mismatch)
        return 0 if s == 1 else d if s == t else _raise(mismatch)

    mismatch = ConstraintError(f"the shape {format_tree(shape)} does not broadcast to {format_tree(target)}")
    source = shape if isinstance(shape, tuple) or not isinstance(target, tuple) else (shape,)
    plain = Layout(source)
    layout = Layout(target, strides(source, plain.stride, target))
    return tuple([layout(i) for i in range(product(target))])


def _raise(error: Exception) -> Any:
    raise error


def _step(s: Any, d: Any) -> Any:
    """The stride of the compact mode ``s:d`` where it is counted by one number: that of its first extent above 1."""
    pairs = zip(flatten_to_tuple(s), flatten_to_tuple(d), strict=True)
    return next(stride for extent, stride in pairs if extent != 1)


def _zeros(t: Any) -> Any:
    return tuple([_zeros(x) for x in t]) if isinstance(t, tuple) else 0


def rescaled(shape: Any, old: int, new: int) -> Any:
    """``shape`` with its first leaf counted in elements of ``new`` instead of ``old`` bits."""
    if isinstance(shape, tuple):
        return (rescaled(shape[0], old, new), *shape[1:])
    if shape * old % new:
        raise ConstraintError(f"bitcast: mode 0 of extent {shape} does not hold whole elements of {new} bits")
    return shape * old // new


@lru_cache(1024)
def reduction_groups(shape: Any, profile: Any) -> tuple[tuple[tuple[int, ...], ...], Any]:
    """(positions of each result's elements, shape of the results or None for one number)."""
    count = product(shape)
    if not isinstance(profile, tuple):
        if profile is None:
            return tuple((i,) for i in range(count)), shape
        return (tuple(range(count)),), None
    kept = _kept(shape, profile, shape, profile)
    if kept is None:
        return (tuple(range(count)),), None
    groups: dict[Any, list[int]] = {}
    for i in range(count):
        groups.setdefault(_key(idx2crd(i, shape), profile), []).append(i)
    return tuple(tuple(group) for group in groups.values()), kept


def _kept(shape: Any, profile: Any, whole: Any, outline: Any) -> Any:
    if profile is None:
        return shape
    if not isinstance(profile, tuple):
        return None
    if not isinstance(shape, tuple) or len(shape) != len(profile):
        raise ConstraintError(f"reduce: the profile {format_tree(outline)} does not fit the shape {format_tree(whole)}")
    parts = [_kept(s, p, whole, outline) for s, p in zip(shape, profile, strict=True)]
    parts = [p for p in parts if p is not None]
    return tuple(parts) if parts else None


def _key(coord: Any, profile: Any) -> Any:
    if profile is None:
        return coord
    if not isinstance(profile, tuple):
        return None
    return tuple([_key(c, p) for c, p in zip(coord, profile, strict=True)])
