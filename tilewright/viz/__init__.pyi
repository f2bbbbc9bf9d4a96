"""Pictures: SVG, PNG, PDF, LaTeX and coloured text of layouts, tensors, thread-value maps, atoms, banks, rasters, time."""

from tilewright.viz.banks import bank_figure as bank_figure
from tilewright.viz.cluster import cluster_figure as cluster_figure
from tilewright.viz.figure import Figure as Figure
from tilewright.viz.panels import Axis as Axis, Border as Border, Cell as Cell, Panel as Panel
from tilewright.viz.gantt_chart import gantt as gantt
from tilewright.viz.layouts import (
    layout_figure as layout_figure, layout_slice_figure as layout_slice_figure, swizzle_figure as swizzle_figure,
)
from tilewright.viz.linked import (
    complement_figure as complement_figure, composition_figure as composition_figure, divide_figure as divide_figure,
    product_figure as product_figure,
)
from tilewright.viz.picture import Picture as Picture
from tilewright.viz.raster import (
    ORDERS as ORDERS, PanelReuse as PanelReuse, l2_reuse as l2_reuse, raster_figure as raster_figure,
    raster_order as raster_order,
)
from tilewright.viz.render import (
    display_copy_layout as display_copy_layout, display_layout as display_layout,
    display_layout_slice as display_layout_slice, display_mma_layout as display_mma_layout,
    display_svg as display_svg, display_swizzle_layout as display_swizzle_layout, display_tensor as display_tensor,
    display_tiled_copy as display_tiled_copy, display_tiled_mma as display_tiled_mma,
    display_tv_layout as display_tv_layout, figure_of as figure_of, print_latex as print_latex,
    print_latex_tv as print_latex_tv, render_copy_atom_svg as render_copy_atom_svg,
    render_copy_layout_svg as render_copy_layout_svg, render_layout_slice_svg as render_layout_slice_svg,
    render_layout_svg as render_layout_svg, render_mma_atom_svg as render_mma_atom_svg,
    render_mma_from_layouts as render_mma_from_layouts, render_mma_layout_svg as render_mma_layout_svg,
    render_swizzle_layout_svg as render_swizzle_layout_svg, render_tensor_svg as render_tensor_svg,
    render_tiled_copy_svg as render_tiled_copy_svg, render_tiled_mma_svg as render_tiled_mma_svg,
    render_tv_layout_svg as render_tv_layout_svg, tidfrg_D as tidfrg_D, tidfrg_S as tidfrg_S,
)
from tilewright.viz.retile import retile_figure as retile_figure
from tilewright.viz.scale_factors import scale_factors_figure as scale_factors_figure
from tilewright.viz.streamk_plan import streamk_plan_figure as streamk_plan_figure
from tilewright.viz.swizzle_bits import swizzle_bits_figure as swizzle_bits_figure
from tilewright.viz.tensor_memory import (
    cp_figure as cp_figure, tcgen05_figure as tcgen05_figure, tensor_memory_figure as tensor_memory_figure,
    tmem_copy_figure as tmem_copy_figure,
)
from tilewright.viz.tensors import tensor_figure as tensor_figure
from tilewright.viz.thread_values import (
    copy_atom_figure as copy_atom_figure, copy_figure as copy_figure, mma_atom_figure as mma_atom_figure,
    mma_figure as mma_figure, tiled_copy_figure as tiled_copy_figure, tiled_mma_figure as tiled_mma_figure,
    tv_figure as tv_figure,
)
from tilewright.viz.tma_box import tma_box_figure as tma_box_figure
from tilewright.viz.timeline_figure import Timeline as Timeline, timeline as timeline
