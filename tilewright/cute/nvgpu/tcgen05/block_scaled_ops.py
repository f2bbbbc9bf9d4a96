"""The MMA operations of tcgen05 with block scales: each vector of elements of a row of A and of B has a factor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright.atoms.tcgen05_mma import Tcgen05Mma
from tilewright.atoms.tcgen05_scaled import Tcgen05ScaledMma
from tilewright.base_dsl.arch import Arch
from tilewright.cute.nvgpu.common import OperandMajorMode
from tilewright.cute.nvgpu.tcgen05.mma_ops import (
    SMALL_FLOATS,
    CtaGroup,
    InputType,
    InputTypes,
    MmaOp,
    OperandSource,
    ShapeFields,
)
from tilewright.errors import ConstraintError
from tilewright.ir.types import E2M1, E4M3, E5M2, E8M0, F32, scalar_of


class BlockScaledMmaOp(MmaOp):
    """The common class of the operations with block scales. ``sf_vec_size`` elements share a factor;
    ``Field.SFA`` and ``Field.SFB`` say where those of a gemm are."""

    sf_vec_size: int = 32

    def __init__(
        self,
        a_dtype: Any,
        b_dtype: Any,
        acc_dtype: Any,
        sf_dtype: Any,
        sf_vec_size: int,
        instruction_shape: tuple[int, ...],
        cta_group: CtaGroup,
        a_src: OperandSource,
        a_major_mode: OperandMajorMode,
        b_major_mode: OperandMajorMode,
    ) -> None:
        """All that the operations differ in, for subclasses of them that a program writes."""
        arguments = {name: x for name, x in locals().items() if name not in ("self", "__class__")}
        for name, x in {**arguments, "ab_dtype": a_dtype}.items():
            object.__setattr__(self, name, x)  # subclasses are frozen

    def _verify(self) -> None:
        """ConstraintError where there is no such instruction."""
        self.instruction()

    def _make(self, shape: tuple[int, int, int], types: Any, source: str, majors: Any, ctas: int) -> Tcgen05Mma:
        d, a, b = types
        return Tcgen05ScaledMma(
            self._kind, shape, d, a, b, source, majors, ctas=ctas, scale=scalar_of(self._scale()), vec=self.sf_vec_size
        )

    def _scale(self) -> Any:
        """The type of the factors."""
        return E8M0


@dataclass(frozen=True)
class MmaMXF8Op(ShapeFields, BlockScaledMmaOp, InputType):
    """``tcgen05.mma`` of kind mxf8f6f4 on Float8E4M3FN or Float8E5M2, K 32: factors of type Float8E8M0FNU for 32
    elements each. M is 128 (of a pair of blocks 256), N 8 to 256.

    >>> from tilewright.cute import Float8E4M3FN
    >>> K, SMEM = OperandMajorMode.K, OperandSource.SMEM
    >>> MmaMXF8Op(Float8E4M3FN, (128, 64, 32), CtaGroup.ONE, SMEM, K, K).instruction()
    SM100_128x64x32_F32E4M3E4M3_SS<K,K>_UE8M0x32
    """

    _kind = "mxf8f6f4"
    _inputs = (E4M3, E5M2)

    def _types(self) -> tuple[Any, Any, Any]:
        return F32, self.ab_dtype, self.ab_dtype


@dataclass(frozen=True)
class MmaMXF8F6F4Op(ShapeFields, BlockScaledMmaOp, InputTypes):
    """``tcgen05.mma`` of kind mxf8f6f4 on A and B of types of their own, as :class:`MmaF8F6F4Op` has them: factors of
    type Float8E8M0FNU for 32 elements each. One 8-bit type of both may be given once, which makes a
    :class:`MmaMXF8Op`.

    >>> from tilewright.cute import Float4E2M1FN, Float8E4M3FN
    >>> K, SMEM = OperandMajorMode.K, OperandSource.SMEM
    >>> MmaMXF8F6F4Op(Float8E4M3FN, Float4E2M1FN, (128, 64, 32), CtaGroup.ONE, SMEM, K, K).instruction()
    SM100_128x64x32_F32E4M3E2M1_SS<K,K>_UE8M0x32
    """

    _kind = "mxf8f6f4"
    _inputs = SMALL_FLOATS

    def __new__(cls, a_dtype: Any = None, b_dtype: Any = None, *shape_and_more: Any, **named: Any) -> Any:
        """An operation; of one type, if a shape stands in the place of B's."""
        if isinstance(b_dtype, tuple):
            return MmaMXF8Op(a_dtype, b_dtype, *shape_and_more, **named)
        return super().__new__(cls)

    def _types(self) -> tuple[Any, Any, Any]:
        return F32, self.a_dtype, self.b_dtype


class _Packed(BlockScaledMmaOp):
    """Operands of Float4E2M1FN, two numbers in a byte: both are K-major."""

    a_major_mode = b_major_mode = OperandMajorMode.K
    _inputs = (E2M1,)

    def _types(self) -> tuple[Any, Any, Any]:
        return F32, E2M1, E2M1


@dataclass(frozen=True)
class MmaMXF4Op(_Packed):
    """``tcgen05.mma`` of kind mxf4 on Float4E2M1FN, K 64: factors of type Float8E8M0FNU for 32 elements each.

    >>> MmaMXF4Op((128, 64, 64), CtaGroup.ONE, OperandSource.SMEM).instruction()
    SM100_128x64x64_F32E2M1E2M1_SS<K,K>_UE8M0x32
    """

    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource

    _kind = "mxf4"


@dataclass(frozen=True)
class MmaMXF4NVF4Op(_Packed):
    """``tcgen05.mma`` of kind mxf4nvf4 on Float4E2M1FN, K 64: factors for 16 elements each, Float8E4M3FN (whose sign
    does not count) or Float8E8M0FNU.

    >>> from tilewright.cute import Float8E4M3FN
    >>> MmaMXF4NVF4Op(Float8E4M3FN, (128, 64, 64), CtaGroup.ONE, OperandSource.SMEM).instruction()
    SM100_128x64x64_F32E2M1E2M1_SS<K,K>_E4M3x16
    """

    sf_dtype: Any
    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource

    sf_vec_size: ClassVar[int] = 16  # type: ignore[misc]  # of all that the constructor makes
    _kind = "mxf4nvf4"

    def _scale(self) -> Any:
        return self.sf_dtype


class _OfSm103:
    """K 96, which sm_103a alone has. A row is 48 bytes, three pieces of 16, and may go on in another buffer: each MMA
    is one call of ``cute.mma_atom_call`` on the descriptors of ``make_umma_smem_desc(..., next_src=...)``. M is 128 (of
    a pair of blocks 256), N 16 to 256 in steps of 16. (CuTe C++: ``SM103_MXF4_ULTRA_SS_VS``.)"""

    admissible_archs: ClassVar[list[Arch]] = [Arch.sm_103a]
    _k_96 = True
    _kind = "mxf4nvf4"


@dataclass(frozen=True)
class SM103MmaMXF4Op(_OfSm103, MmaMXF4Op):
    """``tcgen05.mma`` on Float4E2M1FN with K 96 (sm_103a): factors of type Float8E8M0FNU for 32 elements each, three of
    a row. M is 128 (of a pair of blocks 256), N 16 to 256 in steps of 16; both operands are in shared memory.

    >>> SM103MmaMXF4Op((128, 64, 96), CtaGroup.ONE, OperandSource.SMEM).instruction()
    SM100_128x64x96_F32E2M1E2M1_SS<K,K>_UE8M0x32
    """


@dataclass(frozen=True)
class SM103MmaMXF4NVF4Op(_OfSm103, MmaMXF4NVF4Op):
    """``tcgen05.mma`` on Float4E2M1FN with K 96 (sm_103a): factors for 16 elements each, six of a row, Float8E4M3FN or
    Float8E8M0FNU. Otherwise as :class:`SM103MmaMXF4Op`.

    >>> from tilewright.cute import Float8E4M3FN
    >>> SM103MmaMXF4NVF4Op(Float8E4M3FN, (256, 64, 96), CtaGroup.TWO, OperandSource.SMEM).instruction()
    SM100_256x64x96_F32E2M1E2M1_2x1SM_SS<K,K>_E4M3x16
    """


def block_scaled_op(
    types: tuple[Any, Any],
    majors: tuple[OperandMajorMode, OperandMajorMode],
    sf_dtype: Any,
    sf_vec_size: int,
    shape: Any,
    cta_group: CtaGroup,
    a_source: OperandSource,
) -> BlockScaledMmaOp:
    """The operation for these types. ConstraintError for types without one."""
    a, b, scale = (scalar_of(x) for x in (*types, sf_dtype))
    if a == b and a in (E4M3, E5M2) and (scale, sf_vec_size) == (E8M0, 32):
        return MmaMXF8Op(types[0], shape, cta_group, a_source, *majors)
    if a == b == E2M1 and majors == (OperandMajorMode.K, OperandMajorMode.K):
        if (scale, sf_vec_size) == (E8M0, 32):
            return MmaMXF4Op(shape, cta_group, a_source)
        if scale in (E8M0, E4M3) and sf_vec_size == 16:
            return MmaMXF4NVF4Op(sf_dtype, shape, cta_group, a_source)
    if {a, b} <= {*SMALL_FLOATS} and (scale, sf_vec_size) == (E8M0, 32):
        return MmaMXF8F6F4Op(*types, shape, cta_group, a_source, *majors)
    shown = str(types[0]) if a == b else f"{types[0]} and {types[1]}"
    raise ConstraintError(
        f"tcgen05 has no block-scaled MMA of {shown} with factors {sf_dtype} for {sf_vec_size} elements each, "
        f"majors {majors[0].name} and {majors[1].name}. There are floats of 8, 6 and 4 bits with Float8E8M0FNU for "
        "32; K-major Float4E2M1FN also with Float8E8M0FNU or Float8E4M3FN for 16"
    )
