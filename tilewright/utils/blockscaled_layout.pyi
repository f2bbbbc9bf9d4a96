# Made by `python tools/stubs.py` from tilewright/utils/blockscaled_layout.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``cutlass.utils.blockscaled_layout``: scale factors of sm_100's block-scaled MMAs, which are not here yet."""

from typing import Any

class BlockScaledBasicChunk(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class make_smem_layout_sfa(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class make_smem_layout_sfb(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class make_tmem_layout_sfa(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class make_tmem_layout_sfb(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class sm120_make_smem_layout_sfa(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class sm120_make_smem_layout_sfb(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class tile_atom_to_shape_SF(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""
