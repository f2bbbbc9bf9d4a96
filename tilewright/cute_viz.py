"""The pictures under the module name that layout-drawing programs import: ``from tilewright.cute_viz import ...``."""

from tilewright.viz import (
    display_layout,
    display_svg,
    display_swizzle_layout,
    display_tiled_copy,
    display_tiled_mma,
    display_tv_layout,
    render_copy_atom_svg,
    render_layout_svg,
    render_mma_atom_svg,
    render_swizzle_layout_svg,
    render_tiled_copy_svg,
    render_tiled_mma_svg,
    render_tv_layout_svg,
)

__all__ = [
    "display_layout",
    "display_svg",
    "display_swizzle_layout",
    "display_tiled_copy",
    "display_tiled_mma",
    "display_tv_layout",
    "render_copy_atom_svg",
    "render_layout_svg",
    "render_mma_atom_svg",
    "render_swizzle_layout_svg",
    "render_tiled_copy_svg",
    "render_tiled_mma_svg",
    "render_tv_layout_svg",
]
