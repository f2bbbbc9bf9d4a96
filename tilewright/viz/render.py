"""The drawing functions by the names that users of CuTe know; each makes a figure and writes or shows it.

All ``render_*`` functions take the path of the file last and make missing folders. The suffix of the path decides the
format, so ``render_layout_svg(layout, "x.png")`` writes a PNG.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from tilewright.errors import ArgumentError
from tilewright.layout import ComposedLayout, Swizzle
from tilewright.viz.figure import Figure
from tilewright.viz.grids import AnyLayout
from tilewright.viz.layouts import layout_figure, swizzle_figure
from tilewright.viz.thread_values import (
    copy_atom_figure,
    mma_atom_figure,
    tiled_copy_figure,
    tiled_mma_figure,
    tv_figure,
)

# What a thing is, is told by an attribute that only its kind has.
_DRAWN_BY: tuple[tuple[str, Callable[[Any], Figure]], ...] = (
    ("tv_layout_A_tiled", tiled_mma_figure),
    ("layout_src_tv_tiled", tiled_copy_figure),
    ("tv_layout_A", mma_atom_figure),
    ("layout_a", mma_atom_figure),
    ("layout_src_tv", copy_atom_figure),
    ("src_bits", copy_atom_figure),
)

FilePath: TypeAlias = str | PathLike[str]


def render_layout_svg(layout: AnyLayout, output_file: FilePath) -> None:
    """Draw a layout: its offset at every coordinate (see :func:`~tilewright.viz.layout_figure`)."""
    layout_figure(layout).save(output_file)


def render_swizzle_layout_svg(layout: ComposedLayout, output_file: FilePath) -> None:
    """Draw a swizzled layout before and after its swizzle (see :func:`~tilewright.viz.swizzle_figure`)."""
    swizzle_figure(layout).save(output_file)


def render_tv_layout_svg(layout: AnyLayout, tile_mn: Any, output_file: FilePath, *, thread: int | None = None) -> None:
    """Draw a thread-value layout on a tile (see :func:`~tilewright.viz.tv_figure`)."""
    tv_figure(layout, tile_mn, thread=thread).save(output_file)


def render_tiled_copy_svg(tiled_copy: Any, tile_mn: Any, output_file: FilePath, *, thread: int | None = None) -> None:
    """Draw the source and destination of a tiled copy (see :func:`~tilewright.viz.tiled_copy_figure`)."""
    tiled_copy_figure(tiled_copy, tile_mn, thread=thread).save(output_file)


def render_tiled_mma_svg(tiled_mma: Any, tile_mnk: Any, output_file: FilePath, *, thread: int | None = None) -> None:
    """Draw A, B and C of a tiled MMA (see :func:`~tilewright.viz.tiled_mma_figure`)."""
    tiled_mma_figure(tiled_mma, tile_mnk, thread=thread).save(output_file)


def render_mma_atom_svg(atom: Any, output_file: FilePath) -> None:
    """Draw A, B and C of an MMA atom."""
    mma_atom_figure(atom).save(output_file)


def render_copy_atom_svg(atom: Any, output_file: FilePath) -> None:
    """Draw the source and destination of a copy atom."""
    copy_atom_figure(atom).save(output_file)


def display_svg(file_path: FilePath) -> SvgText:
    """An SVG file, shown in a notebook."""
    try:
        return SvgText(Path(file_path).read_text())
    except OSError as error:
        raise ArgumentError(f"cannot read {file_path}: {error.strerror or error}") from error


def figure_of(thing: Any) -> Figure:
    """The picture of whatever can be drawn by itself: a layout, swizzled or not, an atom, a tiled copy or MMA.

    Raises:
        ArgumentError: something else, or a layout with run-time integers.

    >>> from tilewright.layout import Layout
    >>> figure_of(Layout((2, 2))).title
    '(2,2):(1,2)'
    """
    if isinstance(thing, ComposedLayout) and isinstance(thing.inner, Swizzle):
        return swizzle_figure(thing)
    for attribute, draw in _DRAWN_BY:
        if hasattr(thing, attribute):
            return draw(thing)
    return layout_figure(thing)


def display_layout(layout: AnyLayout) -> Figure:
    """The picture of a layout, swizzled or not, for a notebook."""
    return figure_of(layout)


def display_swizzle_layout(layout: ComposedLayout) -> Figure:
    """The picture of a swizzled layout, for a notebook."""
    return swizzle_figure(layout)


def display_tv_layout(layout: AnyLayout, tile_mn: Any) -> Figure:
    """The picture of a thread-value layout, for a notebook."""
    return tv_figure(layout, tile_mn)


def display_tiled_copy(tiled_copy: Any, tile_mn: Any = None) -> Figure:
    """The picture of a tiled copy, for a notebook."""
    return tiled_copy_figure(tiled_copy, tile_mn)


def display_tiled_mma(tiled_mma: Any, tile_mnk: Any = None) -> Figure:
    """The picture of a tiled MMA, for a notebook."""
    return tiled_mma_figure(tiled_mma, tile_mnk)


def print_latex(thing: Any) -> None:
    """Print what :func:`figure_of` draws as a LaTeX document."""
    print(figure_of(thing).tex())


def print_latex_tv(layout: AnyLayout, tile_mn: Any) -> None:
    """Print a thread-value layout on a tile as a LaTeX document: each cell names its thread and value.

    >>> from tilewright.layout import Layout
    >>> print_latex_tv(Layout((2, 2), (1, 2)), (2, 2))  # doctest: +ELLIPSIS
    \\documentclass{standalone}
    ...
    """
    print(tv_figure(layout, tile_mn).tex())


class SvgText(str):
    """SVG text that notebooks draw."""

    def _repr_svg_(self) -> str:
        return str(self)
