"""``cutlass.utils.hopper_helpers``: the older name of :mod:`tilewright.utils.sm90`."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.utils.sm90": (
            "compute_tile_shape_or_override get_smem_layout_atom get_smem_store_op "
            "sm90_get_smem_store_op=get_smem_store_op make_smem_layout_a make_smem_layout_b make_smem_layout_epi "
            "make_trivial_tiled_mma"
        ),
    },
)
