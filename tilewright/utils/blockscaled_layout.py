"""``cutlass.utils.blockscaled_layout``: layouts of scale factors of block-scaled MMAs; those of sm_100's operands in
shared and tensor memory are not here yet.

The atom is that of CUTLASS (include/cutlass/detail/sm100_blockscaled_layout.hpp).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright._names import attach
from tilewright.cute.nvgpu.common import OperandMajorMode
from tilewright.errors import ConstraintError
from tilewright.layout import Layout, ceil_div, make_layout, size, tile_to_shape

__all__ = ["BlockScaledBasicChunk", "tile_atom_to_shape_SF"]


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
        if self.sf_vec_size not in (16, 32):
            raise ConstraintError(
                f"BlockScaledBasicChunk: vectors of 16 or 32 elements share a factor, not {self.sf_vec_size}"
            )

    @property
    def layout(self) -> Layout:
        """(rows, K); (K, rows) for ``OperandMajorMode.MN``."""
        rows, vectors = ((32, 4), (16, 4)), ((self.sf_vec_size, 4), (0, 1))
        modes = (rows, vectors) if self.major_mode is OperandMajorMode.K else (vectors, rows)
        return make_layout(tuple(shape for shape, _ in modes), stride=tuple(stride for _, stride in modes))


def tile_atom_to_shape_SF(Tensor_Shape: Any, sf_vec_size: int, *, loc: Any = None, ip: Any = None) -> Layout:
    """The layout of the scale factors of an operand (M or N, K, batch): atoms follow each other along K first.

    Extents are padded to whole atoms: of 128 rows and 4 vectors.

    >>> print(tile_atom_to_shape_SF((256, 128, 1), 16))
    (((32,4),2),((16,4),2),(1,1)):(((16,4),1024),((0,1),512),(0,0))
    >>> print(tile_atom_to_shape_SF((200, 80, 1), 16).shape)
    (((32, 4), 2), ((16, 4), 2), (1, 1))
    """
    atom = BlockScaledBasicChunk(sf_vec_size).layout
    shape = tuple(Tensor_Shape)
    padded = tuple(ceil_div(x, size(mode)) * size(mode) for x, mode in zip(shape, atom, strict=False))
    return tile_to_shape(atom, (*padded, *shape[2:]), (2, 1, 3)[: len(shape)])


attach(__name__)
