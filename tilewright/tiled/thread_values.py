"""An instruction's thread-value table from first principles, in two ways.

``derive_tv_from_thread_value`` uses product and inverse: lay values under threads, invert, give it the shape
(threads, values). ``thrfrg`` uses divide and composition: cut the matrix into tiles, put a tile's table on each.
"""

from __future__ import annotations

from typing import Any

from tilewright.layout import (
    Layout,
    blocked_product,
    composition,
    left_inverse,
    make_layout,
    product,
    raked_product,
    size,
    with_shape,
    zipped_divide,
)


def derive_tv_from_thread_value(
    thr_layout: Layout,
    val_layout: Layout,
    repeat: tuple[int, ...] | None = None,
    thr_repeat: tuple[int, ...] | None = None,
) -> Layout:
    """(thread, value) -> coordinate, from (m, n) -> thread and (m, n) -> value: the way to an instruction's table.

    ``raked_product`` makes (m, n) -> thread + threads * value; its inverse, seen with the shape (threads, values), is
    the table of one tile. ``repeat`` stacks tiles by ``blocked_product``, and the repetitions become further values;
    ``thr_repeat`` stacks what results, and its repetitions become further threads.

    >>> thr, val = make_layout((8, 4), stride=(4, 1)), make_layout((1, 2), stride=(0, 1))
    >>> derive_tv_from_thread_value(thr, val)
    ((4,8),2):((16,1),8)
    >>> derive_tv_from_thread_value(thr, val, (2, 2))
    ((4,8),(2,2,2)):((32,1),(16,8,128))
    >>> derive_tv_from_thread_value(thr, val, None, (2, 1))
    (((4,8),2),2):(((32,1),8),16)
    """
    threads, values = size(thr_layout), size(val_layout)
    to_tv = raked_product(thr_layout, val_layout)
    if repeat is not None:
        to_tv = blocked_product(to_tv, make_layout(repeat))
        values *= product(repeat)
    if thr_repeat is None:
        result: Layout = with_shape(left_inverse(to_tv), (threads, values))
        return result
    to_tv = blocked_product(to_tv, make_layout(thr_repeat))
    table = with_shape(left_inverse(to_tv), (threads, values, product(thr_repeat)))
    return make_layout(make_layout(table[0], table[2]), table[1])


def thrfrg(layout: Any, tile: tuple[int, int], tv_layout: Layout, threads: tuple[int, int] = (1, 1)) -> Any:
    """(M, N, ...) as ((Thr, (ThrM, ThrN)), (Val, (RestM, RestN, ...))).

    ``tv_layout`` (thread, value) -> coordinate is the table of one ``tile``; ``threads`` is how many tiles are
    side by side for different threads, the others are the same threads' further values.

    Raises LayoutError where the tile cannot divide the layout.

    >>> tile = derive_tv_from_thread_value(make_layout((8, 4), stride=(4, 1)), make_layout((1, 2), stride=(0, 1)))
    >>> thrfrg(make_layout((16, 16)), (8, 8), tile)
    (((4,8),(1,1)),(2,(2,2))):(((32,1),(0,0)),(16,(8,128)))
    """
    by_tile = zipped_divide(layout, tuple(make_layout(extent) for extent in tile))
    by_thread = composition(by_tile, (tv_layout, None))
    return zipped_divide(by_thread, (None, tuple(make_layout(count) for count in threads)))
