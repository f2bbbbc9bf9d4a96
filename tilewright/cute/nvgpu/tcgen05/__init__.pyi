# Made by `python tools/stubs.py` from tilewright/cute/nvgpu/tcgen05/__init__.py; do not edit.
"""``cute.nvgpu.tcgen05``: Blackwell's tensor cores. Enumerations and layouts are here, instructions not yet."""

from enum import Enum
from typing import Any
from tilewright.cute.nvgpu.common import OperandMajorMode as OperandMajorMode
from tilewright.cute.nvgpu.warpgroup import SmemLayoutAtomKind as SmemLayoutAtomKind
from tilewright.cute.nvgpu.warpgroup import make_smem_layout_atom as make_smem_layout_atom
from tilewright.cute.nvgpu.tcgen05 import copy as copy
from tilewright.cute.nvgpu.tcgen05 import mma as mma

class Cp128x128bOp(Any):
    """Not here yet: using it is an error that says why."""

class Cp128x256bOp(Any):
    """Not here yet: using it is an error that says why."""

class Cp2x64x128b0123Op(Any):
    """Not here yet: using it is an error that says why."""

class Cp2x64x128b0213Op(Any):
    """Not here yet: using it is an error that says why."""

class Cp4x256bOp(Any):
    """Not here yet: using it is an error that says why."""

class Cp4x32x128bOp(Any):
    """Not here yet: using it is an error that says why."""

class Ld16x128bOp(Any):
    """Not here yet: using it is an error that says why."""

class Ld16x256bOp(Any):
    """Not here yet: using it is an error that says why."""

class Ld16x32bx2Op(Any):
    """Not here yet: using it is an error that says why."""

class Ld16x64bOp(Any):
    """Not here yet: using it is an error that says why."""

class Ld32x32bOp(Any):
    """Not here yet: using it is an error that says why."""

class LdRed16x32bx2Op(Any):
    """Not here yet: using it is an error that says why."""

class LdRed32x32bOp(Any):
    """Not here yet: using it is an error that says why."""

class MmaF16BF16Op(Any):
    """Not here yet: using it is an error that says why."""

class MmaF16BF16SparseOp(Any):
    """Not here yet: using it is an error that says why."""

class MmaFP8Op(Any):
    """Not here yet: using it is an error that says why."""

class MmaI8Op(Any):
    """Not here yet: using it is an error that says why."""

class MmaMXF4NVF4Op(Any):
    """Not here yet: using it is an error that says why."""

class MmaMXF4Op(Any):
    """Not here yet: using it is an error that says why."""

class MmaMXF8Op(Any):
    """Not here yet: using it is an error that says why."""

class MmaTF32Op(Any):
    """Not here yet: using it is an error that says why."""

class SM103MmaMXF4NVF4Op(Any):
    """Not here yet: using it is an error that says why."""

class SM103MmaMXF4Op(Any):
    """Not here yet: using it is an error that says why."""

class St16x128bOp(Any):
    """Not here yet: using it is an error that says why."""

class St16x256bOp(Any):
    """Not here yet: using it is an error that says why."""

class St16x32bx2Op(Any):
    """Not here yet: using it is an error that says why."""

class St16x64bOp(Any):
    """Not here yet: using it is an error that says why."""

class St32x32bOp(Any):
    """Not here yet: using it is an error that says why."""

class TmemLoadRedOp(Any):
    """Not here yet: using it is an error that says why."""

class commit(Any):
    """Not here yet: using it is an error that says why."""

class find_tmem_tensor_col_offset(Any):
    """Not here yet: using it is an error that says why."""

class get_s2t_smem_desc_tensor(Any):
    """Not here yet: using it is an error that says why."""

class get_tmem_copy_properties(Any):
    """Not here yet: using it is an error that says why."""

class is_tmem_load(Any):
    """Not here yet: using it is an error that says why."""

class is_tmem_store(Any):
    """Not here yet: using it is an error that says why."""

class make_s2t_copy(Any):
    """Not here yet: using it is an error that says why."""

class make_tmem_copy(Any):
    """Not here yet: using it is an error that says why."""

class make_umma_smem_desc(Any):
    """Not here yet: using it is an error that says why."""

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

class OperandSource(Enum):
    """Where operand A lies."""
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
    ...
