"""The pictures under the module name that layout-drawing programs import: ``from tilewright.cute_viz import ...``."""

from tilewright.viz import (
    display_copy_layout as display_copy_layout, display_layout as display_layout,
    display_layout_slice as display_layout_slice, display_mma_layout as display_mma_layout,
    display_svg as display_svg, display_swizzle_layout as display_swizzle_layout, display_tensor as display_tensor,
    display_tiled_copy as display_tiled_copy, display_tiled_mma as display_tiled_mma,
    display_tv_layout as display_tv_layout, render_copy_atom_svg as render_copy_atom_svg,
    render_copy_layout_svg as render_copy_layout_svg, render_layout_slice_svg as render_layout_slice_svg,
    render_layout_svg as render_layout_svg, render_mma_atom_svg as render_mma_atom_svg,
    render_mma_from_layouts as render_mma_from_layouts, render_mma_layout_svg as render_mma_layout_svg,
    render_swizzle_layout_svg as render_swizzle_layout_svg, render_tensor_svg as render_tensor_svg,
    render_tiled_copy_svg as render_tiled_copy_svg, render_tiled_mma_svg as render_tiled_mma_svg,
    render_tv_layout_svg as render_tv_layout_svg, tidfrg_D as tidfrg_D, tidfrg_S as tidfrg_S,
)
