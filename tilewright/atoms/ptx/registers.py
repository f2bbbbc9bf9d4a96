"""The registers of one run of inline PTX on the simulator: bits of all lanes, seen as the type an instruction names."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.atoms.ptx.text import immediate
from tilewright.errors import ConstraintError
from tilewright.ir.instruction import Lanes
from tilewright.ir.lanes import Array
from tilewright.ir.ops import OF_LAUNCHES, SREGS
from tilewright.ir.types import BOOL, SCALARS, U128, ScalarType

UNSIGNED = {
    1: np.dtype(bool),
    8: np.dtype("u1"),
    16: np.dtype("u2"),
    32: np.dtype("u4"),
    64: np.dtype("u8"),
    128: np.dtype("V16"),
}


_CLOCKS = {"clock64": "clock", "globaltimer": "clock", "globaltimer_lo": "clock"}


def to_bits(numbers: Array) -> Array:
    """Integers of Python as registers of 128 bits."""
    halves = [[int(n) >> shift & (1 << 64) - 1 for shift in (0, 64)] for n in numbers]
    return np.array(halves, np.uint64).view(UNSIGNED[128])[:, 0]


def to_numbers(bits: Array) -> Array:
    """Registers of 128 bits as integers of Python; others as they are."""
    if bits.dtype != UNSIGNED[128]:
        return bits
    low, high = np.ascontiguousarray(bits)[:, None].view(np.uint64).astype(object).T
    return low | high << 64


class Kind:
    """A PTX type: an element, and how many of them a register holds (``f16x2``: two)."""

    def __init__(self, elem: ScalarType, count: int = 1) -> None:
        self.elem, self.count = elem, count

    @property
    def width(self) -> int:
        return self.elem.width * self.count


def kind_of(name: str) -> Kind | None:
    """The type that a suffix such as ``s32``, ``b64``, ``pred`` or ``bf16x2`` names, or None."""
    if name == "pred":
        return Kind(BOOL)
    base, _, count = name.partition("x")
    if base[:1] == "s" and base[1:].isdigit():
        base = f"i{base[1:]}"
    elif base[:1] == "b" and base[1:].isdigit():
        base = f"u{base[1:]}"
    elem = U128 if name == "b128" else SCALARS.get(base)
    return None if elem is None or base == "i1" else Kind(elem, int(count) if count.isdigit() else 1)


class Registers:
    """Values by name. Every value is the array ``[L]`` of the lanes' bits, unsigned; predicates are bool."""

    def __init__(self, lanes: Lanes, declared: dict[str, str]) -> None:
        self.lanes = lanes
        self.count = lanes.lane().size
        self.bits: dict[str, Array] = {}
        self.widths: dict[str, int] = {}
        self.carry: Array | None = None  # the flag of add.cc and the like, bool [L]
        for name, kind in declared.items():
            register_kind = kind_of(kind)
            if register_kind is None:
                raise ConstraintError(f"inline PTX: the simulator does not know registers of type .{kind}")
            self.widths[name] = register_kind.width

    def define(self, name: str, width: int, value: Any = None) -> None:
        """A register of the caller; ``value`` is its number or array of numbers."""
        self.widths[name] = width
        if value is not None:
            spread = np.ascontiguousarray(self.lanes.spread(value))
            self.bits[name] = (
                spread if width == 1 else to_bits(spread) if width == 128 else spread.view(UNSIGNED[width])
            )

    # -- reading -------------------------------------------------------------------------------------------------------

    def read(self, token: Any, kind: Kind) -> Array:
        """The operand as numbers of the type: ``[L]``, or ``[L, n]`` of a packed type."""
        if isinstance(token, tuple):
            return self._typed(self.packed(token, kind.width // len(token)), kind)
        if kind.elem == BOOL:
            inverted = token.startswith("!")
            value = self.raw(token.lstrip("!"))
            return ~value if inverted else value
        sign, name = (-1, token[1:]) if token.startswith("-") and token[1:2].isalpha() else (1, token)
        if name in self.widths:
            value = self._typed(self.raw(name), kind)
            return -value if sign < 0 else value
        if token.startswith("%"):
            return self._typed(self._special(token[1:]), kind)
        return self._immediate(token, kind)

    def _special(self, name: str) -> Array:
        """A special register (PTX ISA, "Special Registers"). The clocks all count readings, from the launch on."""
        if name in SREGS or name in _CLOCKS:
            return np.ascontiguousarray(self.lanes.sreg(_CLOCKS.get(name, name))).view(np.uint32)
        if name in OF_LAUNCHES:
            return self.lanes.spread(self.lanes.sreg(name)).view(np.uint32)
        if name in ("clock_hi", "globaltimer_hi"):
            return np.zeros(self.count, np.uint32)
        bit = np.uint64(1) << self.lanes.lane().astype(np.uint64)
        masks = {"eq": bit, "lt": bit - 1, "le": 2 * bit - 1, "ge": ~(bit - 1), "gt": ~(2 * bit - 1)}
        if name.startswith("lanemask_") and name[9:] in masks:
            return (masks[name[9:]] & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        raise ConstraintError(f"inline PTX: the simulator does not know the special register %{name}")

    def raw(self, name: str) -> Array:
        """The bits of a register that has been written."""
        bits = self.bits.get(name)
        if bits is None:
            raise ConstraintError(f"inline PTX: {name} is read before it is written")
        return bits

    def packed(self, parts: tuple[str, ...], width: int = 0) -> Array:
        """The bits of ``{a, b, ...}``: the first part lowest. ``width``: of a part that is a number in the text."""
        numbers = {p: self._immediate(p, Kind(SCALARS[f"u{width}"])) for p in parts if width and p[:1].isdigit()}
        values = [numbers[p] if p in numbers else self.raw(p) for p in parts]
        return np.ascontiguousarray(np.stack(values, 1)).view(UNSIGNED[8 * values[0].itemsize * len(parts)])[:, 0]

    def _typed(self, bits: Array, kind: Kind) -> Array:
        unsigned = UNSIGNED[kind.width]
        same = bits if bits.dtype == unsigned else bits.astype(unsigned)
        seen = np.ascontiguousarray(same).view(kind.elem.dtype)
        return seen.reshape(self.count, kind.count) if kind.count > 1 else seen

    def _immediate(self, token: str, kind: Kind) -> Array:
        number = immediate(token, kind.elem if kind.count == 1 else SCALARS[f"u{kind.width}"])
        if number is None:
            raise ConstraintError(f"inline PTX: {token!r} is neither a declared register nor a number")
        if isinstance(number, int):
            return self._typed(np.full(self.count, number, UNSIGNED[kind.width]), kind)
        return np.full(self.count, number).astype(kind.elem.dtype)

    # -- writing -------------------------------------------------------------------------------------------------------

    def write(self, token: Any, value: Array, kind: Kind, where: Array | None) -> None:
        """Numbers of the type into the register; lanes outside ``where`` keep what they had."""
        packed = np.ascontiguousarray(np.asarray(value).astype(kind.elem.dtype, copy=False))
        if kind.elem == BOOL:
            self.store(token, packed, where)
            return
        packed = np.broadcast_to(packed, (self.count, *packed.shape[1:])) if packed.ndim else packed
        bits = np.ascontiguousarray(packed).view(UNSIGNED[kind.width]).reshape(self.count)
        if isinstance(token, tuple):
            parts = bits.reshape(-1, 1).view(UNSIGNED[kind.width // len(token)])
            for i, part in enumerate(token):
                self.store(part, np.ascontiguousarray(parts[:, i]), where)
            return
        width = self.widths.get(token, kind.width)
        if width > kind.width and kind.elem.kind == "int":  # a signed result fills a wider register with its sign
            signed = bits.view(f"i{kind.width // 8}").astype(f"i{width // 8}")
            bits = signed.view(UNSIGNED[width])
        self.store(token, bits, where)

    def store(self, name: str, bits: Array, where: Array | None) -> None:
        """Bits into the register ``name``; ``_`` takes anything and keeps nothing."""
        if name == "_":
            return
        if name not in self.widths:
            raise ConstraintError(f"inline PTX: {name} is written but is not a declared register")
        unsigned = UNSIGNED[self.widths[name]]
        bits = to_bits(bits) if bits.dtype == object else bits
        bits = bits if bits.dtype == unsigned else bits.astype(unsigned)
        old = self.bits.get(name)
        self.bits[name] = bits if where is None or old is None else np.where(where, bits, old)
