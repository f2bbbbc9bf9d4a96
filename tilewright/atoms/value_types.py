"""The value types of instruction operands, by their spelling in CuTe's instruction names (``F16``, ``S8``, ``U1``...).

Most are the IR's own scalar types. The ones below are narrower than a byte or complex: no pointer or number of the
language has them, but an instruction's operands do, and the simulator holds one element in one array cell.
"""

from __future__ import annotations

from tilewright.ir.types import I4, NUMBERS, U4, ScalarType

B1 = ScalarType("b1", "uint", 1, "uint8", "uint8_t")
C64 = ScalarType("c64", "complex", 128, "complex128", "double2")
GC64 = ScalarType("gc64", "gauss", 192, "f8,f8,f8", "double3")

# CuTe's spelling inside instruction names -> type. U1 is one bit; C64 is a complex number of two float64, GC64 an
# accumulator of such by Gauss' three products.
BY_NAME: dict[str, ScalarType] = {
    **{kind.cute: kind for kind in NUMBERS if kind.cute},
    "S4": I4,
    "U4": U4,
    "U1": B1,
    "C64": C64,
    "GC64": GC64,
}

# How traits print: signed integers as s8, s32; the rest as the IR prints them.
_SHOWN = {"i8": "s8", "i16": "s16", "i32": "s32", "i4": "s4"}


def shown(type_: ScalarType) -> str:
    """CuTe's lower-case name of a value type.

    >>> shown(BY_NAME["S32"]), shown(BY_NAME["F16"]), shown(U4)
    ('s32', 'f16', 'u4')
    """
    return _SHOWN.get(type_.name, type_.name)
