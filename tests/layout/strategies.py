"""Random layouts, mostly the kinds that kernels use: nested, compact in some order, with holes or broadcasts."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tilewright.layout import Layout, flatten_to_tuple, make_ordered_layout, product, unflatten

EXTENTS = st.sampled_from([1, 2, 3, 4, 5, 6, 8])


def shapes(depth: int = 2, extents: st.SearchStrategy[int] = EXTENTS) -> st.SearchStrategy[Any]:
    """Shapes of rank 1 to 3 with at most ``depth`` further levels; small ones, as laws are checked at each element."""
    inner: st.SearchStrategy[Any] = extents
    for _ in range(depth):
        inner = st.one_of(extents, st.lists(inner, min_size=1, max_size=3).map(tuple))
    return inner.filter(lambda s: len(flatten_to_tuple(s)) <= 5 and product(s) <= 128)


@st.composite
def compact_layouts(draw: Any, extents: st.SearchStrategy[int] = EXTENTS) -> Layout:
    """Bijections onto [0, size): a shape with its leaves in a random stride order."""
    shape = draw(shapes(extents=extents))
    leaves = flatten_to_tuple(shape)
    order = draw(st.permutations(range(len(leaves))))
    flat = make_ordered_layout(leaves, tuple(order))
    return Layout(shape, unflatten(flat.stride, shape))


@st.composite
def injective_layouts(draw: Any) -> Layout:
    """Compact layouts spread out by gaps between the modes."""
    layout = draw(compact_layouts())
    leaves = sorted({d for d in flatten_to_tuple(layout.stride) if d})
    scale = {0: 0}
    factor = 1
    for d in leaves:
        factor *= draw(st.sampled_from([1, 1, 2, 3]))
        scale[d] = d * factor
    return Layout(layout.shape, unflatten([scale[d] for d in flatten_to_tuple(layout.stride)], layout.shape))


@st.composite
def any_layouts(draw: Any) -> Layout:
    """Any strides at all, broadcasts included."""
    shape = draw(shapes())
    strides = draw(st.lists(st.sampled_from([0, 1, 2, 3, 4, 7, 8, 12, 24]), min_size=5, max_size=5))
    return Layout(shape, unflatten(strides[: len(flatten_to_tuple(shape))], shape))
