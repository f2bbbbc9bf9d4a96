"""``cute.core``: the older module of names that ``cute`` has."""

from typing import Any

from tilewright import cute as _cute

__all__ = list(_cute.__all__)


def _pack_tile(tile: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """A shape or tiler itself: programs pack it into a value of another compiler's."""
    return tile


_pack_shape = _pack_tile


def __getattr__(name: str) -> object:
    return getattr(_cute, name)
