"""``tilewright layout``: evaluate an expression, print the layout, draw it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from tilewright.cli.drawing import check_names, draw
from tilewright.cli.expression import evaluate
from tilewright.errors import ArgumentError
from tilewright.layout import ComposedLayout, Layout, cosize, format_tree, product, size
from tilewright.viz import figure_of

LARGEST_IN_TERMINAL = 32


def run(expression: str, svg: Path | None, tex: Path | None, explain: bool = False) -> None:
    """Print the value of ``expression``; a small layout is shown as a grid too; write the pictures asked for."""
    check_names(svg, tex)
    if explain:
        Console(highlight=False).print(evaluate(expression, explain=True), markup=False, soft_wrap=True)
    value = evaluate(expression)
    drawable = isinstance(value, Layout | ComposedLayout) and value.is_static()
    if (svg or tex) and not drawable:
        raise ArgumentError(f"{value} is not a static layout: there is nothing to draw")
    console = Console(highlight=False)
    console.print(format_tree(value) if isinstance(value, tuple) else str(value), markup=False, soft_wrap=True)
    if not drawable:
        return
    console.print(_summary(value), style="dim", soft_wrap=True)
    figure = figure_of(value)
    if _fits(value):
        console.print(replace(figure, title=""), soft_wrap=True, end="")
    draw(figure, svg, tex, console)


def _summary(layout: Any) -> str:
    parts = [f"size {size(layout)}"]
    if isinstance(layout, Layout):
        parts.append(f"cosize {cosize(layout)}")
    return ", ".join(parts)


def _fits(layout: Layout | ComposedLayout) -> bool:
    modes = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    extents = [int(product(mode)) for mode in modes]
    return len(extents) <= 3 and max(extents[:2]) <= LARGEST_IN_TERMINAL and int(product(extents[2:] or 1)) <= 4
