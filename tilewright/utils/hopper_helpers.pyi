# Made by `python tools/stubs.py` from tilewright/utils/hopper_helpers.py; do not edit.
"""``cutlass.utils.hopper_helpers``: the older name of :mod:`tilewright.utils.sm90`."""

from tilewright.utils.sm90 import compute_tile_shape_or_override as compute_tile_shape_or_override
from tilewright.utils.sm90 import get_smem_layout_atom as get_smem_layout_atom
from tilewright.utils.sm90 import get_smem_store_op as get_smem_store_op
from tilewright.utils.sm90 import get_smem_store_op as sm90_get_smem_store_op
from tilewright.utils.sm90 import make_smem_layout_a as make_smem_layout_a
from tilewright.utils.sm90 import make_smem_layout_b as make_smem_layout_b
from tilewright.utils.sm90 import make_smem_layout_epi as make_smem_layout_epi
from tilewright.utils.sm90 import make_trivial_tiled_mma as make_trivial_tiled_mma
