"""Layouts draw themselves in notebooks: they get the ``_repr_svg_`` that Jupyter asks for.

It is given to them here, and loads the pictures when it is first called, so that the layout algebra needs no pictures.
"""

from __future__ import annotations

from typing import Any

from tilewright.errors import TilewrightError
from tilewright.layout import ComposedLayout, Layout


def install() -> None:
    """Let layouts show as SVG wherever Jupyter displays one; what cannot be drawn still shows as text."""
    for kind in (Layout, ComposedLayout):
        kind._repr_svg_ = _svg  # type: ignore[union-attr]


def _svg(layout: Any) -> str | None:
    from tilewright.viz import figure_of

    try:
        return figure_of(layout).svg()
    except TilewrightError:  # run-time integers
        return None
