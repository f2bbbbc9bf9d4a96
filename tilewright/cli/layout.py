"""``tilewright layout``: evaluate an expression, print the layout, draw it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from tilewright.cli.drawing import check_names, draw
from tilewright.errors import ArgumentError
from tilewright.explorer.expression import evaluate
from tilewright.layout import ComposedLayout, Layout, Swizzle, cosize, format_tree, product, size
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
    if explain and isinstance(value, ComposedLayout) and isinstance(value.inner, Swizzle):
        console.print(swizzle_bits(value.inner), markup=False, soft_wrap=True)
    figure = figure_of(value)
    if not _fits(value):
        console.print("too large for a table in a terminal: --svg FILE.svg (or .png, .pdf) draws it", style="dim")
    else:
        console.print(replace(figure, title=""), soft_wrap=True, end="")
    draw(figure, svg, tex, console)


def swizzle_bits(swizzle: Swizzle) -> str:
    """What a swizzle does to the bits of an offset, highest bit first.

    >>> from tilewright.layout import Swizzle
    >>> print(swizzle_bits(Swizzle(2, 3, 4)))
    Sw<2,3,4> on the bits of an offset: ...yy..zz...
    the bits 7-8 (y) are combined by exclusive or with the bits 3-4 (z), which they replace; all others stay
    """
    bits, base, shift = swizzle.bits, swizzle.base, swizzle.shift
    if bits == 0:
        return f"{swizzle} changes no bit"
    source, target = (base + shift, base) if shift >= 0 else (base, base - shift)
    places = ["."] * (max(source, target) + bits)
    for i in range(bits):
        places[source + i], places[target + i] = "y", "z"

    def span(first: int) -> str:
        return f"bits {first}-{first + bits - 1}" if bits > 1 else f"bit {first}"

    return (
        f"{swizzle} on the bits of an offset: ...{''.join(reversed(places))}\n"
        f"the {span(source)} (y) are combined by exclusive or with the {span(target)} (z), which they replace; "
        "all others stay"
    )


def _summary(layout: Any) -> str:
    parts = [f"size {size(layout)}"]
    if isinstance(layout, Layout):
        parts.append(f"cosize {cosize(layout)}")
    return ", ".join(parts)


def _fits(layout: Layout | ComposedLayout) -> bool:
    modes = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    extents = [int(product(mode)) for mode in modes]
    return len(extents) <= 3 and max(extents[:2]) <= LARGEST_IN_TERMINAL and int(product(extents[2:] or 1)) <= 4
