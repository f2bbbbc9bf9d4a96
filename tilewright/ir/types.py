"""The types of the IR: scalars, vectors, fragments (registers of one thread) and typed pointers.

A scalar type is a name, a width in bits and a kind; it knows the NumPy dtype that holds one element in the simulator
and the CUDA C++ type that the emitter prints. Vectors are SSA values of ``n`` elements; fragments are mutable register
arrays of ``n`` elements that are addressed by offset.

>>> F16, VecType(F32, 4), PtrType(F16, MemSpace.SMEM, 16)
(f16, vec<f32, 4>, ptr<f16, smem, align 16>)
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tilewright.errors import ConstraintError


class MemSpace(Enum):
    """The memory that a pointer points into. ``GENERIC`` may be any of the others; ``DSMEM`` is the shared memory of
    any block of the cluster, ``TMEM`` tensor memory: its addresses are numbers of 32 bits, not pointers."""

    GENERIC = "generic"
    GMEM = "gmem"
    SMEM = "smem"
    DSMEM = "dsmem"
    RMEM = "rmem"
    TMEM = "tmem"

    def __repr__(self) -> str:
        return self.value


class Type:
    """Base of all IR types; they are immutable and compared by value."""

    __slots__ = ()


_BY_NAME: dict[str, ScalarType] = {}


def _named(name: str) -> ScalarType:
    return _BY_NAME[name]


@dataclass(frozen=True, repr=False, eq=False)
class ScalarType(Type):
    """One number: ``kind`` is ``bool``, ``int`` (signed), ``uint`` or ``float``; ``width`` is in bits. A row of the
    table below: what every other interface calls the type, and how conversions to it end.

    There is one object of each name, copies included: staging compares and looks up types hundreds of times for each
    op, so they are equal by identity."""

    name: str
    kind: str
    width: int
    numpy_name: str
    cuda: str
    c: str = ""
    """The C type in headers of exported functions; small floats are their bits."""
    cute: str = ""
    """The spelling in CuTe's instruction names (``F16``, ``S8``)."""
    torch: str = ""
    printed: str = ""
    """How types of tensors and pointers are printed, where it is not the name: integers show no sign."""
    dlpack: int = -1
    """DLPack's type code; with the width it names one type."""
    xla: int = 0
    """XLA's PrimitiveType in its C interface."""
    tensor_map: str = ""
    """The driver's name of it in a tensor map (``CUtensorMapDataType``); 8-bit floats move as bytes."""
    npy: str = ""
    """How ``numpy.save`` spells ml_dtypes' types, which have no name in ``.npy`` files."""
    packing: str = ""
    """The code by which :mod:`struct` packs a kernel's argument."""
    largest: float | None = None
    """The number to which conversions saturate; None: they round to infinity."""
    specials: str = "inf nan"
    """Which of infinity and NaN a float has."""
    stored: bool = False
    """A storage format: operands become f32 (integers: i32) before an operation."""

    def __post_init__(self) -> None:
        assert self.name not in _BY_NAME, self.name
        _BY_NAME[self.name] = self

    def __reduce__(self) -> Any:  # copies and pickles are the object itself
        return _named, (self.name,)

    def __repr__(self) -> str:
        return self.name

    @functools.cached_property
    def bytes(self) -> int:
        """Bytes that one element takes in memory (a Boolean takes one)."""
        return max(1, self.width // 8)

    @functools.cached_property
    def memory_bits(self) -> int:
        """Bits that one element of a tensor takes: whole bytes, unless elements share them."""
        return self.width if self.packed else 8 * self.bytes

    @functools.cached_property
    def packed(self) -> bool:
        """Whether elements share bytes in memory and registers; vectors and scalars hold one in a byte."""
        return 1 < self.width < 8

    @property
    def has_struct(self) -> bool:
        """Whether the device header has a type of it, with ``bits`` and conversions from and to ``float``
        (and to ``int``, of integers)."""
        return (self.is_float and self.width < 32) or self.packed

    @functools.cached_property
    def is_float(self) -> bool:
        return self.kind == "float"

    @functools.cached_property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    def wrapped(self, value: int) -> int:
        """``value`` modulo 2 ** width as a number of this integer type.

        >>> I8.wrapped(200), U8.wrapped(-1)
        (-56, 255)
        """
        low_bits = value & ((1 << self.width) - 1)
        return low_bits - (1 << self.width) if self.kind == "int" and low_bits >> (self.width - 1) else low_bits

    def clamped(self, value: float) -> int:
        """``value`` truncated to this integer type; the nearest number where it does not fit, 0 for a NaN.

        >>> I8.clamped(-1e6), U8.clamped(2.9)
        (-128, 2)
        """
        low = -(1 << (self.width - 1)) if self.kind == "int" else 0
        high = low + (1 << self.width) - 1
        return 0 if value != value else low if value < low else high if value > high else int(value)

    @functools.cached_property
    def is_signed(self) -> bool:
        return self.kind in ("int", "float")

    @functools.cached_property
    def dtype(self) -> Any:
        """The NumPy dtype of one element; tf32 is float32, and what NumPy lacks is of ml_dtypes."""
        import numpy as np

        try:
            return np.dtype(self.numpy_name)
        except TypeError:
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, self.numpy_name))


@dataclass(frozen=True, repr=False)
class VecType(Type):
    """An SSA vector of ``n`` elements: the value of a TensorSSA, a wide load, or an operand of a wide store.

    Elements of 4 and 6 bits are in a byte each, as scalars of theirs do; ``bitcast`` packs them."""

    elem: ScalarType
    n: int

    def __post_init__(self) -> None:
        if self.elem.width > 64 and self.elem.is_integer:
            _whole_bytes(self.elem)

    def __repr__(self) -> str:
        return f"vec<{self.elem}, {self.n}>"


@dataclass(frozen=True, repr=False)
class FragType(Type):
    """A fragment: ``n`` registers of one thread, mutable, addressed by element offset."""

    elem: ScalarType
    n: int

    def __post_init__(self) -> None:
        # mma.sync has operands of 4-bit integers, each register with eight of them
        if self.elem.is_float or self.elem.width > 64:
            _whole_bytes(self.elem)

    def __repr__(self) -> str:
        return f"frag<{self.elem}, {self.n}>"


@dataclass(frozen=True, repr=False)
class PtrType(Type):
    """A pointer to elements in a memory space; ``align`` is the known alignment in bytes."""

    elem: ScalarType
    space: MemSpace
    align: int

    def __post_init__(self) -> None:
        _whole_bytes(self.elem)

    def __repr__(self) -> str:
        return f"ptr<{self.elem}, {self.space.value}, align {self.align}>"


def _whole_bytes(elem: ScalarType) -> None:
    if elem.width > 64 and elem.kind in ("int", "uint"):  # complex numbers are two or three of 64 bits
        raise ConstraintError(
            f"numbers of {elem.width} bits ({elem}) are values and arguments only, no elements of tensors: move "
            "their bits as two Uint64 or four Uint32"
        )
    if 1 < elem.width < 8:
        raise ConstraintError(
            f"numbers of {elem.width} bits ({elem}) have neither addresses nor registers of their own: their bytes have"
        )


# fmt: off
BOOL = ScalarType("i1", "bool", 1, "bool", "bool", "bool", "", "bool", dlpack=6, xla=1, packing="?")
I8 = ScalarType("i8", "int", 8, "int8", "int8_t", "int8_t", "S8", "int8", "", 0, 2, "UINT8", packing="b")
I16 = ScalarType("i16", "int", 16, "int16", "int16_t", "int16_t", "S16", "int16", "", 0, 3, "UINT16", packing="h")
I32 = ScalarType("i32", "int", 32, "int32", "int32_t", "int32_t", "S32", "int32", "", 0, 4, "INT32", packing="i")
I64 = ScalarType("i64", "int", 64, "int64", "int64_t", "int64_t", "", "int64", "", 0, 5, "INT64", packing="q")
U8 = ScalarType("u8", "uint", 8, "uint8", "uint8_t", "uint8_t", "U8", "uint8", "i8", 1, 6, "UINT8", packing="B")
U16 = ScalarType("u16", "uint", 16, "uint16", "uint16_t", "uint16_t", "", "uint16", "i16", 1, 7, "UINT16", packing="H")
U32 = ScalarType("u32", "uint", 32, "uint32", "uint32_t", "uint32_t", "", "uint32", "i32", 1, 8, "UINT32", packing="I")
U64 = ScalarType("u64", "uint", 64, "uint64", "uint64_t", "uint64_t", "", "uint64", "i64", 1, 9, "UINT64", packing="Q")
F16 = ScalarType("f16", "float", 16, "float16", "tw::f16", "uint16_t", "F16", "float16", "", 2, 10, "FLOAT16",
                 packing="e")
BF16 = ScalarType("bf16", "float", 16, "bfloat16", "tw::bf16", "uint16_t", "BF16", "bfloat16", "", 4, 16, "BFLOAT16",
                  npy="V2", packing="H")
TF32 = ScalarType("tf32", "float", 32, "float32", "float", "float", "TF32", "float32", "", 2, 0, "TFLOAT32",
                  packing="f", stored=True)
F32 = ScalarType("f32", "float", 32, "float32", "float", "float", "F32", "float32", "", 2, 11, "FLOAT32", packing="f")
F64 = ScalarType("f64", "float", 64, "float64", "double", "double", "F64", "float64", "", 2, 12, "FLOAT64",
                 packing="d")
E4M3 = ScalarType("e4m3", "float", 8, "float8_e4m3fn", "tw::e4m3", "uint8_t", "E4M3", "float8_e4m3fn", "f8E4M3FN",
                  10, 20, "UINT8", "V1", "B", largest=448.0, specials="nan", stored=True)
E5M2 = ScalarType("e5m2", "float", 8, "float8_e5m2", "tw::e5m2", "uint8_t", "E5M2", "float8_e5m2", "f8E5M2",
                  12, 19, "UINT8", "f1", "B", largest=57344.0, stored=True)
# Powers of two, without sign and zero: scale factors. Conversions round up, so that what is divided by a factor fits,
# and saturate; what is below zero becomes NaN.
E8M0 = ScalarType("e8m0", "float", 8, "float8_e8m0fnu", "tw::e8m0", "uint8_t", "UE8M0", "float8_e8m0fnu", "f8E8M0FNU",
                  14, 33, "UINT8", packing="B", specials="nan", stored=True)
# Smaller than a byte: memory and registers hold them packed in bytes.
E2M1 = ScalarType("e2m1", "float", 4, "float4_e2m1fn", "tw::e2m1", cute="E2M1", torch="float4_e2m1fn_x2",
                  printed="f4E2M1FN", dlpack=17, packing="B", largest=6.0, specials="", stored=True)
E2M3 = ScalarType("e2m3", "float", 6, "float6_e2m3fn", "tw::e2m3", cute="E2M3", printed="f6E2M3FN",
                  dlpack=15, packing="B", largest=7.5, specials="", stored=True)
E3M2 = ScalarType("e3m2", "float", 6, "float6_e3m2fn", "tw::e3m2", cute="E3M2", printed="f6E3M2FN",
                  dlpack=16, packing="B", largest=28.0, specials="", stored=True)
I4 = ScalarType("i4", "int", 4, "int4", "tw::i4", dlpack=0, packing="B", stored=True)
U4 = ScalarType("u4", "uint", 4, "uint4", "tw::u4", printed="i4", dlpack=1, packing="B", stored=True)
# Of tensor maps only, by PTX's names: numbers that are packed in global memory. In shared memory they are packed, too,
# or 16 of them take 16 bytes, the first ones of which they fill.
B4X16 = ScalarType("b4x16", "uint", 4, "uint8", "uint8_t", tensor_map="16U4_ALIGN8B")
B4X16_P64 = ScalarType("b4x16_p64", "uint", 4, "uint8", "uint8_t", tensor_map="16U4_ALIGN16B")
B6X16_P32 = ScalarType("b6x16_p32", "uint", 6, "uint8", "uint8_t", tensor_map="16U6_ALIGN16B")
# Wider than the machine's numbers: scalars only. The simulator's lanes hold Python's integers.
I128 = ScalarType("i128", "int", 128, "object", "tw::int128")
U128 = ScalarType("u128", "uint", 128, "object", "tw::uint128")
# fmt: on
WIDE = (I128, U128)
PACKED = (E2M1, E2M3, E3M2, I4, U4)
EXPANDED = {4: B4X16_P64, 6: B6X16_P32}
"""What TMA expands to 16 bytes for 16 numbers, by their width."""
_WHOLE = (BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64, TF32, E4M3, E5M2, E8M0)
SCALARS: dict[str, ScalarType] = {t.name: t for t in _WHOLE}
"""The types of elements that take whole bytes, by name."""
NUMBERS = (*_WHOLE, *PACKED)
"""The types of elements of tensors."""


def scalar_of(value: Any) -> ScalarType:
    """The scalar type of ``value``: itself, or what its ``ir_type`` attribute says (numeric classes carry one)."""
    scalar = value if isinstance(value, ScalarType) else getattr(value, "ir_type", None)
    if not isinstance(scalar, ScalarType):
        raise ConstraintError(f"{value!r} is not a numeric type such as Float32 or Int8")
    return scalar


def element_of(type_: Type) -> ScalarType:
    """The scalar type of one element of a scalar, vector, fragment or pointer type."""
    if isinstance(type_, ScalarType):
        return type_
    if isinstance(type_, (VecType, FragType, PtrType)):
        return type_.elem
    raise TypeError(f"{type_!r} has no elements")


def with_element(type_: Type, elem: ScalarType) -> Type:
    """``type_`` (scalar or vector) with another element type and the same count."""
    return VecType(elem, type_.n) if isinstance(type_, VecType) else elem
