"""The numeric types of the language: ``Int32``, ``Float16``, ``Boolean`` and their kin.

A numeric holds a Python number (known while staging, or outside it) or an :class:`~tilewright.ir.core.Value` (known
when the kernel runs). Operators compute at once on the first kind and append ops on the second, with the promotion
rules of :mod:`tilewright.lang.numbers.promote`.

The protocol by which Python objects cross into kernels and through control flow, and that every object of the language
implements:

- ``__extract_mlir_values__(self) -> list[ir.Value]``: the run-time values inside the object;
- ``__new_from_mlir_values__(self, values) -> object``: a like object that holds ``values`` instead;
- ``__get_mlir_types__(self) -> list[ir.Type]``: the types of those values;
- ``__c_pointers__(self) -> list``: on the host, the Python numbers and ``DevicePointer`` for them, in the same order.

>>> Int32(7) // 2, Int32(7) / 2, Int8(200), Float16(1) + 1
(Int32(3), Float32(3.5), Int8(-56), Float16(2.0))
"""

from __future__ import annotations

from tilewright.ir import types as ir
from tilewright.lang.numbers.numeric_base import ARITHMETIC as ARITHMETIC
from tilewright.lang.numbers.numeric_base import BITWISE as BITWISE
from tilewright.lang.numbers.numeric_base import Float as Float
from tilewright.lang.numbers.numeric_base import Integer as Integer
from tilewright.lang.numbers.numeric_base import N as N
from tilewright.lang.numbers.numeric_base import NumberInMemory as NumberInMemory
from tilewright.lang.numbers.numeric_base import Numeric as Numeric
from tilewright.lang.numbers.numeric_base import NumericMeta as NumericMeta
from tilewright.lang.numbers.numeric_base import as_numeric as as_numeric
from tilewright.lang.numbers.numeric_base import class_of as class_of
from tilewright.lang.numbers.numeric_base import is_number as is_number
from tilewright.lang.numbers.numeric_base import unwrap as unwrap
from tilewright.lang.numbers.numeric_base import wrap as wrap


class Boolean(Integer, ir_type=ir.BOOL):
    """True or false; ``& | ^ ~`` are logical.

    >>> Boolean(True) & Boolean(False), ~Boolean(True), Boolean(3), Int32(2) < 3
    (Boolean(False), Boolean(False), Boolean(True), Boolean(True))
    """

    __slots__ = ()


class Int8(Integer, ir_type=ir.I8):
    """8-bit integer with a sign, -128 to 127; results wrap.

    >>> Int8(127) + Int8(1), Int8(200), Int8.width
    (Int8(-128), Int8(-56), 8)
    """

    __slots__ = ()


class Int16(Integer, ir_type=ir.I16):
    """16-bit integer with a sign, -32768 to 32767; results wrap.

    >>> Int16(40000), Int16(3) * 2
    (Int16(-25536), Int16(6))
    """

    __slots__ = ()


class Int32(Integer, ir_type=ir.I32):
    """32-bit integer with a sign: what a Python int becomes that fits, and the type of indices. Results wrap.

    >>> Int32(2**31 - 1) + 1, Int32(7) / 2, Int32(2.9), Int32(5).to(Float16)
    (Int32(-2147483648), Float32(3.5), Int32(2), Float16(5.0))
    """

    __slots__ = ()


class Int64(Integer, ir_type=ir.I64):
    """64-bit integer with a sign: what a Python int becomes that 32 bits do not hold.

    >>> Int64(2**31 - 1) + 1, Int32(1) + (1 << 40)
    (Int64(2147483648), Int64(1099511627777))
    """

    __slots__ = ()


class Uint8(Integer, ir_type=ir.U8):
    """8-bit integer without a sign, 0 to 255; results wrap.

    >>> Uint8(255) + Uint8(1), Uint8(-1)
    (Uint8(0), Uint8(255))
    """

    __slots__ = ()


class Uint16(Integer, ir_type=ir.U16):
    """16-bit integer without a sign, 0 to 65535; results wrap.

    >>> Uint16(65535) + 1, Uint16(1) << 3
    (Uint16(0), Uint16(8))
    """

    __slots__ = ()


class Uint32(Integer, ir_type=ir.U32):
    """32-bit integer without a sign; results wrap.

    >>> Uint32(0) - 1, Uint32(2**31) >> 31, Int32(-1).bitcast(Uint32)
    (Uint32(4294967295), Uint32(1), Uint32(4294967295))
    """

    __slots__ = ()


class Uint64(Integer, ir_type=ir.U64):
    """64-bit integer without a sign; results wrap.

    >>> Uint64(0) - 1
    Uint64(18446744073709551615)
    """

    __slots__ = ()


class Float16(Float, ir_type=ir.F16):
    """IEEE half precision: 5 exponent bits, up to 65504; every operation rounds.

    >>> Float16(2049), Float16(1) / 3, Float16(60000) + 10000
    (Float16(2048.0), Float16(0.333251953125), Float16(inf))
    """

    __slots__ = ()


class BFloat16(Float, ir_type=ir.BF16):
    """bfloat16: the exponent of Float32 with 8 significant bits; every operation rounds.

    >>> BFloat16(257), BFloat16(1e38)
    (BFloat16(256.0), BFloat16(9.969209968386869e+37))
    """

    __slots__ = ()


class TFloat32(Float, ir_type=ir.TF32):
    """Float32 in memory, of which tensor cores read 19 bits; computes in Float32.

    >>> TFloat32(1 + 2**-10), TFloat32(1 + 2**-12), TFloat32.width
    (TFloat32(1.0009765625), TFloat32(1.0), 32)
    """

    __slots__ = ()


class Float32(Float, ir_type=ir.F32):
    """IEEE single precision: what a Python float becomes.

    >>> Float32(0.1), Float32(1) / 3, Float32(1.5).bitcast(Int32)
    (Float32(0.10000000149011612), Float32(0.3333333432674408), Int32(1069547520))
    """

    __slots__ = ()


class Float64(Float, ir_type=ir.F64):
    """IEEE double precision.

    >>> Float64(0.1) + 0.2, Float32(1) + Float64(2)
    (Float64(0.30000000000000004), Float64(3.0))
    """

    __slots__ = ()


class Float8E4M3FN(Float, ir_type=ir.E4M3):
    """8-bit float with 4 exponent bits and no infinity; a storage format, computes in Float32.

    >>> Float8E4M3FN(17), Float8E4M3FN(1000), Float8E4M3FN.width  # nearest; too large: the largest, 448
    (Float8E4M3FN(16.0), Float8E4M3FN(448.0), 8)
    """

    __slots__ = ()


class Float8E5M2(Float, ir_type=ir.E5M2):
    """8-bit float with 5 exponent bits; a storage format, computes in Float32.

    >>> Float8E5M2(17), Float8E5M2(50000)
    (Float8E5M2(16.0), Float8E5M2(49152.0))
    """

    __slots__ = ()


class Float8E8M0FNU(Float, ir_type=ir.E8M0):
    """A power of two from 2^-127 to 2^127, or NaN, without sign: the scale factors of block-scaled MMAs. A storage
    format; conversions round up and saturate, as CUTLASS's ``float_ue8m0_t``, so zero becomes 2^-127. Numbers below
    zero become NaN.

    >>> Float8E8M0FNU(4), Float8E8M0FNU(5), Float8E8M0FNU(0.3)
    (Float8E8M0FNU(4.0), Float8E8M0FNU(8.0), Float8E8M0FNU(0.5))
    """

    __slots__ = ()


class Float4E2M1FN(Float, ir_type=ir.E2M1):
    """4-bit float with 2 exponent bits, +-0 to +-6, no infinity, no NaN: a storage format, two in a byte, the first in
    the low bits.

    >>> [Float4E2M1FN(x).value for x in (0.7, 1.2, 2.4, 5.5, 100.0, -0.3)], Float4E2M1FN.width
    ([0.5, 1.0, 2.0, 6.0, 6.0, -0.5], 4)
    """

    __slots__ = ()


class Float6E2M3FN(Float, ir_type=ir.E2M3):
    """6-bit float with 2 exponent bits, +-0 to +-7.5, no infinity, no NaN: a storage format, four in three bytes.

    >>> Float6E2M3FN(1.3), Float6E2M3FN(-100.0), Float6E2M3FN.width
    (Float6E2M3FN(1.25), Float6E2M3FN(-7.5), 6)
    """

    __slots__ = ()


class Float6E3M2FN(Float, ir_type=ir.E3M2):
    """6-bit float with 3 exponent bits, +-0 to +-28, no infinity, no NaN: a storage format, four in three bytes.

    >>> Float6E3M2FN(1.3), Float6E3M2FN(100.0)
    (Float6E3M2FN(1.25), Float6E3M2FN(28.0))
    """

    __slots__ = ()


class Int4(Integer, ir_type=ir.I4):
    """4-bit integer, -8 to 7: a storage format, two in a byte, the first in the low bits; computes in Int32.

    >>> [Int4(x).value for x in (7, 8, -9, 2.9, 100.0)], Int4(-3) * 5, Int4.width  # integers wrap, floats saturate
    ([7, -8, 7, 2, 7], Int32(-15), 4)
    """

    __slots__ = ()


class Uint4(Integer, ir_type=ir.U4):
    """4-bit integer without a sign, 0 to 15: a storage format, two in a byte; computes in Int32.

    >>> Uint4(17), Uint4(20.5), Uint4(15) + Uint4(1)
    (Uint4(1), Uint4(15), Int32(16))
    """

    __slots__ = ()


Float8E4M3 = Float8E4M3FN
