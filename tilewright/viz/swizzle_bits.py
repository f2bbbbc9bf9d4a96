"""A drawing of what a swizzle does to the bits of one offset."""

from __future__ import annotations

from tilewright.errors import ArgumentError
from tilewright.layout import Swizzle
from tilewright.viz.colour import BLANK, distinct
from tilewright.viz.figure import Figure
from tilewright.viz.panels import Axis, Cell, Panel, swatches

ROWS = ("offset", "YYY, shifted", "result")


def swizzle_bits_figure(swizzle: Swizzle, offset: int) -> Figure:
    """Draw the bits of ``offset``, the bits YYY moved onto ZZZ, and the result, in which ZZZ is ZZZ ^ YYY.

    Args:
        offset: a non-negative offset, in the units in which the swizzle counts (elements, or bytes for a pointer).

    Raises:
        ArgumentError: not a swizzle, or a negative offset.

    >>> print(swizzle_bits_figure(Swizzle(2, 0, 3), 0b01001).text())
    Sw<2,0,3>: 9 -> 8
                  4  3  2  1  0
    offset        0  1  0  0  1
    YYY, shifted           0  1
    result        0  1  0  0  0
       YYY: 2 bits from bit 3
       ZZZ: 2 bits from bit 0
    ZZZ of the result is ZZZ ^ YYY; all other bits stay
    """
    if not isinstance(swizzle, Swizzle):
        raise ArgumentError(f"{swizzle!r} is not a swizzle; make one with make_swizzle(bits, base, shift)")
    if not hasattr(offset, "__index__") or offset < 0:
        raise ArgumentError(f"the bits of {offset!r} cannot be drawn: a non-negative offset is needed")
    result = int(swizzle(offset))
    yyy, zzz = swizzle.yyy_mask, swizzle.zzz_mask
    shift = int(swizzle.num_shift)
    moved = (offset & yyy) >> shift if shift >= 0 else (offset & yyy) << -shift
    bits = max(yyy, zzz, offset, 1).bit_length()
    source, target = distinct(0), distinct(1)
    cells = []
    for column, bit in enumerate(reversed(range(bits))):
        mask = 1 << bit
        role = source if yyy & mask else target if zzz & mask else BLANK
        name = "YYY" if yyy & mask else "ZZZ" if zzz & mask else "kept"
        cells.append(Cell(0, column, (_bit(offset, bit),), role, f"bit {bit} of the offset: {name}"))
        if zzz & mask:
            cells.append(Cell(1, column, (_bit(moved, bit),), source, f"bit {bit + shift} of the offset, moved"))
        cells.append(Cell(2, column, (_bit(result, bit),), role, f"bit {bit} of the result: {name}"))
    axis = Axis(tuple(str(bit) for bit in reversed(range(bits))))
    panel = Panel("", len(ROWS), bits, tuple(cells), row_axis=Axis(ROWS), column_axis=axis)
    legend = swatches(
        [
            (colour, f"{name}: {_where(mask)}")
            for colour, name, mask in ((source, "YYY", yyy), (target, "ZZZ", zzz))
            if mask
        ]
    )
    note = "ZZZ of the result is ZZZ ^ YYY; all other bits stay"
    return Figure(f"{swizzle}: {offset} -> {result}", (panel,), legend, (note,))


def _bit(value: int, bit: int) -> str:
    return str(value >> bit & 1)


def _where(mask: int) -> str:
    return f"{mask.bit_count()} bits from bit {(mask & -mask).bit_length() - 1}"
