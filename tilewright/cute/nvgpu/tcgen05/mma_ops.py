"""The MMA operations of tcgen05, ``commit``, and the enumerations that they take."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from tilewright.atoms.tcgen05_mma import Tcgen05Mma
from tilewright.atoms.tcgen05_validity import K_OF_SM_103, MmaForm
from tilewright.atoms.value_types import shown
from tilewright.base_dsl.arch import Arch
from tilewright.cute.nvgpu.common import OperandMajorMode
from tilewright.errors import ConstraintError
from tilewright.ir.types import BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, F32, I8, I32, TF32, U8, ScalarType, scalar_of
from tilewright.lang.device.tensor_memory import CtaGroup, tcgen05_commit
from tilewright.lang.numbers.numeric import class_of
from tilewright.lang.tensors.pointer import Pointer

__all__ = [
    "CtaGroup",
    "Field",
    "MmaF16BF16Op",
    "MmaF8F6F4Op",
    "MmaFP8Op",
    "MmaI8Op",
    "MmaOp",
    "MmaTF32Op",
    "OperandSource",
    "commit",
]


SMALL_FLOATS = (E4M3, E5M2, E3M2, E2M3, E2M1)
"""What kinds f8f6f4 and mxf8f6f4 multiply, A and B of types of their own."""


class Field(Enum):
    """Fields of an MMA atom that ``set`` changes at run time."""

    NEGATE_A = "neg_a"
    NEGATE_B = "neg_b"
    ACCUMULATE = "accum_c"
    SFA = "sf_a"
    SFB = "sf_b"


class OperandSource(Enum):
    """Where operand A is."""

    TMEM = "tmem"
    SMEM = "smem"


class MmaOp:
    """The common class of tcgen05's MMA operations.

    The documented constructors take the data types first and then what :class:`ShapeFields` has. ``dataclass`` puts
    the fields of later bases first, so an operation has the bases ``ShapeFields`` and then the class of its types.
    """

    admissible_archs: ClassVar[list[Arch]] = [arch for arch in Arch if arch.major in (10, 11) and arch.suffix]
    """The architectures that have the instruction."""
    _kind: ClassVar[str]
    _inputs: ClassVar[tuple[ScalarType, ...]]
    _k_96: ClassVar[bool] = False
    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    def _types(self) -> tuple[Any, Any, Any]:
        """The types of D, A and B."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        self.instruction()

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """The shape of the instruction."""
        return self.instruction().shape_mnk

    def __getattr__(self, name: str) -> Any:
        """``a_dtype``, ``b_dtype`` and ``acc_dtype`` where they are not fields of the operation."""
        if name not in ("acc_dtype", "a_dtype", "b_dtype"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return class_of(scalar_of(self._types()[("acc_dtype", "a_dtype", "b_dtype").index(name)]))

    def instruction(self) -> Tcgen05Mma:
        """The instruction. ConstraintError for what it does not have."""
        who, shape = type(self).__name__, self.instruction_shape
        for name, kind in (
            ("cta_group", CtaGroup),
            ("a_src", OperandSource),
            ("a_major_mode", OperandMajorMode),
            ("b_major_mode", OperandMajorMode),
        ):
            if not isinstance(getattr(self, name), kind):
                raise ConstraintError(f"{who}: {name} is one of {kind.__name__}, not {getattr(self, name)!r}")
        if not isinstance(shape, (tuple, list)) or len(shape) not in (2, 3) or not all(type(x) is int for x in shape):
            raise ConstraintError(f"{who}: instruction_shape has the extents (M, N) or (M, N, K), not {shape}")
        type_d, type_a, type_b = (scalar_of(x) for x in self._types())
        for name, dtype in (("A", type_a), ("B", type_b)):
            if dtype not in self._inputs:
                raise ConstraintError(f"{who}: {name} is one of {', '.join(map(shown, self._inputs))}, not {dtype}")
        m, n, k = (*shape, MmaForm(self._kind, k_96=self._k_96).k)[:3]
        if (k == K_OF_SM_103) != self._k_96:
            only = "the operations SM103MmaMXF4Op and SM103MmaMXF4NVF4Op have it, and K 96 alone"
            raise ConstraintError(f"{who}: there is no shape {m}x{n}x{k}. K {K_OF_SM_103} is of sm_103a: {only}")
        source = "SS" if self.a_src is OperandSource.SMEM else "TS"
        a_major, b_major = (
            "K" if major is OperandMajorMode.K else "MN" for major in (self.a_major_mode, self.b_major_mode)
        )
        majors, ctas = (a_major, b_major), self.cta_group.value
        return self._make((m, n, k), (type_d, type_a, type_b), source, majors, ctas)

    def _make(self, shape: tuple[int, int, int], types: Any, source: str, majors: Any, ctas: int) -> Tcgen05Mma:
        d, a, b = types
        return Tcgen05Mma(self._kind, shape, d, a, b, source, majors, ctas=ctas)


@dataclass(frozen=True)
class ShapeFields:
    """The fields of all operations but those of packed 4-bit floats, whose operands are always K-major."""

    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode


@dataclass(frozen=True)
class InputType(MmaOp):
    """A and B have one type, which the program chooses."""

    ab_dtype: Any


@dataclass(frozen=True)
class InputAndSumTypes(InputType):
    """The program chooses the type of A and B, and that of the accumulators."""

    acc_dtype: Any

    def _types(self) -> tuple[Any, Any, Any]:
        return self.acc_dtype, self.ab_dtype, self.ab_dtype


@dataclass(frozen=True)
class InputTypes(MmaOp):
    """The program chooses the types of A and of B."""

    a_dtype: Any
    b_dtype: Any


@dataclass(frozen=True)
class ThreeTypes(InputTypes):
    """The program chooses the type of the accumulators, too."""

    acc_dtype: Any

    def _types(self) -> tuple[Any, Any, Any]:
        return self.acc_dtype, self.a_dtype, self.b_dtype


@dataclass(frozen=True)
class MmaF16BF16Op(ShapeFields, InputAndSumTypes):
    """``tcgen05.mma`` of kind f16: Float16 (accumulating in Float16 or Float32) or BFloat16 (in Float32), K 16.

    M is 64 or 128, N 8 to 256 in steps of 8; A and B in either major (A in tensor memory: K-major). Of a pair of blocks
    (``CtaGroup.TWO``) M is 128 or 256, N 16 to 256 in steps of 16.

    >>> from tilewright.cute import BFloat16, Float32
    >>> K = OperandMajorMode.K
    >>> MmaF16BF16Op(BFloat16, Float32, (128, 256, 16), CtaGroup.ONE, OperandSource.SMEM, K, K).instruction()
    SM100_128x256x16_F32BF16BF16_SS<K,K>
    """

    _kind = "f16"
    _inputs = (F16, BF16)


@dataclass(frozen=True)
class MmaTF32Op(ShapeFields, MmaOp):
    """``tcgen05.mma`` of kind tf32: TFloat32 (the upper 19 bits of Float32), accumulating in Float32, K 8.

    >>> K = OperandMajorMode.K
    >>> MmaTF32Op((64, 32, 8), CtaGroup.ONE, OperandSource.SMEM, K, K).instruction()
    SM100_64x32x8_F32TF32TF32_SS<K,K>
    """

    _kind = "tf32"
    _inputs = (TF32,)

    def _types(self) -> tuple[Any, Any, Any]:
        return F32, TF32, TF32


@dataclass(frozen=True)
class MmaI8Op(ShapeFields, InputType):
    """``tcgen05.mma`` of kind i8: Int8 or Uint8, accumulating in Int32, K 32.

    >>> from tilewright.cute import Int8
    >>> K = OperandMajorMode.K
    >>> MmaI8Op(Int8, (128, 64, 32), CtaGroup.ONE, OperandSource.SMEM, K, K).instruction()
    SM100_128x64x32_S32S8S8_SS<K,K>
    """

    _kind = "i8"
    _inputs = (I8, U8)

    def _types(self) -> tuple[Any, Any, Any]:
        return I32, self.ab_dtype, self.ab_dtype


@dataclass(frozen=True)
class MmaFP8Op(ShapeFields, InputAndSumTypes):
    """``tcgen05.mma`` of kind f8f6f4 on Float8E4M3FN or Float8E5M2, accumulating in Float16 or Float32, K 32.

    >>> from tilewright.cute import Float8E4M3FN, Float32
    >>> K = OperandMajorMode.K
    >>> MmaFP8Op(Float8E4M3FN, Float32, (128, 64, 32), CtaGroup.ONE, OperandSource.SMEM, K, K).instruction()
    SM100_128x64x32_F32E4M3E4M3_SS<K,K>
    """

    _kind = "f8f6f4"
    _inputs = (E4M3, E5M2)


@dataclass(frozen=True)
class MmaF8F6F4Op(ShapeFields, ThreeTypes):
    """``tcgen05.mma`` of kind f8f6f4 on A and B of types of their own, K 32: Float8E4M3FN, Float8E5M2, Float6E3M2FN,
    Float6E2M3FN or Float4E2M1FN. In shared memory 16 numbers of 4 or 6 bits take 16 bytes, as TMA loads them
    (``make_tiled_tma_atom_A``): their tensors are of Uint8.

    >>> from tilewright.cute import Float4E2M1FN, Float8E4M3FN, Float32
    >>> K, SMEM = OperandMajorMode.K, OperandSource.SMEM
    >>> MmaF8F6F4Op(Float8E4M3FN, Float4E2M1FN, Float32, (128, 64, 32), CtaGroup.ONE, SMEM, K, K).instruction()
    SM100_128x64x32_F32E4M3E2M1_SS<K,K>
    """

    _kind = "f8f6f4"
    _inputs = SMALL_FLOATS


def commit(
    mbar_ptr: Pointer, mask: Any = None, cta_group: CtaGroup = CtaGroup.ONE, *, loc: Any = None, ip: Any = None
) -> None:
    """``tcgen05.commit``: the mbarrier gets an arrival when all MMAs that this thread has issued are done.

    Each thread that is here arrives, so a warp lets one do it: ``with cute.arch.elect_one():``, as the MMAs before are
    issued by that one. ``mask``: the blocks of the cluster (a bit each) whose mbarriers at the same place get the
    arrival; ``cta_group`` is that of the MMAs.

    >>> import tilewright as cutlass
    >>> @cute.jit
    ... def nothing_to_wait_for(t):
    ...     mbarrier = cute.arch.alloc_smem(cutlass.Int64, 1)
    ...     with cute.arch.elect_one():
    ...         cute.arch.mbarrier_init(mbarrier, 1)
    ...     cute.arch.mbarrier_init_fence()
    ...     cute.arch.sync_threads()
    ...     with cute.arch.elect_one():
    ...         commit(mbarrier)
    ...     cute.arch.mbarrier_wait(mbarrier, 0)
    ...     return t
    >>> per_thread(nothing_to_wait_for, 32)[:3]
    [0, 1, 2]
    """
    if not isinstance(cta_group, CtaGroup):
        raise ConstraintError(f"tcgen05.commit: cta_group is CtaGroup.ONE or TWO, not {cta_group!r}")
    tcgen05_commit(mbar_ptr, mask, cta_group.value)
