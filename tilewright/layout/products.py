"""Products: repeating a layout.

``logical_product(A, T) = (A, complement(A, size(A)*cosize(T)) o T)``: the block A, and copies of it laid out as T lays
out its elements. ``blocked_product`` and ``raked_product`` pair the modes of block and tiler, block first or last.

The copies overlap only where the tiler, or two modes of it in a by-mode product, name one copy twice; the product is
then not one-to-one, and :func:`tilewright.layout.is_injective` tells. Where the steps of T do not divide the holes of
A, C++ returns copies at other places; here the product is refused.
"""

from __future__ import annotations

from typing import Any, overload

from tilewright.errors import LayoutError
from tilewright.layout.cache import remembered
from tilewright.layout.compose import compose_layouts
from tilewright.layout.composed import ComposedLayout, LayoutT, lifted
from tilewright.layout.coords import compact
from tilewright.layout.divides import unpacked, zipped
from tilewright.layout.drawable import LayoutOrTensor
from tilewright.layout.inverse import complement_of
from tilewright.layout.layout import Layout, make_ordered_layout
from tilewright.layout.modes import append, cosize, last_offset, rank, size
from tilewright.layout.simplify import by_mode
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import (
    as_int_tuple,
    as_tiler,
    extent_of_tiler,
    is_static,
    ones_at_zeros,
    product,
    product_each,
    tiles_along,
)


@remembered
def _logical_product(static: bool, block: Any, tiler: Any) -> Any:
    if block.__class__ is not Layout:
        return lifted(block, "logical_product", lambda outer: _logical_product(outer, tiler))
    return _product_mode(block, tiler, static)


def _product_mode(block: Layout, tiler: Any, static: bool) -> Layout:
    if tiler.__class__ is not Layout:
        if tiler is None:
            return block
        if tiler.__class__ is tuple:
            return by_mode(lambda mode, t: _product_mode(mode, t, static), block, tiler, "logical_product")
        tiler = Layout(extent_of_tiler(tiler, f"logical_product({block}, {tiler!r})"))
    count = last_offset(tiler.shape, tiler.stride) + 1
    try:
        gaps, inner = complement_of(block, product(block.shape) * count, covers=False)
        if static and count > size(gaps) and (inner == len(gaps) or size(gaps) == 1):
            # The holes of the block are not filled by copies of it: more copies than they hold are above the block.
            gaps, _ = complement_of(block, 2 * cosize(block), covers=False)
        copies = compose_layouts(gaps, tiler.shape, tiler.stride, static)
    except LayoutError as error:
        raise LayoutError(f"logical_product({block}, {tiler}): {error}") from None
    return Layout((block.shape, copies.shape), (block.stride, copies.stride))


def logical_product(block: LayoutOrTensor, tiler: Any, *, loc: Any = None, ip: Any = None) -> LayoutOrTensor:
    """``(block, copies)``, mode by mode for a tuple tiler.

    >>> logical_product(Layout((2, 2), (4, 1)), Layout(6))
    ((2,2),(2,3)):((4,1),(2,8))
    """
    return _logical_product(block, as_tiler(tiler))


def zipped_product(block: LayoutOrTensor, tiler: Any, *, loc: Any = None, ip: Any = None) -> LayoutOrTensor:
    """``((block...), (copies...))``.

    >>> zipped_product(Layout((4, 4)), (Layout(2), Layout(3)))
    ((4,4),(2,3)):((1,4),(4,1))
    """
    tiler = as_tiler(tiler)
    return zipped(_logical_product(block, tiler), tiler)


def tiled_product(block: LayoutOrTensor, tiler: Any, *, loc: Any = None, ip: Any = None) -> LayoutOrTensor:
    """``((block...), copies0, copies1, ...)``.

    >>> tiled_product(Layout(2), Layout((4, 2)))
    (2,4,2):(1,2,8)
    """
    return unpacked(zipped_product(block, tiler), 1)


def flat_product(block: LayoutOrTensor, tiler: Any, *, loc: Any = None, ip: Any = None) -> LayoutOrTensor:
    """``(block0, block1, ..., copies0, copies1, ...)``.

    >>> flat_product(Layout((2, 2)), Layout((3, 5)))
    (2,2,3,5):(1,2,4,12)
    """
    return unpacked(zipped_product(block, tiler), 0, 1)


def _paired(block: Any, tiler: Layout, block_first: bool, name: str) -> Any:
    if isinstance(block, ComposedLayout):
        return block.on_outer(lambda outer: _paired(outer, tiler, block_first, name))
    if not isinstance(tiler, Layout):
        raise LayoutError(f"{name}({block}, {format_tree(tiler)}): the tiler must be a layout")
    n = max(rank(block), rank(tiler))
    result = _logical_product(append(block, up_to_rank=n), append(tiler, up_to_rank=n))
    first, second = (0, 1) if block_first else (1, 0)
    are_tuples = [isinstance(x.shape, tuple) for x in ((block, tiler) if block_first else (tiler, block))]

    def pair(t: Any) -> Any:
        a, b = t[first], t[second]
        if n == 1 and not all(are_tuples):
            return ((a[0], b),) if are_tuples[0] else ((a, b),)
        return tuple(zip(a, b, strict=True))

    return Layout(pair(result.shape), pair(result.stride))


def blocked_product(block: LayoutOrTensor, tiler: Layout, *, loc: Any = None, ip: Any = None) -> LayoutOrTensor:
    """Copies of ``block`` side by side: mode i is (block_i, copies_i).

    >>> blocked_product(Layout((2, 5), (5, 1)), Layout((3, 4)))
    ((2,3),(5,4)):((5,10),(1,30))
    """
    return _paired(block, tiler, True, "blocked_product")


def raked_product(block: LayoutOrTensor, tiler: Layout, *, loc: Any = None, ip: Any = None) -> LayoutOrTensor:
    """Copies of ``block`` interleaved: mode i is (copies_i, block_i).

    >>> raked_product(Layout((2, 5), (5, 1)), Layout((3, 4)))
    ((3,2),(4,5)):((10,5),(30,1))
    """
    return _paired(block, tiler, False, "raked_product")


@overload
def tile_to_shape(atom: LayoutT, trg_shape: Any, order: Any = None, *, loc: Any = None, ip: Any = None) -> LayoutT: ...
@overload
def tile_to_shape(atom: Any, trg_shape: Any, order: Any = None, *, loc: Any = None, ip: Any = None) -> Any: ...
def tile_to_shape(atom: Any, trg_shape: Any, order: Any = None, *, loc: Any = None, ip: Any = None) -> Any:
    """``atom`` repeated until it has the shape ``trg_shape``; ``order`` ranks the modes to repeat along (0 first).

    >>> tile_to_shape(Layout((8, 64), (64, 1)), (128, 128), order=(0, 1))
    ((8,16),(64,2)):((64,512),(1,8192))
    """
    if isinstance(atom, ComposedLayout):
        return atom.on_outer(lambda outer: tile_to_shape(outer, trg_shape, order))
    target = product_each(as_int_tuple(trg_shape))
    if rank(atom) > len(target):
        raise LayoutError(f"tile_to_shape({atom}, {format_tree(trg_shape)}): the atom has more modes than the shape")
    padded = append(atom, up_to_rank=len(target))
    extents = product_each(padded.shape)
    for t, e in zip(target, extents, strict=True):
        if is_static(t) and is_static(e) and t % e:
            raise LayoutError(f"tile_to_shape({atom}, {format_tree(trg_shape)}): {t} is not divisible by {e}")
    copies = tiles_along(target, extents)
    ranks = tuple(range(len(target))) if order is None else as_int_tuple(order, "order")
    if isinstance(ranks, tuple) and len(set(ranks)) < len(ranks):
        order = format_tree(ranks)
        raise LayoutError(f"tile_to_shape: in the order {order} two modes have one rank: copies would alias")
    return blocked_product(padded, make_ordered_layout(copies, ranks))


def make_fragment_like_layout(layout: Any) -> Any:
    """The compact register layout for a fragment of ``layout``: mode 0 column-major, the others by source stride.

    >>> make_fragment_like_layout(Layout((8, (4, 4), 3), (48, (12, 3), 1)))
    (8,(4,4),3):(1,(96,24),8)
    """
    if isinstance(layout, ComposedLayout):
        layout = layout.outer
    if rank(layout) < 2 or not is_static(layout.shape):
        return Layout(layout.shape)
    first = layout[0]
    rest = make_ordered_layout(layout.shape[1:], layout.stride[1:])
    return tiled_product(Layout(first.shape, compact(ones_at_zeros(first.shape, first.stride))), rest)


def make_layout_tv(thr_layout: Layout, val_layout: Layout, *, loc: Any = None, ip: Any = None) -> tuple[Any, Layout]:
    """Tiler and thread-value layout of threads ``thr_layout`` that hold values ``val_layout`` each.

    The layout maps (thread, value) to the 1-D coordinate in the tile; the threads interleave the value blocks.

    >>> make_layout_tv(Layout((4, 8), (8, 1)), Layout((1, 4)))
    ((4, 32), ((8,4),4):((16,1),4))
    """
    from tilewright.layout.compose import composition
    from tilewright.layout.inverse import right_inverse

    tile = raked_product(thr_layout, val_layout)
    threads_values = Layout((size(thr_layout), size(val_layout)))
    return product_each(tile.shape), composition(right_inverse(tile), threads_values)
