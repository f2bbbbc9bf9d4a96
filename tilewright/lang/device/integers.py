"""Instructions of one thread on the bits of integers, and of a warp on one integer of each lane (PTX ISA, "Integer
Arithmetic Instructions", "Logic and Shift Instructions"): each is the PTX instruction of its name."""

from __future__ import annotations

from typing import Any, Literal

from tilewright.errors import ConstraintError
from tilewright.lang.device.inline_ptx import inline_asm
from tilewright.lang.numbers.numeric import Int32, Int64, Uint32, Uint64, as_numeric, wrap

_LETTERS = {32: "r", 64: "l"}


def clz(value: Any, *, loc: Any = None, ip: Any = None) -> Uint32:
    """How many zeros are above the highest one: 0 to 32, or 64 of 64-bit integers.

    >>> per_thread(lambda t: arch.clz(t), 5)
    [32, 31, 30, 30, 29]
    """
    number = _integer("clz", value)
    return _ptx(f"clz.b{number.width} $0, $1;", Uint32, number)


def bfind(value: Any, *, loc: Any = None, ip: Any = None) -> Uint32:
    """The place of the highest bit that is one (of a signed integer: that differs from the sign), else 0xFFFFFFFF.

    >>> per_thread(lambda t: arch.bfind(t - 2), 6)
    [0, -1, -1, 0, 1, 1]
    """
    number = _integer("bfind", value)
    return _ptx(f"bfind.{_kind(number)} $0, $1;", Uint32, number)


def brev(value: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The bits in the opposite order.

    >>> from tilewright import Uint32
    >>> per_thread(lambda t: arch.brev(Uint32(t)) >> 28, 4)
    [0, 8, 4, 12]
    """
    number = _integer("brev", value)
    return _ptx(f"brev.b{number.width} $0, $1;", type(number), number)


def bfe(value: Any, start: Any, length: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """``length`` bits from bit ``start`` on, as the lowest ones; a signed integer's field is filled up with its sign.

    >>> from tilewright import Uint32
    >>> per_thread(lambda t: arch.bfe(Uint32(0x4321), 4 * t, 4), 5), per_thread(lambda t: arch.bfe(t, 0, 2), 4)
    ([1, 2, 3, 4, 0], [0, 1, -2, -1])
    """
    number = _integer("bfe", value)
    return _ptx(f"bfe.{_kind(number)} $0, $1, $2, $3;", type(number), number, Uint32(start), Uint32(length))


def bfi(replacement: Any, value: Any, start: Any, length: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """``value`` with its ``length`` bits from bit ``start`` on taken from the lowest bits of ``replacement``.

    >>> from tilewright import Uint32
    >>> [hex(x) for x in per_thread(lambda t: arch.bfi(Uint32(0xA), Uint32(0x4321), 4 * t, 4), 3)]
    ['0x432a', '0x43a1', '0x4a21']
    """
    number = _integer("bfi", value)
    text = f"bfi.b{number.width} $0, $1, $2, $3, $4;"
    return _ptx(text, type(number), type(number)(replacement), number, Uint32(start), Uint32(length))


def mul24(a: Any, b: Any, hi: bool = False, *, loc: Any = None, ip: Any = None) -> Any:
    """The product of the lowest 24 bits of two integers: its lowest 32 bits, with ``hi`` its bits 16 to 47.

    >>> per_thread(lambda t: arch.mul24(0x1000003, t), 3)
    [0, 3, 6]
    >>> per_thread(lambda t: arch.mul24(0x10000 * t, 0x20000, hi=True), 3)
    [0, 131072, 262144]
    """
    x, y = _alike("mul24", a, b)
    return _ptx(f"mul24.{'hi' if hi else 'lo'}.{_kind(x)} $0, $1, $2;", type(x), x, y)


def mad24(a: Any, b: Any, c: Any, hi: bool = False, *, loc: Any = None, ip: Any = None) -> Any:
    """:func:`mul24` of ``a`` and ``b``, plus ``c``.

    >>> per_thread(lambda t: arch.mad24(3, t, 100), 3)
    [100, 103, 106]
    """
    x, y, z = _alike("mad24", a, b, c)
    return _ptx(f"mad24.{'hi' if hi else 'lo'}.{_kind(x)} $0, $1, $2, $3;", type(x), x, y, z)


def add_sat_int(a: Any, b: Any, *, loc: Any = None, ip: Any = None) -> Int32:
    """The sum of two Int32; beyond their range its end.

    >>> per_thread(lambda t: arch.add_sat_int(0x7FFFFFFE, t), 4)
    [2147483646, 2147483647, 2147483647, 2147483647]
    """
    return _ptx("add.sat.s32 $0, $1, $2;", Int32, Int32(a), Int32(b))


def sub_sat_int(a: Any, b: Any, *, loc: Any = None, ip: Any = None) -> Int32:
    """The difference of two Int32; beyond their range its end.

    >>> per_thread(lambda t: arch.sub_sat_int(-0x7FFFFFFF, t), 4)
    [-2147483647, -2147483648, -2147483648, -2147483648]
    """
    return _ptx("sub.sat.s32 $0, $1, $2;", Int32, Int32(a), Int32(b))


_FUNNELS = {"l": "l.wrap", "r": "r.wrap", "clamp_left": "l.clamp", "clamp_right": "r.clamp"}


def shf(a: Any, b: Any, shift: Any, kind: str = "l", *, loc: Any = None, ip: Any = None) -> Any:
    """32 bits of the 64 of ``a`` (the upper ones) and ``b``: the upper ones after a shift to the left (``l``), the
    lower ones after one to the right (``r``), by ``shift`` modulo 32; ``clamp_left``, ``clamp_right``: 32 at most.

    >>> from tilewright import Uint32
    >>> words = Uint32(0x11223344), Uint32(0x55667788)
    >>> [hex(x) for x in per_thread(lambda t: arch.shf(*words, 8 * t), 2)]
    ['0x11223344', '0x22334455']
    >>> [hex(x) for x in per_thread(lambda t: arch.shf(*words, 32 * t, kind="clamp_right"), 2, dtype=Uint32)]
    ['0x55667788', '0x11223344']
    """
    if kind not in _FUNNELS:
        raise ConstraintError(f"shf: kind is one of {', '.join(_FUNNELS)}, not {kind!r}")
    high, low = _alike("shf", a, b)
    return _ptx(f"shf.{_FUNNELS[kind]}.b32 $0, $1, $2, $3;", type(high), low, high, Uint32(shift))


def match_sync(
    mask: Any, value: Any, kind: Literal["any", "all"] = "any", *, loc: Any = None, ip: Any = None
) -> Uint32:
    """The lanes of ``mask`` whose ``value`` is this lane's; with ``all``: ``mask`` where they all have one, else 0.

    >>> [hex(x & 0xFFFFFFFF) for x in per_thread(lambda t: arch.match_sync(0xFFFFFFFF, t % 2))[:2]]
    ['0x55555555', '0xaaaaaaaa']
    """
    if kind not in ("any", "all"):
        raise ConstraintError(f"match_sync: kind is 'any' or 'all', not {kind!r}")
    number, lanes = _integer("match_sync", value), Uint32(mask)
    return _ptx(f"match.{kind}.sync.b{number.width} $0, $1, $2;", Uint32, number, lanes, effects=True)


def _integer(name: str, value: Any) -> Any:
    number = as_numeric(value)
    if type(number) not in (Int32, Uint32, Int64, Uint64):
        raise ConstraintError(f"cute.arch.{name} takes an integer of 32 or 64 bits, not {type(number).__name__}")
    return number


def _alike(name: str, *values: Any) -> list[Any]:
    """32-bit integers of one type; Python ints take the type of the others."""
    cls = next((type(v) for v in values if not isinstance(v, int)), Int32)
    numbers = [cls(v) if isinstance(v, int) else as_numeric(v) for v in values]
    if {type(n) for n in numbers} not in ({Int32}, {Uint32}):
        names = ", ".join(type(n).__name__ for n in numbers)
        raise ConstraintError(f"cute.arch.{name} takes 32-bit integers of one type, not {names}")
    return numbers


def _kind(number: Any) -> str:
    return f"{'s' if type(number).signed else 'u'}{number.width}"


def _ptx(text: str, result: Any, *operands: Any, effects: bool = False) -> Any:
    letters = [f"={_LETTERS[result.width]}", *(_LETTERS[x.width] for x in operands)]
    return wrap(inline_asm(result.ir_type, operands, text, ",".join(letters), has_side_effects=effects))
