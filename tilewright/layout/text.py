"""CuTe notation of trees: ``(2,(_,4))``."""

from __future__ import annotations

from typing import Any

from tilewright.layout.ints import format_int


def format_tree(t: Any) -> str:
    """A tree, a layout or a tiler as text.

    >>> format_tree((2, (None, 4))), format_tree((8,))
    ('(2,(_,4))', '(8)')
    """
    if isinstance(t, tuple | list):
        return "(" + ",".join([format_tree(x) for x in t]) + ")"
    return "_" if t is None else format_int(t)
