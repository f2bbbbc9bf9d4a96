"""Objects that show a picture in notebooks, by Jupyter's ``_repr_svg_``: layouts, atoms, tiled operations, traces."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

from tilewright.errors import TilewrightError


class Drawable:
    """Base class of objects that ``viz`` can draw. ``viz`` is imported when a picture is asked for, not before."""

    __slots__ = ()

    def _picture(self) -> Any:
        return import_module("tilewright.viz").figure_of(self)

    def _repr_svg_(self) -> str | None:
        """The picture as SVG; None, which shows as text, for what cannot be drawn, such as run-time extents."""
        try:
            return str(self._picture().shortened().svg())
        except TilewrightError:
            return None


LayoutOrTensor = TypeVar("LayoutOrTensor", bound=Drawable)
"""What the functions of layouts take and give: a layout or composed layout, and in ``cute`` a tensor, too."""
