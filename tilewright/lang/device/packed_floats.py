"""Conversions of two floats at once, packed in the bits of one integer, as the NVVM dialect names them. Each number is
converted by itself; the compiler for the GPU joins pairs into the packed instruction where there is one."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.types import BF16, E2M1, E4M3, E5M2, E8M0, F16
from tilewright.lang.device.calls import operand
from tilewright.lang.numbers.numeric import (
    BFloat16,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Int32,
    Uint8,
    Uint16,
    Uint32,
    wrap,
)


class CVTPackFloatKind(Enum):
    """The type of both numbers."""

    F16x2 = F16.name
    BF16x2 = BF16.name
    E4M3x2 = E4M3.name
    E5M2x2 = E5M2.name
    UE8M0x2 = f"u{E8M0.name}"
    E2M1x2 = E2M1.name


class SaturationModeKind(Enum):
    """Whether a number that is too great becomes the greatest of its type."""

    NONE = "none"
    SATFINITE = "satfinite"


_KINDS: dict[CVTPackFloatKind, tuple[Any, Any]] = {
    CVTPackFloatKind.F16x2: (Float16, Uint16),
    CVTPackFloatKind.BF16x2: (BFloat16, Uint16),
    CVTPackFloatKind.E4M3x2: (Float8E4M3FN, Uint8),
    CVTPackFloatKind.E5M2x2: (Float8E5M2, Uint8),
}
"""The float of each kind, and the integer of its bits."""


def cvt_packfloat_f32(*args: Any, rnd: Any = None, sat: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """``(a, b, c, kind)``: two Float32 as numbers of ``kind``, ``a`` in the upper half and ``b`` in the lower one.
    Pairs of 8-bit floats lie in the lower 16 bits, and are saturated; ``c``, the bits above, is 0.

    >>> two = lambda t: cvt_packfloat_f32(Float32(2.0), Float32(1.0), Int32(0), CVTPackFloatKind.E4M3x2)
    >>> [hex(x) for x in per_thread(two, 1)]
    ['0x4038']
    """
    a, b, c, kind = _operands("cvt_packfloat_f32", args, 4)
    float_, bits = _row("cvt_packfloat_f32", kind)
    _zero("cvt_packfloat_f32", c)
    _modes("cvt_packfloat_f32", rnd, sat, saturates=float_.width == 8)
    high, low = (Uint32(float_(Float32(wrap(operand(x)))).bitcast(bits)) for x in (a, b))
    return Int32(high << float_.width | low)


def cvt_packfloat(*args: Any, rnd: Any = None, sat: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """``(x, c, kind, wider)``: the two 8-bit floats in the lower 16 bits of ``x`` as two Float16, exactly.

    >>> kinds = CVTPackFloatKind.E4M3x2, CVTPackFloatKind.F16x2
    >>> [hex(x) for x in per_thread(lambda t: cvt_packfloat(Int32(0x4038), Int32(0), *kinds), 1)]
    ['0x40003c00']
    """
    x, c, kind, wider = _operands("cvt_packfloat", args, 4)
    float_, bits = _row("cvt_packfloat", kind)
    if float_.width != 8 or wider is not CVTPackFloatKind.F16x2:
        raise ConstraintError(f"nvvm.cvt_packfloat converts E4M3x2 and E5M2x2 to F16x2, not {kind} to {wider}")
    _zero("cvt_packfloat", c)
    _modes("cvt_packfloat", rnd, sat, saturates=False)
    both = Uint32(wrap(operand(x)))
    low, high = (Uint32(Float16(bits(both >> n & 0xFF).bitcast(float_)).bitcast(Uint16)) for n in (0, 8))
    return Int32(high << 16 | low)


def _operands(what: str, args: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """The operands, without the type of the result that some releases take first."""
    operands = args[1:] if len(args) == count + 1 else args
    if len(operands) != count:
        raise ConstraintError(f"nvvm.{what} takes {count} operands, not {len(operands)}")
    return operands


def _row(what: str, kind: Any) -> tuple[Any, Any]:
    if kind not in _KINDS:
        raise ConstraintError(f"nvvm.{what}: {kind!r} is not here; {', '.join(k.name for k in _KINDS)} are")
    return _KINDS[kind]


def _zero(what: str, c: Any) -> None:
    value = wrap(operand(c))
    if not value.is_static or value.value != 0:
        raise ConstraintError(f"nvvm.{what}: the bits above the numbers are 0 here: give Int32(0) and join others by |")


def _modes(what: str, rnd: Any, sat: Any, saturates: bool) -> None:
    """The modes that the conversion has, or none given."""
    if rnd is not None and getattr(rnd, "value", rnd) != "rn":
        raise ConstraintError(f"nvvm.{what}: rnd={rnd!r}; numbers are rounded to the nearest even one: leave rnd out")
    mode = SaturationModeKind.SATFINITE if saturates else SaturationModeKind.NONE
    if sat is not None and sat is not mode:
        raise ConstraintError(f"nvvm.{what}: sat={sat!r}; this conversion has {mode}")
