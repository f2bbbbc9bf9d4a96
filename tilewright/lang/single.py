"""Single instructions of one thread on numbers."""

from __future__ import annotations

from typing import Any

from tilewright.ir.builder import Builder
from tilewright.lang import operators
from tilewright.lang.choose import max as _max
from tilewright.lang.choose import min as _min
from tilewright.lang.numeric import Float32, Int32, Uint32, Uint64, as_numeric, wrap


def fmax(a: Any, b: Any, **_: Any) -> Any:
    """The greater of two floats; a NaN loses against a number."""
    return _max(_float(a), _float(b))


def fmin(a: Any, b: Any, **_: Any) -> Any:
    """The lesser of two floats; a NaN loses against a number."""
    return _min(_float(a), _float(b))


def _float(x: Any) -> Any:
    number = as_numeric(x)
    return number if type(number).is_float else Float32(number)


def rcp_approx(a: Any, **_: Any) -> Any:
    """An approximation of 1/a in Float32 (``rcp.approx.ftz.f32``)."""
    number = Float32(a)
    if number.is_static:
        return Float32(1.0) / number
    return Float32(Builder.current().unary("rcp", number.ir_value(), fastmath=True))


def popc(value: Any, **_: Any) -> Any:
    """How many bits are set, by the adding of neighbouring fields."""
    number = as_numeric(value)
    if number.is_static:
        return Int32((number.value & ((1 << number.width) - 1)).bit_count())
    if number.width == 64:
        wide = number.bitcast(Uint64) if type(number).signed else number
        return popc(Uint32(wide & 0xFFFFFFFF)) + popc(Uint32(wide >> 32))
    x = Uint32(number.bitcast(Uint32) if number.width == 32 else number)
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return Int32((x * 0x01010101) >> 24)


def prmt(src: Any, src_reg_shifted: Any, prmt_indices: Any, **_: Any) -> Any:
    """``prmt.b32``: four bytes picked from the eight of ``src`` (bytes 0-3) and ``src_reg_shifted`` (4-7).

    Each hexadecimal digit of ``prmt_indices`` (a Python int) names a byte; with bit 3 set, the byte's sign repeated.
    """
    indices = int(prmt_indices)
    a, b = (_bits32(x) for x in (src, src_reg_shifted))
    result = None
    for i in range(4):
        pick = indices >> (4 * i) & 0xF
        byte = ((a if pick & 7 < 4 else b) >> (8 * (pick & 3))) & 0xFF
        if pick & 8:
            byte = operators.select(byte >= 0x80, Uint32(0xFF), Uint32(0))
        part = byte << (8 * i)
        result = part if result is None else result | part
    return result.bitcast(Int32)  # type: ignore[union-attr]


def _bits32(x: Any) -> Any:
    number = as_numeric(x)
    return number if isinstance(number, Uint32) else number.bitcast(Uint32)


def clock(**_: Any) -> Any:
    """The multiprocessor's cycle counter (its low 32 bits)."""
    return wrap(Builder.current().sreg("clock"))
