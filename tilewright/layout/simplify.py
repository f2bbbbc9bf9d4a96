"""Simplifying a layout without changing the function it is.

Two neighbouring modes ``s0:d0`` and ``s1:d1`` are one mode ``s0*s1 : d0`` exactly when ``d1 == s0*d0``; a mode of size
1 contributes nothing. :func:`coalesce` applies both rules until neither fits:

    (2,(3,1)):(1,(2,6))  ->  6:1          (2,4):(2,4)  ->  8:2          (4,2):(4,2)  stays

Only static leaves decide: ``(4,?):(1,4)`` stays as it is, so that the extent 4 remains known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from tilewright.errors import LayoutError
from tilewright.layout.cache import remembered
from tilewright.layout.composed import ComposedLayout, lifted
from tilewright.layout.drawable import LayoutOrTensor
from tilewright.layout.layout import Layout, kept
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import flatten_to_tuple, is_static, ones_at_zeros, unflatten


def merged(shape: Any, stride: Any, extend: bool = False) -> tuple[list[Any], list[Any]]:
    """Coalesced flat modes. ``extend`` keeps a last mode of size 1 (as 2), which defines the layout past its end."""
    if shape.__class__ is not tuple:
        return [2 if extend and shape.__class__ is int and shape == 1 else shape], [stride]
    shapes: list[Any] = []
    strides: list[Any] = []
    following = _merge_into(shapes, strides, shape, stride, None)
    if extend:
        while shape.__class__ is tuple:
            shape, stride = shape[-1], stride[-1]
        if shape.__class__ is int and shape == 1:
            _merge_into(shapes, strides, (2,), (stride,), following)
    return (shapes, strides) if shapes else ([1], [0])


def _merge_into(shapes: list[Any], strides: list[Any], shape: Any, stride: Any, following: Any) -> Any:
    """Append modes, or lengthen the last one if they continue at ``following``; returns where the last one ends.

    That is None where it is not known now: a mode with a run-time leaf neither continues nor is continued.
    """
    for s, d in zip(shape, stride):  # noqa: B905  (congruent by construction; strict costs time here)
        if s.__class__ is tuple:
            following = _merge_into(shapes, strides, s, d, following)
        elif s.__class__ is not int or (d.__class__ is not int and not is_static(d)):
            if s.__class__ is not int or s != 1:
                shapes.append(s)
                strides.append(d)
                following = None
        elif s != 1:
            if d == following:
                shapes[-1] *= s
            else:
                shapes.append(s)
                strides.append(d)
            following = s * d
    return following


def from_modes(shapes: list[Any], strides: list[Any]) -> Layout:
    """A layout of flat coalesced modes: a single mode is scalar, and a single mode of size 1 is ``1:0``."""
    if len(shapes) > 1:
        return Layout(tuple(shapes), tuple(strides))
    s = shapes[0]
    return Layout(1, 0) if s.__class__ is int and s == 1 else Layout(s, strides[0])


def _coalesce(layout: Any, profile: Any = None) -> Any:
    if layout.__class__ is not Layout:
        return lifted(layout, "coalesce", lambda outer: _coalesce(outer, profile))
    if profile.__class__ is tuple:
        return by_mode(_coalesce, layout, profile, "coalesce")
    return from_modes(*merged(layout.shape, layout.stride))


def on_leaves(f: Callable[[Any, Any], tuple[Any, Any]], layout: Layout) -> Layout:
    """``f`` of extent and stride of every leaf gives the new ones."""
    pairs = list(map(f, flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride)))
    return Layout(unflatten([s for s, _ in pairs], layout.shape), unflatten([d for _, d in pairs], layout.shape))


def by_mode(f: Callable[[Layout, Any], Any], layout: Layout, guides: tuple[Any, ...], name: str) -> Layout:
    """``f`` on the leading modes with the tilers or profiles ``guides``; further modes stay."""
    modes = list(layout)
    if len(guides) > len(modes):
        text = format_tree(guides)
        raise LayoutError(f"{name}({layout}, {text}): {text} has more modes than the layout")
    for i, guide in enumerate(guides):
        modes[i] = f(modes[i], guide)
    return Layout(tuple([m.shape for m in modes]), tuple([m.stride for m in modes]))


@overload
def coalesce(
    input: LayoutOrTensor, *, target_profile: Any = None, loc: Any = None, ip: Any = None
) -> LayoutOrTensor: ...
@overload
def coalesce(input: Any, *, target_profile: Any = None, loc: Any = None, ip: Any = None) -> Any: ...
def coalesce(input: Any, *, target_profile: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """The shortest flat layout that is the same function of the 1-D index.

    With ``target_profile`` only the modes below each of its leaves are coalesced, so that the rank survives.

    >>> from tilewright.layout import make_layout
    >>> coalesce(Layout((2, (3, 1)), (1, (2, 6)))), coalesce(Layout((4, 2), (4, 2)))
    (6:1, (4,2):(4,2))
    >>> coalesce(Layout(((2, 4), (3, 5)), ((1, 2), (8, 30))), target_profile=(1, 1))
    (8,(3,5)):(1,(8,30))
    """
    if target_profile is None and input.__class__ is Layout:
        memo = input._memo
        if memo is not None and "coalesce" in memo:
            return memo["coalesce"]
        return kept(input, "coalesce", from_modes(*merged(input.shape, input.stride)))
    return _coalesce(input, target_profile)


def coalesce_shape(shape: Any) -> Any:
    """A shape with neighbouring static extents multiplied together, and neighbouring run-time extents likewise.

    >>> coalesce_shape((2, (3, 4)))
    24
    """
    out: list[Any] = []
    for s in flatten_to_tuple(shape):
        if out and (out[-1].__class__ is int) == (s.__class__ is int):
            out[-1] = out[-1] * s
        else:
            out.append(s)
    return out[0] if len(out) == 1 else tuple(out)


@overload
def filter_zeros(
    input: LayoutOrTensor, *, target_profile: Any = None, loc: Any = None, ip: Any = None
) -> LayoutOrTensor: ...
@overload
def filter_zeros(input: Any, *, target_profile: Any = None, loc: Any = None, ip: Any = None) -> Any: ...
def filter_zeros(input: Any, *, target_profile: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Modes of stride 0 become size 1: what is left are the elements that differ.

    With ``target_profile`` its zeros, not those of the stride, say which modes.

    >>> filter_zeros(Layout((4, 2), (0, 1)))
    (1,2):(0,1)
    """
    if isinstance(input, ComposedLayout):
        return input.on_outer(lambda outer: filter_zeros(outer, target_profile=target_profile))
    if isinstance(input, Layout):
        guide = input.stride if target_profile is None else target_profile
        return Layout(ones_at_zeros(input.shape, guide), input.stride)
    return ones_at_zeros(input, input if target_profile is None else target_profile)


@remembered
def _filter(static: bool, layout: Any, profile: Any = None) -> Any:
    if not isinstance(layout, Layout):
        return lifted(layout, "filter", lambda outer: _filter(outer, profile))
    if isinstance(profile, tuple):
        return by_mode(_filter, layout, profile, "filter")
    return _coalesce(filter_zeros(layout))


@overload
def filter(input: LayoutOrTensor, *, target_profile: Any = None, loc: Any = None, ip: Any = None) -> LayoutOrTensor: ...
@overload
def filter(input: Any, *, target_profile: Any = None, loc: Any = None, ip: Any = None) -> Any: ...
def filter(input: Any, *, target_profile: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Stride-0 and size-1 modes removed, the rest coalesced; ``1:0`` when nothing is left.

    >>> filter(Layout((4, (1, 2), 3), (1, (7, 0), 4)))
    12:1
    """
    return _filter(input) if target_profile is None else _filter(input, target_profile)
