# Made by `python tools/stubs.py` from tilewright/cute/nvgpu/tcgen05.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``cute.nvgpu.tcgen05``: Blackwell's tensor cores. Their enumerations are here, their instructions not yet."""

from enum import Enum
from tilewright.cute.nvgpu.common import OperandMajorMode as OperandMajorMode
from tilewright.cute.nvgpu.warpgroup import SmemLayoutAtomKind as SmemLayoutAtomKind
from typing import Any

class Cp128x128bOp(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class Cp128x256bOp(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class Cp2x64x128b0123Op(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class Cp2x64x128b0213Op(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class Cp4x256bOp(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class Cp4x32x128bOp(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class Ld16x128bOp(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class Ld16x256bOp(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class Ld16x32bx2Op(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class Ld16x64bOp(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class Ld32x32bOp(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class LdRed16x32bx2Op(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class LdRed32x32bOp(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class MmaF16BF16Op(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class MmaF16BF16SparseOp(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class MmaFP8Op(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class MmaI8Op(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class MmaMXF4NVF4Op(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class MmaMXF4Op(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class MmaMXF8Op(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class MmaTF32Op(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class SM103MmaMXF4NVF4Op(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class SM103MmaMXF4Op(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class St16x128bOp(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class St16x256bOp(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class St16x32bx2Op(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class St16x64bOp(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class St32x32bOp(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class TmemLoadRedOp(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class commit(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class copy(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class find_tmem_tensor_col_offset(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class get_s2t_smem_desc_tensor(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class get_tmem_copy_properties(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class is_tmem_load(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class is_tmem_store(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class make_s2t_copy(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class make_smem_layout_atom(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class make_tmem_copy(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class make_umma_smem_desc(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class mma(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

class tile_to_mma_shape(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""

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
    NONE = "none"
    PACK_16b_IN_32b = "pack_16b_in_32b"

class Unpack(Enum):
    """Whether a store to tensor memory unpacks a register into two 16-bit numbers."""
    NONE = "none"
    UNPACK_32b_IN_16b = "unpack_32b_in_16b"
