"""``cute.core``: the older module of names that ``cute`` has."""

from typing import Any

from tilewright._lazy import names_of

__getattr__, __dir__, __all__ = names_of("tilewright.cute")


def _pack_tile(tile: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """A shape or tiler itself: programs pack it into a value of another compiler's."""
    return tile


_pack_shape = _pack_tile
