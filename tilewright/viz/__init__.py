"""Pictures: SVG, PNG, PDF, LaTeX and coloured text of layouts, tensors, thread-value maps, atoms, banks, rasters, time.

``*_figure`` functions give a :class:`Figure`, which shows itself in notebooks and writes itself with ``save``.
``render_*_svg`` functions write a file at once; ``display_*`` are the same pictures for a notebook.

Pictures are data first: ``figure.py`` has panels of cells (with colours of ``colouring.py``), ``timeline.py`` bars and
arrows. ``figure_drawing.py`` and ``timeline_drawing.py`` draw them on a canvas (``canvas.py``), of which ``svg.py``,
``png.py``, ``pdf.py`` and ``tikz.py`` are the kinds; ``terminal.py`` prints text. A module for each kind of picture
makes the data: ``layouts.py``, ``tensors.py``, ``thread_values.py``, ``banks.py``, ``raster.py``, ``gantt.py``,
``swizzle_bits.py``, ``cluster.py``, ``streamk_plan.py``.
"""

from __future__ import annotations

from tilewright.viz.banks import bank_figure
from tilewright.viz.cluster import cluster_figure
from tilewright.viz.figure import Axis, Border, Cell, Figure, Panel
from tilewright.viz.gantt import gantt
from tilewright.viz.layouts import layout_figure, layout_slice_figure, swizzle_figure
from tilewright.viz.linked import composition_figure, divide_figure
from tilewright.viz.picture import Picture
from tilewright.viz.raster import ORDERS, PanelReuse, l2_reuse, raster_figure, raster_order
from tilewright.viz.render import (
    display_copy_layout,
    display_layout,
    display_layout_slice,
    display_mma_layout,
    display_svg,
    display_swizzle_layout,
    display_tensor,
    display_tiled_copy,
    display_tiled_mma,
    display_tv_layout,
    figure_of,
    print_latex,
    print_latex_tv,
    render_copy_atom_svg,
    render_copy_layout_svg,
    render_layout_slice_svg,
    render_layout_svg,
    render_mma_atom_svg,
    render_mma_from_layouts,
    render_mma_layout_svg,
    render_swizzle_layout_svg,
    render_tensor_svg,
    render_tiled_copy_svg,
    render_tiled_mma_svg,
    render_tv_layout_svg,
    tidfrg_D,
    tidfrg_S,
)
from tilewright.viz.retile import retile_figure
from tilewright.viz.streamk_plan import streamk_plan_figure
from tilewright.viz.swizzle_bits import swizzle_bits_figure
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
from tilewright.viz.timeline import Timeline, timeline

__all__ = [
    "ORDERS",
    "Axis",
    "Border",
    "Cell",
    "Figure",
    "Panel",
    "Picture",
    "PanelReuse",
    "Timeline",
    "bank_figure",
    "cluster_figure",
    "composition_figure",
    "copy_atom_figure",
    "copy_figure",
    "display_copy_layout",
    "display_layout",
    "display_layout_slice",
    "display_mma_layout",
    "display_svg",
    "display_swizzle_layout",
    "display_tensor",
    "display_tiled_copy",
    "display_tiled_mma",
    "display_tv_layout",
    "divide_figure",
    "figure_of",
    "gantt",
    "l2_reuse",
    "layout_figure",
    "layout_slice_figure",
    "mma_atom_figure",
    "mma_figure",
    "print_latex",
    "print_latex_tv",
    "raster_figure",
    "raster_order",
    "render_copy_atom_svg",
    "render_copy_layout_svg",
    "render_layout_slice_svg",
    "render_layout_svg",
    "render_mma_atom_svg",
    "render_mma_from_layouts",
    "render_mma_layout_svg",
    "render_swizzle_layout_svg",
    "render_tensor_svg",
    "render_tiled_copy_svg",
    "render_tiled_mma_svg",
    "render_tv_layout_svg",
    "retile_figure",
    "streamk_plan_figure",
    "swizzle_bits_figure",
    "swizzle_figure",
    "tensor_figure",
    "tidfrg_D",
    "tidfrg_S",
    "tiled_copy_figure",
    "tiled_mma_figure",
    "timeline",
    "tv_figure",
]
