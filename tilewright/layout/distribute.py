"""Spreading work over a shape, and questions about which mode is contiguous."""

from __future__ import annotations

import math
from typing import Any

from tilewright.errors import LayoutError
from tilewright.layout.coords import compact
from tilewright.layout.layout import Layout
from tilewright.layout.simplify import from_modes, merged
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import flatten_to_tuple, is_static, product


def domain_distribute(shape: Any, count: Any) -> Layout:
    """A layout of at most ``count`` coordinates that divides ``shape`` evenly, taking what each mode can give.

    >>> domain_distribute((15, 14), 6), domain_distribute((5, 7), 6)
    ((3,2):(1,15), 1:0)
    """
    flat = flatten_to_tuple(getattr(shape, "shape", shape))
    left = product(count)
    if not is_static(flat) or not is_static(left):
        raise LayoutError(f"domain_distribute({format_tree(flat)}, {format_tree(left)}): needs static extents")
    shapes = []
    for extent in flat:
        shapes.append(math.gcd(extent, left))
        left //= shapes[-1]
    return from_modes(*merged(tuple(shapes), compact(flat)))
