"""More functions of trees by their documented names: wrapping, filtering, and the coordinate behind another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.errors import LayoutError
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import flatten_to_tuple, is_congruent, transform_apply, tuple_cat, unflatten


def filter_tuple(*args: Any, f: Callable[..., tuple[Any, ...]]) -> tuple[Any, ...]:
    """The tuples ``f(a0, b0)``, ``f(a1, b1)``, ... one after another: ``f`` gives an empty one for what it leaves out.

    >>> filter_tuple((1, 2, 3, 4), f=lambda x: (x,) if x % 2 == 0 else ())
    (2, 4)
    """
    return transform_apply(*args, f=f, g=tuple_cat)  # type: ignore[no-any-return]  # what tuple_cat gives


def wrap(x: Any) -> tuple[Any, ...]:
    """A tuple as it is, anything else as a tuple of it.

    >>> wrap(3), wrap((3, 4))
    ((3,), (3, 4))
    """
    return x if isinstance(x, tuple) else (x,)


def unwrap(x: Any) -> Any:
    """The element of a tuple that has one, anything else as it is.

    >>> unwrap((1,)), unwrap(((1, 2, 3),)), unwrap((1, 2, 3))
    (1, (1, 2, 3), (1, 2, 3))
    """
    return x[0] if isinstance(x, tuple) and len(x) == 1 else x


def front(input: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The first leaf of a tree; of a layout its first mode that has no modes of its own, as a layout.

    >>> from tilewright.layout import Layout
    >>> front(((3, 4), 5)), front(6), front(Layout(((2, 4), 8), ((1, 16), 2)))
    (3, 6, 2:1)
    """
    while isinstance(getattr(input, "shape", input), tuple):
        if not getattr(input, "shape", input):
            raise LayoutError("front: an empty tuple has no first element")
        input = input[0]
    return input


def increment_coord(coord: Any, shape: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The coordinate behind ``coord``: the leftmost mode goes on; at its end it begins again, and the next goes on.

    >>> increment_coord((2, 0, 0), (3, 3, 3)), increment_coord((1, (1, 0)), (2, (2, 4)))
    ((0, 1, 0), (0, (0, 1)))
    """
    if not is_congruent(coord, shape):
        raise LayoutError(f"increment_coord: {format_tree(coord)} does not have the profile of {format_tree(shape)}")
    leaves, carry = [], 1
    for c, extent in zip(flatten_to_tuple(coord), flatten_to_tuple(shape), strict=True):
        leaves.append((c + carry) % extent)
        carry = (c + carry) // extent
    return unflatten(leaves, shape)
