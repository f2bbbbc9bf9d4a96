# Made by `python tools/stubs.py` from tilewright/utils/blockscaled_layout.py; do not edit.
"""``cutlass.utils.blockscaled_layout``: layouts of scale factors of block-scaled MMAs; those of sm_100's operands in
shared and tensor memory are not here yet.

The atom is that of CUTLASS (include/cutlass/detail/sm100_blockscaled_layout.hpp).
"""

from dataclasses import dataclass
from typing import Any
from tilewright.cute.nvgpu.common import OperandMajorMode
from tilewright.layout import Layout

class make_smem_layout_sfa(Any):
    """Not here yet: using it is an error that says why."""

class make_smem_layout_sfb(Any):
    """Not here yet: using it is an error that says why."""

class make_tmem_layout_sfa(Any):
    """Not here yet: using it is an error that says why."""

class make_tmem_layout_sfb(Any):
    """Not here yet: using it is an error that says why."""

class sm120_make_smem_layout_sfa(Any):
    """Not here yet: using it is an error that says why."""

class sm120_make_smem_layout_sfb(Any):
    """Not here yet: using it is an error that says why."""

@dataclass(frozen=True)
class BlockScaledBasicChunk:
    """The smallest block of scale factors: of 128 rows and four vectors of ``sf_vec_size`` elements along K, each of
    which has one factor; the four of a row are contiguous.

    >>> print(BlockScaledBasicChunk(16).layout)
    ((32,4),(16,4)):((16,4),(0,1))
    """
    sf_vec_size: int
    major_mode: OperandMajorMode = OperandMajorMode.K
    def __post_init__(self) -> None:
        ...
    @property
    def layout(self) -> Layout:
        """(rows, K); (K, rows) for ``OperandMajorMode.MN``."""
        ...

def tile_atom_to_shape_SF(Tensor_Shape: Any, sf_vec_size: int, *, loc: Any = None, ip: Any = None) -> Layout:
    """The layout of the scale factors of an operand (M or N, K, batch): atoms follow each other along K first.

    >>> print(tile_atom_to_shape_SF((256, 128, 1), 16))
    (((32,4),2),((16,4),2),(1,1)):(((16,4),1024),((0,1),512),(0,0))
    """
    ...
