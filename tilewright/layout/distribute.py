"""Spreading work over a shape, and questions about which mode is contiguous."""

from __future__ import annotations

import math
from typing import Any

from tilewright.errors import LayoutError
from tilewright.layout.coords import compact
from tilewright.layout.layout import Layout
from tilewright.layout.simplify import from_modes, merged
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import find, find_if, flatten_to_tuple, is_static, product


def domain_distribute(shape: Any, count: Any) -> Layout:
    """A layout of at most ``count`` coordinates that divides ``shape`` evenly, taking what each mode can give.

    >>> domain_distribute((15, 14), 6), domain_distribute((5, 7), 6)
    ((3,2):(1,15), 1:0)
    """
    flat = flatten_to_tuple(getattr(shape, "shape", shape))
    rest = product(count)
    if not is_static(flat) or not is_static(rest):
        raise LayoutError(f"domain_distribute({format_tree(flat)}, {format_tree(rest)}): needs static extents")
    shapes = []
    for extent in flat:
        shapes.append(math.gcd(extent, rest))
        rest //= shapes[-1]
    return from_modes(*merged(tuple(shapes), compact(flat)))


def leading_dim(shape: Any, stride: Any) -> int | tuple[int, ...] | None:
    """The mode with static stride 1 (a path of indices if nested); modes of size 1 count only if no other has it.

    >>> leading_dim((8, 16), (16, 1)), leading_dim((4, (2, 8)), (16, (8, 1))), leading_dim((4, 4), (2, 8))
    (1, (1, 1), None)
    """
    extents = flatten_to_tuple(shape)
    position = iter(range(len(extents)))

    def unit(d: Any, _: tuple[int, ...]) -> bool:
        extent = extents[next(position)]
        return isinstance(d, int) and d == 1 and not (isinstance(extent, int) and extent == 1)

    mode = find_if(stride, unit)
    return find(stride, 1) if mode is None else mode


def is_major(mode: int | tuple[int, ...], stride: Any) -> bool:
    """Whether ``mode`` is the contiguous one, i.e. has static stride 1.

    >>> is_major(1, (16, 1)), is_major(0, (16, 1))
    (True, False)
    """
    for i in (mode,) if isinstance(mode, int) else mode:
        stride = stride[i]
    return isinstance(stride, int) and stride == 1
