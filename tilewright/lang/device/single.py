"""Single instructions of one thread on numbers."""

from __future__ import annotations

import functools
import operator
from typing import Any

from tilewright.atoms.bits import Permute, Popc
from tilewright.atoms.sleep import Nanosleep
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.types import F32, I32, U32
from tilewright.lang.device.calls import call
from tilewright.lang.device.inline_ptx import inline_asm
from tilewright.lang.numbers.facts import Facts
from tilewright.lang.numbers.numeric import (
    Float32,
    Int16,
    Int32,
    Int64,
    Uint16,
    Uint32,
    Uint64,
    as_numeric,
    wrap,
)
from tilewright.lang.numbers.wide import Int128, Uint128
from tilewright.lang.tensors.select import max as _max
from tilewright.lang.tensors.select import min as _min


def fmax(
    a: Any,
    b: Any,
    *,
    abs: bool = False,
    nan: bool = False,
    ftz: bool = False,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """The greater of two floats; a NaN loses against a number, but wins with ``nan``. ``abs``: of the absolute values,
    with the sign of ``a * b``. ``ftz``: subnormal numbers count as zeros.

    >>> from tilewright import Float32
    >>> per_thread(lambda t: arch.fmax(t, 1.5), 3, dtype=Float32)
    [1.5, 1.5, 2.0]
    """
    return _extreme("max", _float(a), _float(b), abs, nan, ftz)


def fmin(
    a: Any,
    b: Any,
    *,
    abs: bool = False,
    nan: bool = False,
    ftz: bool = False,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """The lesser of two floats; ``abs``, ``nan`` and ``ftz`` as in :func:`fmax`.

    >>> from tilewright import Float32
    >>> per_thread(lambda t: arch.fmin(t, 1.5), 3, dtype=Float32)
    [0.0, 1.0, 1.5]
    """
    return _extreme("min", _float(a), _float(b), abs, nan, ftz)


def _extreme(kind: str, x: Any, y: Any, absolute: bool, nan: bool, ftz: bool) -> Any:
    if not (absolute or nan or ftz):
        return {"max": _max, "min": _min}[kind](x, y)
    if type(x) is not Float32 or type(y) is not Float32:
        names = f"{type(x).__name__} and {type(y).__name__}"
        raise ConstraintError(f"f{kind}: abs, nan and ftz belong to Float32, not to {names}")
    sign = (x.bitcast(Uint32) ^ y.bitcast(Uint32)) & 0x80000000
    if absolute:
        x, y = ((v.bitcast(Uint32) & 0x7FFFFFFF).bitcast(Float32) for v in (x, y))
    text = f"{kind}{'.ftz' if ftz else ''}{'.NaN' if nan else ''}.f32 $0, $1, $2;"
    extreme = wrap(inline_asm(F32, [x, y], text, "=f,f,f"))
    return (extreme.bitcast(Uint32) | sign).bitcast(Float32) if absolute else extreme


def _float(x: Any) -> Any:
    number = as_numeric(x)
    return number if type(number).is_float else Float32(number)


def mul_wide(a: Any, b: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The whole product of two integers of 16 or 32 bits, in twice as many (``mul.wide``).

    >>> from tilewright import Uint32
    >>> per_thread(lambda t: (arch.mul_wide(Uint32(0xFFFFFFFF), Uint32(t)) >> 32).to(Uint32), 4, dtype=Uint32)
    [0, 0, 1, 2]
    """
    return _product("mul_wide", a, b, _WIDER)[0]


def mul_hi(a: Any, b: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The upper half of the whole product of two integers of 16, 32 or 64 bits (``mul.hi``).

    >>> from tilewright import Uint32
    >>> per_thread(lambda t: arch.mul_hi(Uint32(0xFFFFFFFF), Uint32(t)), 4, dtype=Uint32)
    [0, 0, 1, 2]
    """
    product, kind = _product("mul_hi", a, b, {**_WIDER, Int64: Int128, Uint64: Uint128})
    return (product >> kind.width).to(kind)


_WIDER: dict[Any, Any] = {Int16: Int32, Uint16: Uint32, Int32: Int64, Uint32: Uint64}


def _product(name: str, a: Any, b: Any, wider: dict[Any, Any]) -> tuple[Any, Any]:
    """The product in twice as many bits, and the type of its factors."""
    x, y = as_numeric(a), as_numeric(b)
    if type(x) is not type(y) or type(x) not in wider:
        names = f"{type(x).__name__} and {type(y).__name__}"
        widths = " or ".join(str(w) for w in sorted({k.width for k in wider}))
        raise ConstraintError(f"{name} takes two integers of one type of {widths} bits, not {names}")
    wide = wider[type(x)]
    return x.to(wide) * y.to(wide), type(x)


def rcp_approx(a: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """An approximation of 1/a in Float32 (``rcp.approx.ftz.f32``).

    >>> from tilewright import Float32
    >>> per_thread(lambda t: arch.rcp_approx(1 << t), 4, dtype=Float32)
    [1.0, 0.5, 0.25, 0.125]
    """
    number = Float32(a)
    if number.is_static:
        return Float32(1.0 / number.value if number.value else float("inf"))
    return Float32(Builder.current().unary("rcp", number.ir_value(), fastmath=True))


def popc(value: Any, *, loc: Any = None, ip: Any = None) -> Int32:
    """How many bits are set.

    >>> per_thread(lambda t: arch.popc(t), 8)
    [0, 1, 1, 2, 1, 2, 2, 3]
    """
    number = as_numeric(value)
    if number.is_static:
        return Int32((number.value & ((1 << number.width) - 1)).bit_count())
    word = _unsigned(number)
    (count,) = call(Popc(), word, results=(I32,))
    return wrap(count, Facts(True, 1, word.width + 1))


def _unsigned(number: Any) -> Any:
    """The bits as Uint32 or Uint64; smaller integers without their sign bits."""
    if number.width >= 32:
        cls = Uint64 if number.width == 64 else Uint32
        return number if type(number) is cls else number.bitcast(cls)
    return Uint32(number) & ((1 << number.width) - 1)


def prmt(src: Any, src_reg_shifted: Any, prmt_indices: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """``prmt.b32``: four bytes picked from the eight of ``src`` (bytes 0-3) and ``src_reg_shifted`` (4-7).

    Each hexadecimal digit of ``prmt_indices`` names a byte; with bit 3 set, the byte's sign repeated.

    >>> [hex(x) for x in per_thread(lambda t: arch.prmt(0x33221100 + t, 0x77665544, 0x0123), 2)]
    ['0x112233', '0x1112233']
    """
    words = [_unsigned(as_numeric(x)) for x in (src, src_reg_shifted, prmt_indices)]
    (result,) = call(Permute(), *words, results=(U32,))
    return wrap(result).bitcast(Int32)


def lop3(a: Any, b: Any, c: Any, lut: int, *, loc: Any = None, ip: Any = None) -> Any:
    """``lop3.b32``: any function of the bits of three numbers. Bit ``4 * a + 2 * b + c`` of ``lut`` (a Python int)
    is the result for the bits a, b, c: the function of 0xF0, 0xCC and 0xAA.

    >>> per_thread(lambda t: arch.lop3(12, 10, t, (0xF0 & 0xCC) | 0xAA), 3)  # 12 & 10 | t
    [8, 9, 10]
    """
    if not isinstance(lut, int) or not 0 <= lut < 256:
        raise ConstraintError(f"cute.arch.lop3: lut is a Python int of 8 bits, not {lut!r}")
    words = [_unsigned(as_numeric(x)) for x in (a, b, c)]
    terms = [
        functools.reduce(operator.and_, [x if bits >> i & 1 else ~x for x, i in zip(words, (2, 1, 0), strict=True)])
        for bits in range(8)
        if lut >> bits & 1
    ]
    return functools.reduce(operator.or_, terms, Uint32(0)).bitcast(Int32)


def clock(*, loc: Any = None, ip: Any = None) -> Int32:
    """The multiprocessor's cycle counter (its low 32 bits).

    >>> per_thread(lambda t: (start := arch.clock(), arch.clock() >= start)[1], 2)
    [1, 1]
    """
    return wrap(Builder.current().sreg("clock"))


def nanosleep(sleep_time: Any, *, loc: Any = None, ip: Any = None) -> None:
    """Pause this thread for about ``sleep_time`` nanoseconds, one millisecond at most: between two looks at a flag.

    >>> per_thread(lambda t: (arch.nanosleep(100), t)[1], 2)
    [0, 1]
    """
    call(Nanosleep(), Uint32(sleep_time))
