"""``cute.core``: the older module of names that ``cute`` has."""

from typing import TYPE_CHECKING, Any

from tilewright._names import attach

if TYPE_CHECKING:
    from tilewright.cute import *  # noqa: F403  # its stub names them

attach(__name__, like="tilewright.cute")


def _pack_tile(tile: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """A shape or tiler itself: programs pack it into a value of another compiler's."""
    return tile


_pack_shape = _pack_tile
