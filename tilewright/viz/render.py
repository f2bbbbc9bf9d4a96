"""The drawing functions by the names that users of CuTe know; each makes a figure and writes or shows it.

``render_*`` functions take the path of a file and make missing folders. The suffix of the path decides the format, so
``render_layout_svg(layout, "x.png")`` writes a PNG. ``display_*`` are the same pictures for a notebook.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from tilewright.errors import ArgumentError
from tilewright.layout import ComposedLayout, Layout, Swizzle
from tilewright.viz.colouring import ColorBy
from tilewright.viz.figure import Figure
from tilewright.viz.grids import AnyLayout
from tilewright.viz.layouts import layout_figure, layout_slice_figure, swizzle_figure
from tilewright.viz.tensors import tensor_figure
from tilewright.viz.thread_values import (
    copy_atom_figure,
    copy_figure,
    mma_atom_figure,
    mma_figure,
    tiled_copy_figure,
    tiled_mma_figure,
    tv_figure,
)

# The kind of an object is recognised by an attribute that only this kind has.
_DRAWN_BY: tuple[tuple[str, Callable[[Any], Figure]], ...] = (
    ("tv_layout_A_tiled", tiled_mma_figure),
    ("layout_src_tv_tiled", tiled_copy_figure),
    ("tv_layout_A", mma_atom_figure),
    ("layout_a", mma_atom_figure),
    ("layout_src_tv", copy_atom_figure),
    ("src_bits", copy_atom_figure),
    ("engine", tensor_figure),
    ("__dlpack__", tensor_figure),
)

FilePath: TypeAlias = str | PathLike[str]


def figure_of(thing: Any) -> Figure:
    """The picture of whatever can be drawn by itself: a layout, swizzled or not, a tensor of the host program, an atom,
    a tiled copy or MMA.

    Raises:
        ArgumentError: something else, or a layout with run-time integers.

    >>> from tilewright.layout import Layout
    >>> figure_of(Layout((2, 2))).title
    '(2,2):(1,2)'
    """
    if isinstance(thing, ComposedLayout) and isinstance(thing.inner, Swizzle):
        return swizzle_figure(thing)
    if not isinstance(thing, Layout | ComposedLayout):
        for attribute, draw in _DRAWN_BY:
            if hasattr(thing, attribute):
                return draw(thing)
    return layout_figure(thing)


def render_layout_svg(
    layout: AnyLayout, output_file: FilePath, flatten_hierarchical: bool = True, *, color_by: ColorBy = "offset"
) -> None:
    """Draw a layout: its offset at every coordinate (see :func:`~tilewright.viz.layout_figure`).

    Raises ArgumentError for run-time integers, or a file that cannot be written.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     render_layout_svg(Layout((4, 8)), f"{folder}/tile.svg")
    ...     Path(f"{folder}/tile.svg").read_text()[:4]
    '<svg'
    """
    layout_figure(layout, color_by=color_by, flatten_hierarchical=flatten_hierarchical).save(output_file)


def render_layout_slice_svg(
    layout: AnyLayout, slice_spec: Any, output_file: FilePath, flatten_hierarchical: bool = True
) -> None:
    """Draw a layout in which a slice has colour (see :func:`~tilewright.viz.layout_slice_figure`).

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     render_layout_slice_svg(Layout((4, 8)), (None, 3), f"{folder}/slice.svg")
    ...     Path(f"{folder}/slice.svg").read_text()[:4]
    '<svg'
    """
    layout_slice_figure(layout, slice_spec, flatten_hierarchical=flatten_hierarchical).save(output_file)


def render_swizzle_layout_svg(layout: ComposedLayout, output_file: FilePath) -> None:
    """Draw a swizzled layout before and after its swizzle (see :func:`~tilewright.viz.swizzle_figure`).

    >>> from tempfile import TemporaryDirectory
    >>> from tilewright.layout import make_composed_layout
    >>> tile = make_composed_layout(Swizzle(1, 0, 2), 0, Layout((4, 4)))
    >>> with TemporaryDirectory() as folder:
    ...     render_swizzle_layout_svg(tile, f"{folder}/swizzle.svg")
    ...     Path(f"{folder}/swizzle.svg").read_text()[:4]
    '<svg'
    """
    swizzle_figure(layout).save(output_file)


def render_tv_layout_svg(
    layout: AnyLayout, tile_mn: Any, output_file: FilePath, *, thread: int | None = None, color_by: ColorBy = "thread"
) -> None:
    """Draw a thread-value layout on a tile (see :func:`~tilewright.viz.tv_figure`).

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     render_tv_layout_svg(Layout((2, 2), (1, 2)), (2, 2), f"{folder}/tv.svg")
    ...     Path(f"{folder}/tv.svg").read_text()[:4]
    '<svg'
    """
    tv_figure(layout, tile_mn, thread=thread, color_by=color_by).save(output_file)


def render_copy_layout_svg(
    layout_s: AnyLayout,
    layout_d: AnyLayout,
    tile_mn: Any,
    output_file: FilePath,
    *,
    thread: int | None = None,
    color_by: ColorBy = "thread",
) -> None:
    """Draw the source and destination of a copy, from their thread-value layouts or from ``tidfrg_S`` and ``tidfrg_D``
    (see :func:`~tilewright.viz.copy_figure`).

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     render_copy_layout_svg(Layout((2, 2)), Layout((2, 2), (2, 1)), (2, 2), f"{folder}/copy.svg")
    ...     Path(f"{folder}/copy.svg").read_text()[:4]
    '<svg'
    """
    copy_figure(layout_s, layout_d, tile_mn, thread=thread, color_by=color_by).save(output_file)


def render_tiled_copy_svg(
    tiled_copy: Any, tile_mn: Any, output_path: FilePath, *, thread: int | None = None, color_by: ColorBy = "thread"
) -> None:
    """Draw the source and destination of a tiled copy (see :func:`~tilewright.viz.tiled_copy_figure`).

    >>> from tilewright.atoms.names import copy_by_name
    >>> from tilewright.ir.types import F32
    >>> from tilewright.tiled import make_copy_atom, make_tiled_copy_tv
    >>> atom = make_copy_atom(copy_by_name("UniversalCopy<uint32_t>"), F32)
    >>> copy = make_tiled_copy_tv(atom, Layout((2, 2)), Layout((1, 2)))
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     render_tiled_copy_svg(copy, (2, 4), f"{folder}/copy.svg")
    ...     Path(f"{folder}/copy.svg").read_text()[:4]
    '<svg'
    """
    tiled_copy_figure(tiled_copy, tile_mn, thread=thread, color_by=color_by).save(output_path)


def render_tiled_mma_svg(
    tiled_mma: Any, tile_mnk: Any, output_path: FilePath, *, thread: int | None = None, color_by: ColorBy = "thread"
) -> None:
    """Draw A, B and C of a tiled MMA (see :func:`~tilewright.viz.tiled_mma_figure`).

    >>> from tilewright.atoms.names import mma_by_name
    >>> from tilewright.tiled import make_tiled_mma
    >>> mma = make_tiled_mma(mma_by_name("SM80_16x8x8_F32F16F16F32_TN"))
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     render_tiled_mma_svg(mma, (16, 8, 8), f"{folder}/mma.svg")
    ...     Path(f"{folder}/mma.svg").read_text()[:4]
    '<svg'
    """
    tiled_mma_figure(tiled_mma, tile_mnk, thread=thread, color_by=color_by).save(output_path)


def render_mma_layout_svg(tiled_mma: Any, tile_mnk: Any, output_file: FilePath) -> None:
    """Draw A, B and C of a tiled MMA: :func:`render_tiled_mma_svg` by its other name.

    >>> from tempfile import TemporaryDirectory
    >>> from tilewright import Float16, Float32
    >>> op = cute.nvgpu.warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16))
    >>> with TemporaryDirectory() as folder:
    ...     render_mma_layout_svg(cute.make_tiled_mma(op), (16, 8, 16), f"{folder}/mma.txt")
    ...     Path(f"{folder}/mma.txt").read_text().splitlines()[0]
    'tiled MMA of SM80_16x8x16_F32F16F16F32_TN: 16 x 8 x 16 on 16 x 8 x 16'
    """
    render_tiled_mma_svg(tiled_mma, tile_mnk, output_file)


def render_mma_from_layouts(
    layoutC: AnyLayout, layoutA: AnyLayout, layoutB: AnyLayout, tile_mnk: Any, output_file: FilePath
) -> None:
    """Draw A, B and C of a matrix instruction from thread-value layouts (see :func:`~tilewright.viz.mma_figure`)."""
    mma_figure(layoutA, layoutB, layoutC, tile_mnk).save(output_file)


def render_mma_atom_svg(atom: Any, output_file: FilePath, *, color_by: ColorBy = "thread") -> None:
    """Draw A, B and C of an MMA atom.

    >>> from tempfile import TemporaryDirectory
    >>> from tilewright.atoms.names import mma_by_name
    >>> with TemporaryDirectory() as folder:
    ...     render_mma_atom_svg(mma_by_name("SM80_16x8x8_F32F16F16F32_TN"), f"{folder}/mma.svg")
    ...     Path(f"{folder}/mma.svg").read_text()[:4]
    '<svg'
    """
    mma_atom_figure(atom, color_by=color_by).save(output_file)


def render_copy_atom_svg(atom: Any, output_file: FilePath, *, color_by: ColorBy = "thread") -> None:
    """Draw the source and destination of a copy atom.

    >>> from tilewright.atoms.names import copy_by_name
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     render_copy_atom_svg(copy_by_name("SM75_U32x4_LDSM_N"), f"{folder}/copy.svg")
    ...     Path(f"{folder}/copy.svg").read_text()[:4]
    '<svg'
    """
    copy_atom_figure(atom, color_by=color_by).save(output_file)


def render_tensor_svg(tensor: Any, output_file: FilePath, *, color_by: ColorBy = "value") -> None:
    """Draw the numbers of a tensor of the host program (see :func:`~tilewright.viz.tensor_figure`).

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     render_tensor_svg(np.arange(6).reshape(2, 3), f"{folder}/tensor.svg")
    ...     Path(f"{folder}/tensor.svg").read_text()[:4]
    '<svg'
    """
    tensor_figure(tensor, color_by=color_by).save(output_file)


def tidfrg_S(tiled_copy: Any, tile_mn: Any) -> Any:
    """The source's thread-value layout of a tiled copy, as a tensor: (thread, value) to the coordinate (m, n).

    >>> from tilewright.atoms.names import copy_by_name
    >>> from tilewright.ir.types import F32
    >>> from tilewright.tiled import make_copy_atom, make_tiled_copy_tv
    >>> atom = make_copy_atom(copy_by_name("UniversalCopy<uint32_t>"), F32)
    >>> tidfrg_S(make_tiled_copy_tv(atom, Layout((2, 2)), Layout((1, 2))), (2, 4))[3, 1]
    (1, 3)
    """
    return _coordinates("layout_src_tv_tiled", tiled_copy, tile_mn)


def tidfrg_D(tiled_copy: Any, tile_mn: Any) -> Any:
    """The destination's thread-value layout of a tiled copy, as a tensor: (thread, value) to the coordinate (m, n).

    A thread that reads a row for ``ldmatrix`` is given elements of other rows:

    >>> from tilewright import Float16, Float32
    >>> mma = cute.make_tiled_mma(cute.nvgpu.warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16)))
    >>> load = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(num_matrices=4), Float16)
    >>> copy = cute.make_tiled_copy_A(load, mma)
    >>> tidfrg_S(copy, (16, 16))[1, 0], tidfrg_D(copy, (16, 16))[1, 0]
    ((1, 0), (0, 2))
    """
    return _coordinates("layout_dst_tv_tiled", tiled_copy, tile_mn)


def _coordinates(name: str, tiled_copy: Any, tile_mn: Any) -> Any:
    from tilewright.lang.tensors.algebra import make_identity_tensor
    from tilewright.lang.tensors.layout_functions import composition
    from tilewright.viz.grids import extents_of_tile

    if not hasattr(tiled_copy, name):
        raise ArgumentError(f"an object of type {type(tiled_copy).__name__} is not a tiled copy: it has no {name}")
    extents, own = extents_of_tile(tile_mn), extents_of_tile(tiled_copy.tiler_mn)
    if extents != own:  # the layout numbers the elements of its own tile
        raise ArgumentError(f"the tile {extents} is not that of the tiled copy, {own}")
    return composition(make_identity_tensor(extents), getattr(tiled_copy, name))


class SvgText(str):
    """SVG text that notebooks draw."""

    def _repr_svg_(self) -> str:
        return str(self)


def display_svg(file_path: FilePath) -> SvgText:
    """An SVG file, shown in a notebook."""
    try:
        return SvgText(Path(file_path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ArgumentError(f"cannot read {file_path}: {error.strerror or error}") from error
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"cannot show {file_path!r}: it is not the path of an SVG file") from error


def display_layout(layout: AnyLayout, flatten_hierarchical: bool = True, *, color_by: ColorBy = "offset") -> Figure:
    """The picture of a layout, swizzled or not, for a notebook.

    >>> display_layout(Layout((2, 2))).title
    '(2,2):(1,2)'
    """
    if isinstance(layout, ComposedLayout) and color_by == "offset":
        return figure_of(layout)
    return layout_figure(layout, color_by=color_by, flatten_hierarchical=flatten_hierarchical)


def display_layout_slice(layout: AnyLayout, slice_spec: Any, flatten_hierarchical: bool = True) -> Figure:
    """The picture of a layout in which a slice has colour, for a notebook.

    >>> len(display_layout_slice(Layout((4, 8)), (None, 3)).panels)
    1
    """
    return layout_slice_figure(layout, slice_spec, flatten_hierarchical=flatten_hierarchical)


def display_tv_layout(layout: AnyLayout, tile_mn: Any, *, color_by: ColorBy = "thread") -> Figure:
    """The picture of a thread-value layout, for a notebook.

    >>> len(display_tv_layout(Layout((2, 2), (1, 2)), (2, 2)).panels)
    1
    """
    return tv_figure(layout, tile_mn, color_by=color_by)


# Notebooks show a figure by itself: these are the figures under the names that users know.
display_swizzle_layout = swizzle_figure
display_copy_layout = copy_figure
display_tiled_copy = tiled_copy_figure
display_tiled_mma = display_mma_layout = tiled_mma_figure
display_tensor = tensor_figure


def print_latex(thing: Any) -> None:
    """Print what :func:`figure_of` draws as a LaTeX document.

    >>> print_latex(Layout((2, 2)))  # doctest: +ELLIPSIS
    \\documentclass{standalone}
    ...
    """
    print(figure_of(thing).tex())


def print_latex_tv(layout: AnyLayout, tile_mn: Any) -> None:
    """Print a thread-value layout on a tile as a LaTeX document: each cell names its thread and value.

    >>> from tilewright.layout import Layout
    >>> print_latex_tv(Layout((2, 2), (1, 2)), (2, 2))  # doctest: +ELLIPSIS
    \\documentclass{standalone}
    ...
    """
    print(tv_figure(layout, tile_mn).tex())
