"""Operations of four warps: ``wgmma`` and what orders it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from tilewright._names import attach
from tilewright.atoms.value_types import shown
from tilewright.atoms.wgmma import WgmmaAtom, check_known
from tilewright.atoms.wgmma_names import atom_class
from tilewright.atoms.wgmma_sync import WgmmaCommit, WgmmaFence, WgmmaWait
from tilewright.cute.nvgpu.common import OperandMajorMode
from tilewright.errors import ConstraintError
from tilewright.ir.types import BF16, E4M3, E5M2, F16, F32, I8, I32, TF32, U8, ScalarType, scalar_of
from tilewright.lang.device.calls import call
from tilewright.layout import ComposedLayout, get_nonswizzle_portion, make_smem_atom
from tilewright.layout.smem_atoms import BYTE_SWIZZLES

__all__ = [
    "Field",
    "MmaF16BF16Op",
    "MmaF8Op",
    "MmaI8Op",
    "MmaTF32Op",
    "OperandMajorMode",
    "OperandSource",
    "SmemLayoutAtomKind",
    "commit_group",
    "fence",
    "make_smem_layout_atom",
    "wait_group",
]


class OperandSource(Enum):
    """Where operand A is: registers or shared memory.

    >>> from tilewright import Float16, Float32
    >>> from tilewright.cute.nvgpu import OperandMajorMode, warpgroup
    >>> op = warpgroup.MmaF16BF16Op(
    ...     Float16, Float32, (64, 64, 16), warpgroup.OperandSource.RMEM, OperandMajorMode.K, OperandMajorMode.K
    ... )
    >>> cute.make_tiled_mma(op).size
    128
    """

    RMEM = "rmem"
    SMEM = "smem"


class Field(Enum):
    """The part of a wgmma atom that may change at run time: whether it accumulates or overwrites.

    >>> from tilewright import Float16, Float32
    >>> from tilewright.cute.nvgpu import OperandMajorMode, warpgroup
    >>> from tilewright.utils import hopper_helpers
    >>> mma = hopper_helpers.make_trivial_tiled_mma(
    ...     Float16, Float16, OperandMajorMode.K, OperandMajorMode.K, Float32, (1, 1, 1), tiler_mn=(64, 128)
    ... )
    >>> mma.set(warpgroup.Field.ACCUMULATE, False)  # the next cute.gemm overwrites the accumulators
    >>> mma.get(warpgroup.Field.ACCUMULATE)
    False
    """

    ACCUMULATE = "accum_c"


class SmemLayoutAtomKind(Enum):
    """The atoms of shared-memory layouts that wgmma and TMA read: the major mode and the bytes of a row (``INTER``: 16,
    no swizzle).

    >>> from tilewright import Float16
    >>> from tilewright.cute.nvgpu import warpgroup
    >>> for kind in (warpgroup.SmemLayoutAtomKind.K_SW128, warpgroup.SmemLayoutAtomKind.MN_SW64):
    ...     print(warpgroup.make_smem_layout_atom(kind, Float16))
    Sw<3,4,3> o 0 o (8,64):(64,1)
    Sw<2,4,3> o 0 o (32,8):(1,32)
    """

    MN_INTER = "MN_INTER"
    MN_SW32 = "MN_SW32"
    MN_SW64 = "MN_SW64"
    MN_SW128 = "MN_SW128"
    K_INTER = "K_INTER"
    K_SW32 = "K_SW32"
    K_SW64 = "K_SW64"
    K_SW128 = "K_SW128"


def make_smem_layout_atom(kind: SmemLayoutAtomKind, element_type: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The layout atom (M or N, K) for elements of a type; tile it to the tile's shape with ``cute.tile_to_shape``.

    Its ``outer`` counts elements, its ``inner`` is the swizzle of *byte* addresses, which the hardware applies:
    allocate with ``layout=staged.outer, swizzle=staged.inner``.

    >>> from tilewright.cute import Float16
    >>> make_smem_layout_atom(SmemLayoutAtomKind.K_SW128, Float16)
    Sw<3,4,3> o 0 o (8,64):(64,1)
    """
    if not isinstance(kind, SmemLayoutAtomKind):
        raise ConstraintError(f"make_smem_layout_atom takes a SmemLayoutAtomKind, not {kind!r}")
    return smem_layout_atom(kind.value, element_type)


def smem_layout_atom(kind: str, element_type: Any) -> Any:
    """The atom of a kind by name, as ``K_SW128``, with the swizzle of byte addresses."""
    major, swizzle = kind.split("_", 1)
    atom = make_smem_atom(major, swizzle, scalar_of(element_type).width)
    return ComposedLayout(BYTE_SWIZZLES[swizzle], 0, get_nonswizzle_portion(atom))


def fence(*, loc: Any = None, ip: Any = None) -> None:
    """``wgmma.fence``: before the first gemm, and after other code has touched the accumulators or A's registers."""
    call(WgmmaFence())


def commit_group(*, loc: Any = None, ip: Any = None) -> None:
    """Close the group of the gemms issued since the last group."""
    call(WgmmaCommit())


def wait_group(group: int, *, loc: Any = None, ip: Any = None) -> None:
    """Wait until at most the ``group`` newest groups are unfinished; then the accumulators of the others can be read,
    and the shared memory that they read can be written."""
    call(WgmmaWait(group))


def _atom(op: Any, types: tuple[ScalarType, ScalarType, ScalarType], majors: tuple[Any, Any], **more: Any) -> WgmmaAtom:
    shape = op.instruction_shape
    if not isinstance(shape, (tuple, list)) or len(shape) != 3 or not all(isinstance(x, int) for x in shape):
        raise ConstraintError(f"{type(op).__name__}: instruction_shape has three extents (M, N, K), not {shape}")
    if not isinstance(op.a_src, OperandSource):
        raise ConstraintError(f"{type(op).__name__}: a_src is an OperandSource, not {op.a_src!r}")
    for name, major in zip(("a_major_mode", "b_major_mode"), majors, strict=True):
        if not isinstance(major, OperandMajorMode):
            raise ConstraintError(f"{type(op).__name__}: {name} is an OperandMajorMode, not {major!r}")
    a_major, b_major = ("K" if m is OperandMajorMode.K else "MN" for m in majors)
    source = "SS" if op.a_src is OperandSource.SMEM else "RS"
    m, n, k = shape
    atom = atom_class(getattr(op, "sparse", False))
    return check_known(atom((m, n, k), *types, source, (a_major, b_major), **more))


def _need(op: Any, name: str, dtype: Any, allowed: tuple[ScalarType, ...]) -> ScalarType:
    kind: ScalarType = scalar_of(dtype)
    if kind not in allowed:
        raise ConstraintError(f"{type(op).__name__}: {name} is one of {', '.join(map(shown, allowed))}, not {dtype}")
    return kind


@dataclass(frozen=True)
class MmaF16BF16Op:
    """``wgmma`` on Float16 (accumulating in Float16 or Float32) or BFloat16 (in Float32): 64xNx16.

    N is 8 to 256 in steps of 8; A and B in either major (A in registers: K-major).

    >>> from tilewright.cute import Float16, Float32
    >>> MmaF16BF16Op(
    ...     Float16, Float32, (64, 256, 16), OperandSource.SMEM, OperandMajorMode.K, OperandMajorMode.MN
    ... ).instruction()
    SM90_64x256x16_F32F16F16_SS<K,MN>

    ``sparse``: A is 2:4 sparse, and the shape is 64xNx32; ``cute.gemm`` takes the pair (stored elements, metadata).

    >>> op = MmaF16BF16Op(
    ...     Float16, Float32, (64, 256, 32), OperandSource.SMEM, OperandMajorMode.K, OperandMajorMode.K, sparse=True
    ... )
    >>> op.instruction()
    SM90_SPARSE_64x256x32_F32F16F16_SS<K,K>
    """

    ab_dtype: Any
    acc_dtype: Any
    instruction_shape: Any
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode
    sparse: bool = False

    def __post_init__(self) -> None:
        self.instruction()

    def instruction(self) -> WgmmaAtom:
        kind = _need(self, "ab_dtype", self.ab_dtype, (F16, BF16))
        return _atom(self, (scalar_of(self.acc_dtype), kind, kind), (self.a_major_mode, self.b_major_mode))


@dataclass(frozen=True)
class MmaTF32Op:
    """``wgmma`` on TFloat32 (Float32 arrays serve), accumulating in Float32: 64xNx8 (``sparse``: 64xNx16, one of two
    neighbours of A is stored); A and B K-major.

    >>> from tilewright import Float32
    >>> MmaTF32Op(Float32, (64, 128, 8), OperandSource.SMEM).instruction()
    SM90_64x128x8_F32TF32TF32_SS_TN
    """

    acc_dtype: Any
    instruction_shape: Any
    a_src: OperandSource
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    sparse: bool = False

    def __post_init__(self) -> None:
        self.instruction()

    def instruction(self) -> WgmmaAtom:
        _need(self, "acc_dtype", self.acc_dtype, (F32,))
        return _atom(self, (F32, TF32, TF32), (self.a_major_mode, self.b_major_mode))


@dataclass(frozen=True)
class _MmaOf8Bits:
    """The fields of the operations on operands of 8 bits; A and B may be of two types."""

    a_dtype: Any
    b_dtype: Any
    acc_dtype: Any
    instruction_shape: Any
    a_src: OperandSource
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    sparse: bool = False

    def __post_init__(self) -> None:
        self.instruction()

    def instruction(self) -> WgmmaAtom:
        raise NotImplementedError


@dataclass(frozen=True)
class MmaF8Op(_MmaOf8Bits):
    """``wgmma`` on Float8E4M3FN and Float8E5M2, accumulating in Float32 or Float16: 64xNx32 (``sparse``: 64xNx64);
    A and B K-major.

    The hardware adds with fewer bits than Float32 has: long sums want a second accumulator.

    >>> from tilewright import Float8E4M3FN, Float8E5M2, Float32
    >>> MmaF8Op(Float8E4M3FN, Float8E5M2, Float32, (64, 128, 32), OperandSource.SMEM).instruction()
    SM90_64x128x32_F32E4M3E5M2_SS_TN
    """

    def instruction(self) -> WgmmaAtom:
        a, b = (_need(self, n, getattr(self, n), (E4M3, E5M2)) for n in ("a_dtype", "b_dtype"))
        return _atom(self, (scalar_of(self.acc_dtype), a, b), (self.a_major_mode, self.b_major_mode))


@dataclass(frozen=True)
class MmaI8Op(_MmaOf8Bits):
    """``wgmma`` on Int8 and Uint8, accumulating in Int32: 64xNx32 (``sparse``: 64xNx64); A and B K-major.

    >>> from tilewright import Int8, Int32, Uint8
    >>> MmaI8Op(Int8, Uint8, Int32, (64, 128, 32), OperandSource.SMEM).instruction()
    SM90_64x128x32_S32S8U8_SS_TN
    """

    def instruction(self) -> WgmmaAtom:
        a, b = (_need(self, n, getattr(self, n), (I8, U8)) for n in ("a_dtype", "b_dtype"))
        _need(self, "acc_dtype", self.acc_dtype, (I32,))
        return _atom(self, (I32, a, b), (self.a_major_mode, self.b_major_mode))


attach(__name__)
