# Made by `python tools/stubs.py` from tilewright/cute/core.py; do not edit.
"""``cute.core``: the older module of names that ``cute`` has."""

from typing import Any
from tilewright.cute import *

def _pack_tile(tile: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """A shape or tiler itself: programs pack it into a value of another compiler's."""
    ...

_pack_shape = _pack_tile
