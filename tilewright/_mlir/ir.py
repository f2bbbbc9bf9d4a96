"""``cutlass._mlir.ir``: types by MLIR's names; ``Value``, ``Location``, ... are names for annotations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tilewright._names import attach
from tilewright.errors import ConstraintError
from tilewright.ir import types
from tilewright.ir.core import Value
from tilewright.ir.types import SCALARS, ScalarType, VecType
from tilewright.lang.device.inline_ptx import StructType

__all__ = ["BF16Type", "F16Type", "F32Type", "F64Type", "IntegerType", "T", "Type", "Value", "VectorType"]
attach(__name__)


class _AnyType(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, types.Type)


class Type(metaclass=_AnyType):
    """Any type: ``isinstance(value.type, ir.Type)``.

    >>> Type.parse("f32"), Type.parse("vector<2xf16>"), len(Type.parse("!llvm.struct<(i32, i32)>").body)
    (f32, vec<f16, 2>, 2)
    """

    @staticmethod
    def parse(text: str, context: Any = None, *, loc: Any = None) -> Any:
        """The type with this name: of a number, a vector, or a struct of several results of inline PTX."""
        stripped = text.strip()
        if (struct := re.fullmatch(r"!llvm\.struct<(?:packed )?\((.*)\)>", stripped)) is not None:
            return StructType.get_literal([Type.parse(part) for part in re.split(r",(?![^<]*>)", struct[1])])
        if (vector := re.fullmatch(r"vector<(\d+)\s*x\s*(\w+)>", stripped)) is not None:
            return VecType(Type.parse(vector[2]), int(vector[1]))
        if stripped not in SCALARS:
            raise ConstraintError(
                f"ir.Type.parse: {text!r}; there are numbers (f32, i64), vector<2xf16>, and "
                "!llvm.struct<(i32, i32)> of them"
            )
        return SCALARS[stripped]


def _integer(sign: str, width: int) -> ScalarType:
    scalar = SCALARS.get(f"{sign}{width}")
    if scalar is None:
        raise ConstraintError(f"there are integers of 8, 16, 32 and 64 bits, and i1, but no {sign}{width}")
    return scalar


class IntegerType:
    """Integers of 1, 8, 16, 32 and 64 bits."""

    @staticmethod
    def get_signless(width: int, context: Any = None, *, loc: Any = None) -> ScalarType:
        return _integer("i", width)

    get_signed = get_signless

    @staticmethod
    def get_unsigned(width: int, context: Any = None, *, loc: Any = None) -> ScalarType:
        return _integer("u", width)


def _of(name: str) -> Any:
    return staticmethod(lambda context=None, *, loc=None: SCALARS[name])


class F16Type:
    get = _of("f16")


class BF16Type:
    get = _of("bf16")


class F32Type:
    get = _of("f32")


class F64Type:
    get = _of("f64")


class VectorType:
    """``VectorType(value.type)`` has the ``shape``, ``rank`` and ``element_type`` of a vector. ``get`` of several
    extents is what ``vector.shape_cast`` gives a vector, to take its rows.

    >>> vector = VectorType(VectorType.get([4], T.f32()))
    >>> vector.shape, vector.rank, vector.element_type
    ([4], 1, f32)
    """

    def __init__(self, kind: Any) -> None:
        if not isinstance(kind, VecType):
            raise ConstraintError(f"ir.VectorType: {kind} is no vector")
        self.element_type, self.shape, self.rank = kind.elem, [kind.n], 1

    @staticmethod
    def get(shape: Sequence[int], element_type: ScalarType, *, loc: Any = None) -> VecType | ShapedVectorType:
        extents = tuple(int(n) for n in shape)
        return VecType(element_type, *extents) if len(extents) == 1 else ShapedVectorType(element_type, extents)


class ShapedVectorType(NamedTuple):
    """A vector of several extents, the last one fastest: a view of one of one extent, no type of the IR."""

    elem: ScalarType
    shape: tuple[int, ...]


class T:
    """The types of results of inline PTX: ``T.f32()``, ``T.i32()``, ``T.vector(2, T.f16())``.

    >>> T.f32(), T.i64(), T.vector(2, T.f16())
    (f32, i64, vec<f16, 2>)
    """

    i1 = bool = _of("i1")
    i8, i16, i32, i64 = _of("i8"), _of("i16"), _of("i32"), _of("i64")
    ui8, ui16, ui32, ui64 = _of("u8"), _of("u16"), _of("u32"), _of("u64")
    f16, bf16, f32, f64 = _of("f16"), _of("bf16"), _of("f32"), _of("f64")

    @staticmethod
    def vector(n: int, element_type: ScalarType) -> VecType:
        return VecType(element_type, n)
