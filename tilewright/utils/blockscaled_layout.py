"""``cutlass.utils.blockscaled_layout``: layouts of scale factors of block-scaled MMAs, in global, shared and tensor
memory.

The atom is that of CUTLASS (include/cutlass/detail/sm100_blockscaled_layout.hpp).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright._names import attach
from tilewright.atoms.scale_factors import ScaleTile
from tilewright.cute.nvgpu.common import OperandMajorMode
from tilewright.errors import ConstraintError
from tilewright.layout import Layout, ceil_div, make_layout, size, tile_to_shape

__all__ = [
    "BlockScaledBasicChunk",
    "make_smem_layout_sfa",
    "make_smem_layout_sfb",
    "make_tmem_layout_sfa",
    "make_tmem_layout_sfb",
    "sm120_make_smem_layout_sfa",
    "sm120_make_smem_layout_sfb",
    "tile_atom_to_shape_SF",
]


BLOCK_BYTES = 512
"""Bytes of the factors of 128 rows and four vectors."""


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


def make_smem_layout_sfa(
    tiled_mma: Any, mma_tiler_mnk: Any, sf_vec_size: int, num_stages: int, *, loc: Any = None, ip: Any = None
) -> Layout:
    """The factors of A in a block's shared memory, in bytes: ((rows, elements of an MMA), 1, MMAs along K, stages).

    An MMA with K 96 (sm_103a) takes 3 or 6 factors of a row, which do not divide the blocks of 4; for it the modes are
    those of single factors: ((rows, ``sf_vec_size`` elements), 1, factors along K, stages), of which every third or
    sixth is where an MMA begins.

    >>> from tilewright.cute import Float8E4M3FN, Float8E8M0FNU
    >>> from tilewright.cute.nvgpu import tcgen05
    >>> from tilewright.utils.blackwell_helpers import make_blockscaled_trivial_tiled_mma
    >>> K = OperandMajorMode.K
    >>> mma = make_blockscaled_trivial_tiled_mma(
    ...     Float8E4M3FN, K, K, Float8E8M0FNU, 32, tcgen05.CtaGroup.ONE, (128, 128)
    ... )
    >>> print(make_smem_layout_sfa(mma, (128, 128, 128), 32, 2))
    ((((32,4),1),(32,1)),1,(4,1),2):((((16,4),512),(0,1)),0,(1,512),512)
    """
    return _tile(tiled_mma, mma_tiler_mnk, sf_vec_size, "A").smem_layout(num_stages)


def make_smem_layout_sfb(
    tiled_mma: Any, mma_tiler_mnk: Any, sf_vec_size: int, num_stages: int, *, loc: Any = None, ip: Any = None
) -> Layout:
    """The factors of B in a block's shared memory: those of all columns of the MMA, padded to 128, in both blocks of a
    pair. See :func:`make_smem_layout_sfa`."""
    return _tile(tiled_mma, mma_tiler_mnk, sf_vec_size, "B").smem_layout(num_stages)


def make_tmem_layout_sfa(
    tiled_mma: Any, mma_tiler_mnk: Any, sf_vec_size: int, smem_layout: Any, *, loc: Any = None, ip: Any = None
) -> Layout:
    """The factors of A in a block's tensor memory, in bytes: ((rows and repetitions, elements of an MMA), 1, MMAs along
    K). ``smem_layout`` is that of one stage, ``make_smem_layout_sfa`` without its last mode (ConstraintError else); for
    K 96 it may have fewer factors along K than the tile, those that are in tensor memory at a time."""
    return _in_tensor_memory(tiled_mma, mma_tiler_mnk, sf_vec_size, smem_layout, "A")


def make_tmem_layout_sfb(
    tiled_mma: Any, mma_tiler_mnk: Any, sf_vec_size: int, smem_layout: Any, *, loc: Any = None, ip: Any = None
) -> Layout:
    """The factors of B in a block's tensor memory. See :func:`make_tmem_layout_sfa`."""
    return _in_tensor_memory(tiled_mma, mma_tiler_mnk, sf_vec_size, smem_layout, "B")


def sm120_make_smem_layout_sfa(
    tiled_mma: Any, tile_shape_mnk: Any, sf_vec_size: int, num_stages: int, *, loc: Any = None, ip: Any = None
) -> Layout:
    """The factors of A in shared memory for ``mma.sync`` (sm_120), in bytes: (rows, elements of K, stages), one factor
    for each ``sf_vec_size`` elements. Rows are padded to 128 (include/cutlass/gemm/collective/builders/
    sm120_blockscaled_mma_builder.inl).

    >>> from tilewright import Float8E4M3FN, Float8E8M0FNU, Float32
    >>> mma = cute.make_tiled_mma(cute.nvgpu.warp.MmaMXF8Op(Float8E4M3FN, Float32, Float8E8M0FNU), (4, 2, 1))
    >>> print(sm120_make_smem_layout_sfa(mma, (256, 128, 128), 32, 2))
    (((32,4),2),((32,1),4,1),2):(((16,4),512),((0,1),1,1024),1024)
    """
    return _for_warps(tiled_mma, int(tile_shape_mnk[0]), int(tile_shape_mnk[2]), sf_vec_size, num_stages)


def sm120_make_smem_layout_sfb(
    tiled_mma: Any, tile_shape_mnk: Any, sf_vec_size: int, num_stages: int, *, loc: Any = None, ip: Any = None
) -> Layout:
    """The factors of B in shared memory; see :func:`sm120_make_smem_layout_sfa`."""
    return _for_warps(tiled_mma, int(tile_shape_mnk[1]), int(tile_shape_mnk[2]), sf_vec_size, num_stages)


def _for_warps(tiled_mma: Any, rows: int, k: int, vec: int, stages: int) -> Layout:
    atom = tiled_mma.instruction
    if getattr(atom, "vec", None) != vec:
        raise ConstraintError(f"{atom}: factors for {vec} elements each; it has {getattr(atom, 'vec', 'none')}")
    if k % (4 * vec):
        raise ConstraintError(f"sm120_make_smem_layout_sf: K of a tile is {k}; blocks of factors have {4 * vec}")
    each = atom.shape_mnk[2] // vec  # factors of a row that one instruction reads
    blocks = ceil_div(rows, 128)
    block = BLOCK_BYTES * blocks
    of_rows = make_layout(((32, 4), blocks), stride=((16, 4), BLOCK_BYTES))
    of_k = make_layout(((vec, each), 4 // each, k // (4 * vec)), stride=((0, 1), each, block))
    return make_layout(of_rows, of_k, make_layout(stages, stride=block * (k // (4 * vec))))


def _in_tensor_memory(tiled_mma: Any, tiler: Any, vec: int, smem_layout: Any, which: str) -> Layout:
    if tiled_mma.instruction.rows_go_on:
        rows = int(tiler[0]) // tiled_mma.instruction.ctas if which == "A" else int(tiler[1])
        tiler = (tiler[0], tiler[1], size(smem_layout) // (128 * ceil_div(rows, 128)))
    tile = _tile(tiled_mma, tiler, vec, which)
    if tiled_mma.instruction.rows_go_on:  # one factor, or a row's four of a block, as the program's layout has them
        tile = tile._replace(mma_k=size(smem_layout.shape[0][1]))
    if size(smem_layout) != size(tile.smem_layout()):
        raise ConstraintError(
            f"make_tmem_layout_sf{which.lower()}: the layout of one stage is {tile.smem_layout()}, not {smem_layout}"
        )
    return tile.tmem_layout()


def _tile(tiled_mma: Any, tiler: Any, vec: int, which: str) -> ScaleTile:
    m, n, k = (int(size(mode)) for mode in tiler)
    atom = tiled_mma.instruction
    if getattr(atom, "vec", None) != vec:
        raise ConstraintError(
            f"{atom}: factors for {vec} elements each; the MMA has factors for {getattr(atom, 'vec', 'none')}"
        )
    step = vec if atom.rows_go_on else atom.shape_mnk[2]
    return ScaleTile(m // atom.ctas if which == "A" else n, k, vec, step)


attach(__name__)
