"""``cutlass.utils.blockscaled_layout``: scale factors of sm_100's block-scaled MMAs, which are not here yet."""

from tilewright import sm100

__getattr__, __all__ = sm100.names(
    __name__,
    "BlockScaledBasicChunk make_smem_layout_sfa make_smem_layout_sfb make_tmem_layout_sfa make_tmem_layout_sfb "
    "sm120_make_smem_layout_sfa sm120_make_smem_layout_sfb tile_atom_to_shape_SF",
)
