"""Operations of one warp: ``mma.sync``, ``ldmatrix``, ``stmatrix``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, cast

from tilewright._names import attach
from tilewright.atoms.ldmatrix import LdMatrix
from tilewright.atoms.matrix_copy_bytes import LdMatrixBytes, LdMatrixUnpacking, StMatrixBytes
from tilewright.atoms.mma_sync import MmaSync, Shape3
from tilewright.atoms.mma_sync_scaled import ScaledMmaSync
from tilewright.atoms.mma_sync_sparse import SparseMmaSync
from tilewright.atoms.mma_sync_table import check_known
from tilewright.atoms.stmatrix import StMatrix
from tilewright.atoms.value_types import shown
from tilewright.base_dsl.arch import Arch
from tilewright.errors import ConstraintError
from tilewright.ir.types import BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, F32, F64, I32, TF32, ScalarType, scalar_of
from tilewright.lang.numbers.numeric import class_of

__all__ = [
    "MXF8F6F4_SUPPORTED_PAIRS",
    "Field",
    "LdMatrix16x16x8bOp",
    "LdMatrix8x16x8bOp",
    "LdMatrix8x8x16bOp",
    "MmaF16BF16Op",
    "MmaF64Op",
    "MmaFP8Op",
    "MmaI8Op",
    "MmaMXF4NVF4Op",
    "MmaMXF4Op",
    "MmaMXF8F6F4Op",
    "MmaMXF8Op",
    "MmaSM120BlockScaledOp",
    "MmaTF32Op",
    "StMatrix16x8x8bOp",
    "StMatrix8x8x16bOp",
]


class Field(Enum):
    """Fields of an MMA atom that ``set`` changes at run time; scale factors (SFA, SFB) belong to sm_120."""

    ACCUMULATE = "accum_c"
    SFA = "sf_a"
    SFB = "sf_b"


def _shape(shape_mnk: Any) -> Shape3:
    if not isinstance(shape_mnk, (tuple, list)) or len(shape_mnk) != 3:
        raise ConstraintError(f"shape_mnk has three extents (M, N, K), not {shape_mnk}")
    return cast(Shape3, tuple(int(x) for x in shape_mnk))


@dataclass(frozen=True)
class _OneTypeOp:
    """``mma.sync`` whose A and B have the same type: one of ``_kinds``, from architecture ``_arch`` on."""

    ab_dtype: Any
    acc_dtype: Any
    shape_mnk: Any
    sparse: bool = False

    _kinds: ClassVar[dict[ScalarType, str]]
    _arch: ClassVar[int]

    def __post_init__(self) -> None:
        self.instruction()

    def instruction(self) -> MmaSync:
        kind = scalar_of(self.ab_dtype)
        if kind not in self._kinds:
            allowed = " or ".join(self._kinds.values())
            raise ConstraintError(f"{type(self).__name__}: ab_dtype must be {allowed}, not {self.ab_dtype}")
        atom = SparseMmaSync if self.sparse else MmaSync
        of_b = kind if self._b_dtype is None else scalar_of(self._b_dtype)
        return check_known(atom(self._arch, _shape(self.shape_mnk), scalar_of(self.acc_dtype), kind, of_b))

    @property
    def _b_dtype(self) -> Any:
        """The type of B where it is another one."""
        return None


@dataclass(frozen=True)
class MmaF16BF16Op(_OneTypeOp):
    """``mma.sync`` on Float16 (accumulating in Float16 or Float32) or BFloat16 (in Float32): 16x8x8 and 16x8x16.

    ``sparse``, of the other classes, too: ``mma.sp``, whose A is 2:4 sparse; K is twice as long (16x8x16 and 16x8x32),
    and ``cute.gemm`` takes the pair (stored elements, metadata), the metadata (1,M,K / 64) in registers of Int32.

    >>> from tilewright.cute import Float16, Float32
    >>> MmaF16BF16Op(Float16, Float32, (16, 8, 16)).instruction()
    SM80_16x8x16_F32F16F16F32_TN
    >>> MmaF16BF16Op(Float16, Float32, (16, 8, 32), sparse=True).instruction()
    SM80_SPARSE_16x8x32_F32F16F16F32_TN
    """

    _kinds = {F16: "Float16", BF16: "BFloat16"}
    _arch = 80


@dataclass(frozen=True)
class MmaTF32Op:
    """``mma.sync`` on TFloat32, accumulating in Float32: 16x8x4 and 16x8x8. ``sparse``: of two neighbours one is
    stored, 16x8x8 and 16x8x16; metadata are (1,M,K / 32).

    >>> atom = cute.make_mma_atom(MmaTF32Op((16, 8, 8)))
    >>> atom.shape_mnk, atom.tv_layout_A
    ((16, 8, 8), ((4,8),(2,2)):((16,1),(8,64)))
    """

    shape_mnk: Any
    sparse: bool = False

    def __post_init__(self) -> None:
        self.instruction()

    def instruction(self) -> MmaSync:
        return check_known((SparseMmaSync if self.sparse else MmaSync)(80, _shape(self.shape_mnk), F32, TF32, TF32))


@dataclass(frozen=True)
class MmaF64Op:
    """``mma.sync`` on Float64: 8x8x4, and 16x8x4, 16x8x8, 16x8x16 on sm_90 and later.

    >>> atom = cute.make_mma_atom(MmaF64Op((8, 8, 4)))
    >>> atom.shape_mnk, atom.tv_layout_C
    ((8, 8, 4), ((4,8),2):((16,1),8))
    """

    shape_mnk: Any

    def __post_init__(self) -> None:
        self.instruction()

    def instruction(self) -> MmaSync:
        shape = _shape(self.shape_mnk)
        return check_known(MmaSync(80 if shape == (8, 8, 4) else 90, shape, F64, F64, F64))


@dataclass(frozen=True)
class MmaFP8Op(_OneTypeOp):
    """``mma.sync`` on Float8E4M3FN or Float8E5M2, accumulating in Float32 or Float16: 16x8x32; sm_89 and later.
    ``b_dtype``: the type of B where it is the other one.

    >>> from tilewright import Float8E4M3FN, Float8E5M2, Float32
    >>> MmaFP8Op(Float8E4M3FN, Float32, (16, 8, 32)).instruction()
    SM89_16x8x32_F32E4M3E4M3F32_TN
    >>> MmaFP8Op(Float8E4M3FN, Float32, (16, 8, 32), b_dtype=Float8E5M2).instruction()
    SM89_16x8x32_F32E4M3E5M2F32_TN
    """

    b_dtype: Any = None

    _kinds = {E4M3: "Float8E4M3FN", E5M2: "Float8E5M2"}
    _arch = 89

    @property
    def _b_dtype(self) -> Any:
        return self.b_dtype


@dataclass(frozen=True)
class MmaI8Op:
    """``mma.sync`` on Int8 or Uint8, accumulating in Int32: 8x8x16, 16x8x16 and 16x8x32.

    ``saturate`` clamps sums to the range of Int32 instead of wrapping.

    >>> from tilewright import Int8, Uint8
    >>> MmaI8Op(Int8, Uint8, (16, 8, 32)).instruction()
    SM80_16x8x32_S32S8U8S32_TN
    """

    a_dtype: Any
    b_dtype: Any
    shape_mnk: Any
    saturate: bool = False
    sparse: bool = False

    def __post_init__(self) -> None:
        self.instruction()

    def instruction(self) -> MmaSync:
        a, b = scalar_of(self.a_dtype), scalar_of(self.b_dtype)
        atom = SparseMmaSync if self.sparse else MmaSync
        return check_known(atom(80, _shape(self.shape_mnk), I32, a, b, saturate=self.saturate))


class MmaSM120BlockScaledOp:
    """The common class of ``mma.sync`` with block scales (sm_120a). ``Field.SFA`` and ``Field.SFB`` are the registers
    that have the factors of a gemm's instruction: in lane l those of row ``l % 2 * 8 + l / 4`` of A, and of column
    ``l / 4`` of B. A gemm is one instruction.

    >>> from tilewright import Float4E2M1FN, Float8E8M0FNU, Float32
    >>> op = MmaMXF4Op(Float4E2M1FN, Float32, Float8E8M0FNU)
    >>> isinstance(op, MmaSM120BlockScaledOp), op.shape_mnk, op.sf_vec_size
    (True, (16, 8, 64), 32)
    """

    admissible_archs: ClassVar[list[Arch]] = [arch for arch in Arch if arch.major == 12 and arch.suffix]
    """The architectures that have the instruction."""
    _kind: ClassVar[str]
    _inputs: ClassVar[tuple[ScalarType, ...]]
    acc_dtype: Any
    sf_type: Any

    def __post_init__(self) -> None:
        self.instruction()

    @property
    def shape_mnk(self) -> Shape3:
        return self.instruction().shape_mnk

    @property
    def sf_vec_size(self) -> int:
        """How many elements share a factor."""
        return self.instruction().vec

    def _types(self) -> tuple[Any, Any]:
        """The types of A and B."""
        raise NotImplementedError

    def instruction(self) -> ScaledMmaSync:
        who = type(self).__name__
        a, b = (scalar_of(x) for x in self._types())
        for name, dtype in (("A", a), ("B", b)):
            if dtype not in self._inputs:
                raise ConstraintError(f"{who}: {name} is one of {', '.join(map(shown, self._inputs))}, not {dtype}")
        if scalar_of(self.acc_dtype) != F32:
            raise ConstraintError(f"{who}: accumulates in Float32, not in {self.acc_dtype}")
        return ScaledMmaSync(self._kind, a, b, scalar_of(self.sf_type), self._vec())

    def _vec(self) -> int:
        return 32


@dataclass(frozen=True)
class _OneScaledType(MmaSM120BlockScaledOp):
    ab_dtype: Any
    acc_dtype: Any
    sf_type: Any

    def _types(self) -> tuple[Any, Any]:
        return self.ab_dtype, self.ab_dtype


@dataclass(frozen=True)
class MmaMXF4Op(_OneScaledType):
    """``mma.sync`` of kind mxf4 on Float4E2M1FN, 16x8x64: factors of type Float8E8M0FNU for 32 elements each.

    >>> from tilewright import Float4E2M1FN, Float8E8M0FNU, Float32
    >>> MmaMXF4Op(Float4E2M1FN, Float32, Float8E8M0FNU).instruction()
    SM120_16x8x64_F32E2M1E2M1F32_TN_UE8M0x32
    """

    _kind = "mxf4"
    _inputs = (E2M1,)


@dataclass(frozen=True)
class MmaMXF4NVF4Op(_OneScaledType):
    """``mma.sync`` of kind mxf4nvf4 on Float4E2M1FN, 16x8x64: factors of type Float8E4M3FN (whose sign does not count)
    or Float8E8M0FNU for 16 elements each.

    >>> from tilewright import Float4E2M1FN, Float8E4M3FN, Float32
    >>> MmaMXF4NVF4Op(Float4E2M1FN, Float32, Float8E4M3FN).instruction()
    SM120_16x8x64_F32E2M1E2M1F32_TN_E4M3x16
    """

    _kind = "mxf4nvf4"
    _inputs = (E2M1,)

    def _vec(self) -> int:
        return 16


@dataclass(frozen=True)
class MmaMXF8Op(_OneScaledType):
    """``mma.sync`` of kind mxf8f6f4 on Float8E4M3FN or Float8E5M2, 16x8x32: factors of type Float8E8M0FNU for 32
    elements each.

    >>> from tilewright import Float8E4M3FN, Float8E8M0FNU, Float32
    >>> MmaMXF8Op(Float8E4M3FN, Float32, Float8E8M0FNU).instruction()
    SM120_16x8x32_F32E4M3E4M3F32_TN_UE8M0x32
    """

    _kind = "mxf8f6f4"
    _inputs = (E4M3, E5M2)


@dataclass(frozen=True)
class MmaMXF8F6F4Op(MmaSM120BlockScaledOp):
    """``mma.sync`` of kind mxf8f6f4 on floats of 8, 6 and 4 bits, A and B of types of their own, 16x8x32: factors of
    type Float8E8M0FNU for 32 elements each. Registers have a byte for each number, 4 bits in its middle; those of
    narrow types are of Uint8.

    >>> from tilewright import Float4E2M1FN, Float8E4M3FN, Float8E8M0FNU, Float32
    >>> MmaMXF8F6F4Op(Float8E4M3FN, Float4E2M1FN, Float32, Float8E8M0FNU).instruction()
    SM120_16x8x32_F32E4M3E2M1F32_TN_UE8M0x32
    """

    a_dtype: Any
    b_dtype: Any
    acc_dtype: Any
    sf_type: Any

    _kind = "mxf8f6f4"
    _inputs = (E4M3, E5M2, E3M2, E2M3, E2M1)

    def _types(self) -> tuple[Any, Any]:
        return self.a_dtype, self.b_dtype


MXF8F6F4_SUPPORTED_PAIRS = frozenset(
    (class_of(a), class_of(b)) for a in MmaMXF8F6F4Op._inputs for b in MmaMXF8F6F4Op._inputs
)
"""The types of A and B that :class:`MmaMXF8F6F4Op` multiplies: each with each."""


@dataclass(frozen=True)
class LdMatrix8x8x16bOp:
    """``ldmatrix``: ``num_matrices`` (1, 2, 4) 8x8 matrices of 16-bit cells from shared memory, optionally transposed.

    >>> LdMatrix8x8x16bOp(transpose=True, num_matrices=4).matrix_copy()
    SM75_U16x8_LDSM_T
    """

    transpose: bool = False
    num_matrices: int = 1

    def __post_init__(self) -> None:
        self.matrix_copy()

    def matrix_copy(self) -> LdMatrix:
        return LdMatrix(self.num_matrices, self.transpose)

    def copy_instruction(self, value_type: ScalarType, num_bits: int = 0) -> LdMatrix:
        return self.matrix_copy()


@dataclass(frozen=True)
class LdMatrix8x16x8bOp:
    """``ldmatrix``: ``num_matrices`` (1, 2, 4) matrices of 8 rows of 16 cells of 8 bits from shared memory.

    The instruction is that of 8x8 16-bit cells (two 8-bit cells stay together), so that it cannot transpose. With
    ``unpack_bits`` 4 or 6 (sm_100a, sm_120a and their like) rows have 16 numbers of so many bits in the first 8 or 12
    of 16 bytes, as TMA leaves them (``TensorMapDataFormat``), and each becomes the low bits of a byte of a register;
    ``mma.sync`` wants those of 4 bits two bits higher: shift them.

    >>> LdMatrix8x16x8bOp(num_matrices=4).matrix_copy(), LdMatrix8x16x8bOp(unpack_bits=4).matrix_copy()
    (SM75_U32x4_LDSM_N, SM100_SU4_DU8x16_x1_LDSM_N)
    """

    transpose: bool = False
    num_matrices: int = 1
    unpack_bits: int | None = None

    def __post_init__(self) -> None:
        if self.transpose:
            raise ConstraintError(
                "LdMatrix8x16x8bOp does not transpose: cells of 8 bits move in pairs. Load with CopyUniversalOp, or "
                "LdMatrix16x16x8bOp (sm_100)"
            )
        self.matrix_copy()

    def matrix_copy(self) -> LdMatrix:
        if self.unpack_bits is not None:
            return LdMatrixUnpacking(self.num_matrices, width=self.unpack_bits)
        return LdMatrix(self.num_matrices)

    def copy_instruction(self, value_type: ScalarType, num_bits: int = 0) -> LdMatrix:
        if value_type.width != 8:
            raise ConstraintError(f"LdMatrix8x16x8bOp loads cells of 8 bits, not {value_type}: use LdMatrix8x8x16bOp")
        return self.matrix_copy()


@dataclass(frozen=True)
class LdMatrix16x16x8bOp:
    """``ldmatrix.m16n16`` (sm_100a, sm_120a and their like): ``num_matrices`` (1, 2) matrices of 16 rows of 16 cells of
    8 bits from shared memory, transposed, which ``transpose=True`` says; a number alone is ``num_matrices``.

    >>> LdMatrix16x16x8bOp(transpose=True, num_matrices=2).matrix_copy(), LdMatrix16x16x8bOp(2).num_matrices
    (SM100_U8x16_LDSM_T, 2)
    """

    transpose: bool = True
    num_matrices: int = 1

    def __post_init__(self) -> None:
        _check_transposed(self)
        self.matrix_copy()

    def matrix_copy(self) -> LdMatrixBytes:
        return LdMatrixBytes(self.num_matrices)

    def copy_instruction(self, value_type: ScalarType, num_bits: int = 0) -> LdMatrixBytes:
        if value_type.width != 8:
            raise ConstraintError(f"LdMatrix16x16x8bOp loads cells of 8 bits, not {value_type}: use LdMatrix8x8x16bOp")
        return self.matrix_copy()


@dataclass(frozen=True)
class StMatrix8x8x16bOp:
    """``stmatrix``: ``num_matrices`` (1, 2, 4) 8x8 matrices of 16-bit cells to shared memory; sm_90 and later."""

    transpose: bool = False
    num_matrices: int = 1

    def __post_init__(self) -> None:
        self.matrix_copy()

    def matrix_copy(self) -> StMatrix:
        return StMatrix(self.num_matrices, self.transpose)

    def copy_instruction(self, value_type: ScalarType, num_bits: int = 0) -> StMatrix:
        return self.matrix_copy()


@dataclass(frozen=True)
class StMatrix16x8x8bOp:
    """``stmatrix.m16n8`` (sm_100a, sm_120a and their like): ``num_matrices`` (1, 2, 4) matrices of 16 by 8 cells of 8
    bits to shared memory, transposed: in 8 rows of 16 cells. ``transpose=True`` says so; a number alone is
    ``num_matrices``.

    >>> StMatrix16x8x8bOp(transpose=True, num_matrices=4).matrix_copy(), StMatrix16x8x8bOp(4).num_matrices
    (SM100_U8x16_STSM_T, 4)
    """

    transpose: bool = True
    num_matrices: int = 1

    def __post_init__(self) -> None:
        _check_transposed(self)
        self.matrix_copy()

    def matrix_copy(self) -> StMatrixBytes:
        return StMatrixBytes(self.num_matrices)

    def copy_instruction(self, value_type: ScalarType, num_bits: int = 0) -> StMatrixBytes:
        if value_type.width != 8:
            raise ConstraintError(f"StMatrix16x8x8bOp stores cells of 8 bits, not {value_type}: use StMatrix8x8x16bOp")
        return self.matrix_copy()


def _check_transposed(op: LdMatrix16x16x8bOp | StMatrix16x8x8bOp) -> None:
    """Of matrices that PTX moves transposed only. Before CuTe DSL 4.4 ``num_matrices`` was the only argument."""
    if not isinstance(op.transpose, bool):
        object.__setattr__(op, "num_matrices", op.transpose)
        object.__setattr__(op, "transpose", True)
    if not op.transpose:
        raise ConstraintError(
            f"{type(op).__name__}(transpose=False): PTX moves these matrices transposed; transpose=True"
        )


attach(__name__)
