"""What draws itself in notebooks: layouts, atoms, tiled copies and tiled MMAs have the ``_repr_svg_`` of Jupyter.

The pictures are loaded when one is first asked for: the layout algebra needs none.
"""

from __future__ import annotations

from tilewright.errors import TilewrightError


class Drawn:
    """Objects with a picture of their own."""

    __slots__ = ()

    def _repr_svg_(self) -> str | None:
        """The picture as SVG; None, which shows as text, for what cannot be drawn, such as run-time extents."""
        from tilewright.viz import figure_of

        try:
            return figure_of(self).svg()
        except TilewrightError:
            return None
