"""``cute.nvgpu.tcgen05``: Blackwell's tensor cores. Enumerations and layouts are here, instructions not yet."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tilewright._names import attach
from tilewright.cute.nvgpu.common import OperandMajorMode
from tilewright.cute.nvgpu.tcgen05.smem_atoms import SmemLayoutAtomKind, make_smem_layout_atom
from tilewright.layout import product_each, tile_to_shape, tiled_divide

__all__ = [
    "CtaGroup",
    "Field",
    "MmaOp",
    "OperandMajorMode",
    "OperandSource",
    "Pack",
    "Repetition",
    "SmemLayoutAtomKind",
    "Unpack",
    "make_smem_layout_atom",
    "tile_to_mma_shape",
]


class CtaGroup(Enum):
    """How many blocks work on one MMA."""

    ONE = 1
    TWO = 2


class Field(Enum):
    """Fields of an MMA atom that ``set`` changes at run time."""

    NEGATE_A = "neg_a"
    NEGATE_B = "neg_b"
    ACCUMULATE = "accum_c"
    SFA = "sf_a"
    SFB = "sf_b"


class MmaOp:
    """The common class of tcgen05's MMA operations, for annotations and ``isinstance``. None of them is here yet."""


class OperandSource(Enum):
    """Where operand A is."""

    TMEM = "tmem"
    SMEM = "smem"


class Repetition(Enum):
    """How often a tensor-memory copy repeats its shape along the columns."""

    x1 = 1
    x2 = 2
    x4 = 4
    x8 = 8
    x16 = 16
    x32 = 32
    x64 = 64
    x128 = 128


class Pack(Enum):
    """Whether a load from tensor memory packs two 16-bit numbers into a register."""

    NONE = 1
    PACK_16b_IN_32b = 2


class Unpack(Enum):
    """Whether a store to tensor memory unpacks a register into two 16-bit numbers."""

    NONE = 1
    UNPACK_32b_IN_16b = 2


def tile_to_mma_shape(atom: Any, mma_tile_shape: Any, order: Any = None, *, loc: Any = None, ip: Any = None) -> Any:
    """A layout atom (M or N, K) tiled to ``((MMA_M, MMA_K), M_MMAs, K_MMAs, ...)``: the tile of one MMA, and how many
    there are along each mode. ``order`` is that in which atoms fill the modes (M or N, K, ...).

    >>> from tilewright.cute import Float16
    >>> atom = make_smem_layout_atom(SmemLayoutAtomKind.K_SW128, Float16)
    >>> tile_to_mma_shape(atom, ((128, 16), 1, 4, 2))
    Sw<3,4,3> o 0 o ((128,16),1,4,(1,2)):((64,1),0,16,(0,8192))
    """
    (mma, rows, columns, *rest) = mma_tile_shape
    whole = ((mma[0], rows), (mma[1], columns), *rest)
    return tiled_divide(tile_to_shape(atom, whole, order), product_each(mma))


attach(__name__)
