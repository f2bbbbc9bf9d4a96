"""``cute.nvgpu.tcgen05``: Blackwell's tensor cores. products, and loads and stores of tensor memory."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from tilewright._names import attach
from tilewright.atoms.tensor_memory import elements_per_column, lane_stride, tmem_columns
from tilewright.atoms.tensor_memory_move import TmemLoad, TmemMove, TmemStore
from tilewright.cute.nvgpu.common import OperandMajorMode
from tilewright.cute.nvgpu.tcgen05.block_scaled_ops import (
    BlockScaledMmaOp,
    MmaMXF4NVF4Op,
    MmaMXF4Op,
    MmaMXF8F6F4Op,
    MmaMXF8Op,
    SM103MmaMXF4NVF4Op,
    SM103MmaMXF4Op,
)
from tilewright.cute.nvgpu.tcgen05.descriptors import make_umma_smem_desc, smem_descriptor_to_int
from tilewright.cute.nvgpu.tcgen05.mma_ops import (
    CtaGroup,
    Field,
    MmaF8F6F4Op,
    MmaF16BF16Op,
    MmaFP8Op,
    MmaI8Op,
    MmaOp,
    MmaTF32Op,
    OperandSource,
    commit,
)
from tilewright.cute.nvgpu.tcgen05.reducing_loads import LdRed16x32bx2Op, LdRed32x32bOp, TmemLoadRedOp
from tilewright.cute.nvgpu.tcgen05.s2t import (
    Cp2x64x128b0123Op,
    Cp2x64x128b0213Op,
    Cp4x32x128bOp,
    Cp4x256bOp,
    Cp128x128bOp,
    Cp128x256bOp,
    get_s2t_smem_desc_tensor,
    make_s2t_copy,
)
from tilewright.cute.nvgpu.tcgen05.smem_atoms import SmemLayoutAtomKind, make_smem_layout_atom
from tilewright.errors import ConstraintError
from tilewright.lang.tensors.tensor import Tensor
from tilewright.lang.tensors.tensor_memory import TensorMemory
from tilewright.layout import (
    ComposedLayout,
    Layout,
    composition,
    is_static,
    make_layout,
    product_each,
    recast_layout,
    tile_to_shape,
    tiled_divide,
)
from tilewright.tiled.atom import CopyAtom
from tilewright.tiled.make_copy import make_cotiled_copy
from tilewright.tiled.tiled_copy import TiledCopy

__all__ = [
    "BlockScaledMmaOp",
    "Cp128x128bOp",
    "Cp128x256bOp",
    "Cp2x64x128b0123Op",
    "Cp2x64x128b0213Op",
    "Cp4x256bOp",
    "Cp4x32x128bOp",
    "CtaGroup",
    "Field",
    "Ld16x128bOp",
    "Ld16x256bOp",
    "Ld16x32bx2Op",
    "Ld16x64bOp",
    "Ld32x32bOp",
    "LdRed16x32bx2Op",
    "LdRed32x32bOp",
    "MmaF16BF16Op",
    "MmaF8F6F4Op",
    "MmaFP8Op",
    "MmaI8Op",
    "MmaMXF4NVF4Op",
    "MmaMXF4Op",
    "MmaMXF8F6F4Op",
    "MmaMXF8Op",
    "MmaOp",
    "MmaTF32Op",
    "OperandMajorMode",
    "OperandSource",
    "Pack",
    "Repetition",
    "SM103MmaMXF4NVF4Op",
    "SM103MmaMXF4Op",
    "SmemLayoutAtomKind",
    "St16x128bOp",
    "St16x256bOp",
    "St16x32bx2Op",
    "St16x64bOp",
    "St32x32bOp",
    "TmemLoadRedOp",
    "Unpack",
    "commit",
    "find_tmem_tensor_col_offset",
    "get_s2t_smem_desc_tensor",
    "get_tmem_copy_properties",
    "is_tmem_load",
    "is_tmem_store",
    "make_s2t_copy",
    "make_smem_layout_atom",
    "make_tmem_copy",
    "make_umma_smem_desc",
    "smem_descriptor_to_int",
    "tile_to_mma_shape",
]


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


class _Move:
    """The common part of loads and stores of tensor memory."""

    _shape: ClassVar[str]
    _kind: ClassVar[type[TmemMove]]
    repeat: Repetition

    def __post_init__(self) -> None:
        if not isinstance(self.repeat, Repetition):
            raise ConstraintError(f"{type(self).__name__}: repeat is a Repetition, not {self.repeat!r}")
        self.copy_instruction(None)

    def copy_instruction(self, value_type: Any, num_bits: int = 0) -> TmemMove:
        packed = any(getattr(self, name, none) is not none for name, none in _NOT_PACKED.items())
        return self._kind(self._shape, self.repeat.value, packed)


_NOT_PACKED = {"pack": Pack.NONE, "unpack": Unpack.NONE}


@dataclass(frozen=True)
class _Load(_Move):
    _kind = TmemLoad
    repeat: Repetition = Repetition.x1
    pack: Pack = Pack.NONE


@dataclass(frozen=True)
class _Store(_Move):
    _kind = TmemStore
    repeat: Repetition = Repetition.x1
    unpack: Unpack = Unpack.NONE


@dataclass(frozen=True)
class Ld32x32bOp(_Load):
    """``tcgen05.ld`` of shape .32x32b: x1 to x128.

    >>> Ld32x32bOp(Repetition.x8).copy_instruction(None)
    SM100_TMEM_LOAD_32x32b8x
    """

    _shape = "32x32b"


@dataclass(frozen=True)
class Ld16x32bx2Op(_Load):
    """``tcgen05.ld`` of shape .16x32bx2: x1 to x128; threads 16-31 have the columns after those of threads 0-15.

    >>> Ld16x32bx2Op(Repetition.x8).copy_instruction(None)
    SM100_TMEM_LOAD_16x32bx28x
    """

    _shape = "16x32bx2"


@dataclass(frozen=True)
class Ld16x64bOp(_Load):
    """``tcgen05.ld`` of shape .16x64b: x1 to x128.

    >>> Ld16x64bOp(Repetition.x8).copy_instruction(None)
    SM100_TMEM_LOAD_16x64b8x
    """

    _shape = "16x64b"


@dataclass(frozen=True)
class Ld16x128bOp(_Load):
    """``tcgen05.ld`` of shape .16x128b: x1 to x64.

    >>> Ld16x128bOp(Repetition.x8).copy_instruction(None)
    SM100_TMEM_LOAD_16x128b8x
    """

    _shape = "16x128b"


@dataclass(frozen=True)
class Ld16x256bOp(_Load):
    """``tcgen05.ld`` of shape .16x256b: x1 to x32.

    >>> Ld16x256bOp(Repetition.x8).copy_instruction(None)
    SM100_TMEM_LOAD_16x256b8x
    """

    _shape = "16x256b"


@dataclass(frozen=True)
class St32x32bOp(_Store):
    """``tcgen05.st`` of shape .32x32b: x1 to x128.

    >>> St32x32bOp(Repetition.x8).copy_instruction(None)
    SM100_TMEM_STORE_32x32b8x
    """

    _shape = "32x32b"


@dataclass(frozen=True)
class St16x32bx2Op(_Store):
    """``tcgen05.st`` of shape .16x32bx2: x1 to x128; threads 16-31 have the columns after those of threads 0-15.

    >>> St16x32bx2Op(Repetition.x8).copy_instruction(None)
    SM100_TMEM_STORE_16x32bx28x
    """

    _shape = "16x32bx2"


@dataclass(frozen=True)
class St16x64bOp(_Store):
    """``tcgen05.st`` of shape .16x64b: x1 to x128.

    >>> St16x64bOp(Repetition.x8).copy_instruction(None)
    SM100_TMEM_STORE_16x64b8x
    """

    _shape = "16x64b"


@dataclass(frozen=True)
class St16x128bOp(_Store):
    """``tcgen05.st`` of shape .16x128b: x1 to x64.

    >>> St16x128bOp(Repetition.x8).copy_instruction(None)
    SM100_TMEM_STORE_16x128b8x
    """

    _shape = "16x128b"


@dataclass(frozen=True)
class St16x256bOp(_Store):
    """``tcgen05.st`` of shape .16x256b: x1 to x32.

    >>> St16x256bOp(Repetition.x8).copy_instruction(None)
    SM100_TMEM_STORE_16x256b8x
    """

    _shape = "16x256b"


def make_tmem_copy(atom: CopyAtom, tmem_tensor: Tensor, *, loc: Any = None, ip: Any = None) -> TiledCopy:
    """The tiled copy of four warps between tensor memory and registers: warp w has the lanes 32 * w to 32 * w + 31.

    ``tmem_tensor`` is a tensor of tensor memory, whose modes are the tile's. ConstraintError where the instruction
    does not fit its layout.
    """
    instruction = atom.instruction
    if not isinstance(instruction, TmemMove):
        raise ConstraintError(f"make_tmem_copy takes an atom of tcgen05.ld or st, not {instruction}")
    width = atom.scalar.width
    elements_per_column(width)
    if instruction.pack and width != 16:
        raise ConstraintError(f"{instruction} packs numbers of 16 bits, and the atom is for {atom.scalar}")
    layouts = instruction.layouts
    places = recast_layout(width, 1, layouts.places)
    registers = recast_layout(width, 1, layouts.registers)
    one_warp = composition(places, registers)
    threads = make_layout(one_warp[0], Layout(4, 32 * lane_stride(width)))
    return make_cotiled_copy(atom, make_layout(threads, one_warp[1]), tmem_tensor.linear)


def get_tmem_copy_properties(atom: CopyAtom, *, loc: Any = None, ip: Any = None) -> tuple[int, int, int, Pack | Unpack]:
    """The properties of a copy atom or tiled copy of tensor memory: the lanes of its shape, the bits of a lane, the
    number of repetitions, and the packing. ConstraintError for other atoms.

    >>> from tilewright import Float16, Float32
    >>> get_tmem_copy_properties(cute.make_copy_atom(Ld16x256bOp(Repetition.x4), Float32))
    (16, 256, 4, <Pack.NONE: 1>)
    """
    instruction = atom.instruction
    if not isinstance(instruction, TmemMove):
        raise ConstraintError(f"get_tmem_copy_properties takes an atom of tcgen05.ld or st, not {instruction}")
    lanes, bits = instruction.shape.removesuffix("x2").removesuffix("b").split("x")
    packing: Pack | Unpack = Pack.PACK_16b_IN_32b if instruction.pack else Pack.NONE
    if isinstance(instruction, TmemStore):
        packing = Unpack.UNPACK_32b_IN_16b if instruction.pack else Unpack.NONE
    return int(lanes), int(bits), instruction.repeat, packing


def is_tmem_load(atom: CopyAtom, *, loc: Any = None, ip: Any = None) -> bool:
    """Whether a copy atom, or tiled copy, loads from tensor memory and does nothing else.

    >>> from tilewright import Float32
    >>> is_tmem_load(cute.make_copy_atom(Ld32x32bOp(Repetition.x4), Float32))
    True
    """
    return isinstance(atom.instruction, TmemLoad) and not hasattr(atom.op, "stage_reduction")


def is_tmem_store(atom: CopyAtom, *, loc: Any = None, ip: Any = None) -> bool:
    """Whether a copy atom, or tiled copy, stores to tensor memory.

    >>> from tilewright import Float32
    >>> is_tmem_store(cute.make_copy_atom(Ld32x32bOp(Repetition.x4), Float32))
    False
    """
    return isinstance(atom.instruction, TmemStore)


def find_tmem_tensor_col_offset(tmem_tensor: Tensor, *, loc: Any = None, ip: Any = None) -> int:
    """The columns that a tensor of tensor memory reaches: the next one can begin there. ConstraintError for others."""
    layout = tmem_tensor.linear
    if not isinstance(tmem_tensor.engine, TensorMemory) or not isinstance(layout, Layout) or not is_static(layout):
        raise ConstraintError(f"find_tmem_tensor_col_offset takes a static tensor of tensor memory, not {tmem_tensor}")
    return tmem_columns(layout, tmem_tensor.element_type.width)


def tile_to_mma_shape(atom: Any, mma_tile_shape: Any, order: Any = None, *, loc: Any = None, ip: Any = None) -> Any:
    """A layout atom (M or N, K) tiled to ``((MMA_M, MMA_K), M_MMAs, K_MMAs, ...)``: the tile of one MMA, and how many
    there are along each mode. ``order`` is that in which atoms fill the modes (M or N, K, ...); an entry for stages
    counts only where the tile has a mode of them.

    >>> from tilewright.cute import Float16
    >>> atom = make_smem_layout_atom(SmemLayoutAtomKind.K_SW128, Float16)
    >>> tile_to_mma_shape(atom, ((128, 16), 1, 4, 2))
    Sw<3,4,3> o 0 o ((128,16),1,4,(1,2)):((64,1),0,16,(0,8192))
    """
    (mma, rows, columns, *rest) = mma_tile_shape
    whole = ((mma[0], rows), (mma[1], columns), *rest)
    if not isinstance(atom, Layout | ComposedLayout):
        raise ConstraintError(f"tile_to_mma_shape takes the layout that make_smem_layout_atom gives, not {atom}")
    order = order[: len(whole)] if isinstance(order, tuple) else order
    return tiled_divide(tile_to_shape(atom, whole, order), product_each(mma))


attach(__name__)
