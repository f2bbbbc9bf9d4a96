"""All offsets of a layout at once: as a tuple, or as a NumPy array."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tilewright.errors import LayoutError
from tilewright.layout.basis import ScaledBasis
from tilewright.layout.composed import ComposedLayout
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import flatten_to_tuple, is_static, product

if TYPE_CHECKING:
    import numpy as np


LARGEST_TABLE = 1 << 26  # 512 MiB


@lru_cache(4096)
def static_offsets(layout: Any) -> tuple[int, ...]:
    """The offset of every element of a static layout, by 1-D index; for the layouts of fragments, which are small.

    >>> from tilewright.layout import Layout
    >>> static_offsets(Layout((2, 3), (3, 1)))
    (0, 3, 1, 4, 2, 5)
    """
    return tuple(layout(i) for i in range(product(layout.shape)))


def offsets(layout: Any, shape: Any = None) -> np.ndarray[Any, Any]:
    """The offset of every coordinate: a flat array by 1-D index, or an array of the given (flat) ``shape``.

    Element ``[i, j]`` of the shaped array is ``layout(i, j)``.

    >>> from tilewright.layout import Layout
    >>> offsets(Layout((2, 3), (3, 1))).tolist(), offsets(Layout((2, 3), (3, 1)), (2, 3)).tolist()
    ([0, 3, 1, 4, 2, 5], [[0, 1, 2], [3, 4, 5]])
    """
    result = _flat(layout)
    return result if shape is None else result.reshape(shape, order="F")


def _flat(layout: Any) -> np.ndarray[Any, Any]:
    import numpy as np

    require_offsets(layout)
    check_size(layout, product(layout.shape))
    if isinstance(layout, ComposedLayout):
        inner = _flat(layout.outer) + layout.offset
        try:
            return np.asarray(layout.inner(inner))
        except (LayoutError, TypeError):
            return np.array([layout.inner(int(i)) for i in inner])
    result = np.zeros(1, np.int64)
    for s, d in zip(flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride), strict=True):
        # The next mode is slower: its steps are the rows, everything so far the columns.
        result = (np.arange(s, dtype=np.int64)[:, None] * d + result[None, :]).reshape(-1)
    return result


def require_offsets(layout: Any) -> None:
    """Raise LayoutError unless ``layout`` is static and gives offsets."""
    if not is_static(layout):
        raise LayoutError(f"offsets({layout}): only a static layout can be tabulated")
    plain = layout.outer if isinstance(layout, ComposedLayout) else layout
    if any(isinstance(d, ScaledBasis) for d in flatten_to_tuple(plain.stride)):
        raise LayoutError(f"offsets({plain}): a layout with basis strides gives coordinates, not offsets")


def check_size(text: Any, count: int) -> None:
    """Raise LayoutError unless a table of ``count`` elements of ``text`` fits into memory."""
    if count > LARGEST_TABLE:
        raise LayoutError(f"{text}: a table of all its {count} elements is too large (at most {LARGEST_TABLE})")


def coordinates(shape: Any) -> np.ndarray[Any, Any]:
    """Row ``i`` is the flat natural coordinate of the 1-D index ``i``.

    >>> coordinates((2, (1, 2))).tolist()
    [[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 0, 1]]
    """
    import numpy as np

    flat = flatten_to_tuple(shape)
    if not is_static(flat):
        raise LayoutError(f"coordinates({format_tree(shape)}): only a static shape can be tabulated")
    check_size(format_tree(shape), product(flat))
    return np.stack(np.unravel_index(np.arange(product(flat)), flat, order="F"), axis=1)
