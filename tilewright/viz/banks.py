"""Shared memory seen as the hardware sees it: 32 banks of four bytes."""

from __future__ import annotations

from tilewright.errors import ArgumentError
from tilewright.layout import ComposedLayout, bank_conflicts, product
from tilewright.layout.banks import BANKS, WORD
from tilewright.viz.colour import distinct
from tilewright.viz.figure import Cell, Figure, Panel
from tilewright.viz.grids import AnyLayout, breaks, require_static, without_swizzle
from tilewright.viz.layouts import grid_shape
from tilewright.viz.thread_values import stacked_if_wide
from tilewright.viz.windows import MOST_CELLS, cut


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
        ArgumentError: ``vector`` does not divide the row, or its elements are not side by side in memory.
        LayoutError: ``access`` reaches outside the tile, or its vectors are not neighbours in memory.

    >>> from tilewright.layout import Layout
    >>> len(bank_figure(Layout((8, 32), (32, 1)), 32).panels)
    1
    """
    require_static(layout)
    if not hasattr(element_bits, "__index__") or element_bits < 1:
        raise ArgumentError(f"elements of {element_bits!r} bits have no banks: a positive integer is needed")
    notes: tuple[str, ...] = ()
    versions = [("", layout)]
    if isinstance(layout, ComposedLayout):
        versions = [("without the swizzle", without_swizzle(layout)), ("with it", layout)]
    panels = [_panel(version, element_bits, vector, title, (0, n)) for n, (title, version) in enumerate(versions)]
    if access is not None:
        counts = [(title, bank_conflicts(version, access, element_bits, vector)) for title, version in versions]
        for title, report in counts:
            where = f"access {access} {title}".strip()
            notes = (*notes, f"{where}: wavefronts {report.cost}, ideal {report.ideal}")
    cell = "an element" if vector == 1 else f"{vector} elements"
    what = f"number and colour: bank of the first byte; a cell is {cell} of {element_bits} bits"
    return Figure(f"banks of {layout}", stacked_if_wide(tuple(panels)), notes=(*notes, what))


def bank_of(offset: int, element_bits: int) -> int:
    """The bank that holds the first bit of the element at ``offset``.

    >>> bank_of(64, 16), bank_of(66, 16)
    (0, 1)
    """
    return offset * element_bits // (8 * WORD) % BANKS


def _panel(layout: AnyLayout, bits: int, vector: int, title: str, at: tuple[int, int]) -> Panel:
    if len(layout) > 2:
        raise ArgumentError(f"a bank map shows the two modes of a tile; {layout} has {len(layout)}: slice it first")
    down, across = grid_shape(layout)
    extents = _size(down), _size(across)
    if vector < 1 or extents[1] % vector:
        raise ArgumentError(f"vectors of {vector} do not divide a row of {extents[1]} in {layout}")
    rows, columns = cut(extents[0], extents[1] // vector, MOST_CELLS // 2)
    words = max(1, vector * bits // (8 * WORD))
    offsets = {(i, j): _offset(layout, i, j, vector) for i in rows for j in columns}
    firsts = {place: bank_of(offset, bits) for place, offset in offsets.items()}
    # Aligned vectors start at one of at most eight banks, and eight colours are told apart more easily than 32.
    step = words if words * 8 >= BANKS and all(first % words == 0 for first in firsts.values()) else 1
    cells = []
    for (i, j), first in firsts.items():
        banks = f"bank {first}" if words == 1 else f"banks {first} to {(first + words - 1) % BANKS}"
        remark = f"({i},{j * vector}): offset {offsets[i, j]}, {banks}"
        cells.append(Cell(i, j, (str(first),), distinct(first // step), remark))
    return Panel(title, extents[0], extents[1] // vector, tuple(cells), at, breaks(down),
                 row_window=rows, column_window=columns)  # fmt: skip


def _offset(layout: AnyLayout, row: int, column: int, vector: int) -> int:
    """Where the vector in a cell begins; all of it must be in one piece."""
    first = column * vector
    offsets = [int(layout((row, first + v) if len(layout) > 1 else first + v)) for v in range(vector)]
    if offsets != list(range(offsets[0], offsets[0] + vector)):
        which = f"elements {first} to {first + vector - 1} of row {row}"
        raise ArgumentError(f"{which} are not neighbours in memory under {layout}")
    return offsets[0]


def _size(shape: object) -> int:
    return int(product(shape))
