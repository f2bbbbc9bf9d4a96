"""What draws itself in notebooks: layouts here, atoms and tiled operations above, by the ``_repr_svg_`` of Jupyter."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tilewright.errors import TilewrightError


class Drawn:
    """Objects with a picture of their own. Pictures are found by name when asked for: the algebra needs none."""

    __slots__ = ()

    def _picture(self) -> Any:
        return import_module("tilewright.viz").figure_of(self)

    def _repr_svg_(self) -> str | None:
        """The picture as SVG; None, which shows as text, for what cannot be drawn, such as run-time extents."""
        try:
            return str(self._picture().shortened().svg())
        except TilewrightError:
            return None
