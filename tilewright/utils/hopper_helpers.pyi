"""``cutlass.utils.hopper_helpers``: the older name of :mod:`tilewright.utils.sm90`."""

from tilewright.utils.sm90 import (
    compute_tile_shape_or_override as compute_tile_shape_or_override, get_smem_layout_atom as get_smem_layout_atom,
    get_smem_store_op as get_smem_store_op,
    make_smem_layout_a as make_smem_layout_a, make_smem_layout_b as make_smem_layout_b,
    make_smem_layout_epi as make_smem_layout_epi, make_trivial_tiled_mma as make_trivial_tiled_mma,
)

sm90_get_smem_store_op = get_smem_store_op
