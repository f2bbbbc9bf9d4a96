"""Shared memory seen as the hardware sees it: 32 banks of four bytes."""

from __future__ import annotations

from tilewright.errors import ArgumentError
from tilewright.layout import ComposedLayout, bank_conflicts, product
from tilewright.layout.banks import BANKS, WORD
from tilewright.viz.colour import light_colour, thread_colour
from tilewright.viz.figure import Cell, Figure, Panel, cut
from tilewright.viz.grids import AnyLayout, breaks, require_static, without_swizzle
from tilewright.viz.layouts import grid_shape


def bank_figure(layout: AnyLayout, element_bits: int, *, vector: int = 1, access: AnyLayout | None = None) -> Figure:
    """Draw which banks hold each element of a tile in shared memory; a swizzled tile is drawn without its swizzle too.

    Two lanes of one access conflict where they want different words of one colour.

    Args:
        layout: a static layout of rank 2 (or 1) from coordinates to element offsets.
        element_bits: the width of an element.
        vector: neighbours in the row that are accessed together; they share a cell.
        access: maps (thread, value) to the 1-D coordinate of what is accessed, ``vector`` values at a time; its
            wavefronts are counted below the picture.

    Raises:
        ArgumentError: ``vector`` does not divide the row, or its elements do not lie side by side in memory.
        LayoutError: ``access`` reaches outside the tile, or its vectors are not neighbours in memory.
    """
    require_static(layout)
    panels: list[Panel] = []
    notes: tuple[str, ...] = ()
    versions = [("", layout)]
    if isinstance(layout, ComposedLayout):
        versions = [("without the swizzle", without_swizzle(layout)), ("with it", layout)]
    for number, (title, version) in enumerate(versions):
        panel, notes = _panel(version, element_bits, vector, title, (0, number))
        panels.append(panel)
    if access is not None:
        counts = [(title, bank_conflicts(version, access, element_bits, vector)) for title, version in versions]
        for title, report in counts:
            where = f"access {access} {title}".strip()
            notes = (*notes, f"{where}: wavefronts {report.cost}, ideal {report.ideal}")
    cell = "an element" if vector == 1 else f"{vector} elements"
    what = f"number and colour: bank of the first byte; a cell is {cell} of {element_bits} bits"
    return Figure(f"banks of {layout}", tuple(panels), notes=(*notes, what))


def bank_of(offset: int, element_bits: int) -> int:
    """The bank that holds the first bit of the element at ``offset``.

    >>> bank_of(64, 16), bank_of(66, 16)
    (0, 1)
    """
    return offset * element_bits // (8 * WORD) % BANKS


def _panel(layout: AnyLayout, bits: int, vector: int, title: str, at: tuple[int, int]) -> tuple[Panel, tuple[str, ...]]:
    down, across = grid_shape(layout)
    extents = _size(down), _size(across)
    if vector < 1 or extents[1] % vector:
        raise ArgumentError(f"vectors of {vector} do not divide a row of {extents[1]} in {layout}")
    rows, columns, notes = cut(extents[0], extents[1] // vector)
    cells = []
    for i in range(rows):
        for j in range(columns):
            offsets = [layout((i, j * vector + v) if len(layout) > 1 else j * vector + v) for v in range(vector)]
            if offsets != list(range(offsets[0], offsets[0] + vector)):
                which = f"elements {j * vector} to {j * vector + vector - 1} of row {i}"
                raise ArgumentError(f"{which} are not neighbours in memory under {layout}")
            first = bank_of(offsets[0], bits)
            words = max(1, vector * bits // (8 * WORD))
            remark = f"({i},{j * vector}): offset {offsets[0]}, banks {first} to {(first + words - 1) % BANKS}"
            # Wide vectors start at one of at most eight banks, and eight colours are told apart more easily than 32.
            colour = light_colour(first // words) if words * 8 >= BANKS else thread_colour(first)
            cells.append(Cell(i, j, (str(first),), colour, remark))
    row_breaks = breaks(down, rows)
    return Panel(title, rows, columns, tuple(cells), at, row_breaks), notes


def _size(shape: object) -> int:
    return int(product(shape))
