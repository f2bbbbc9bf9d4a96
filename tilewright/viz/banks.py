"""Shared memory seen as the hardware sees it: 32 banks of four bytes."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from tilewright.errors import ArgumentError
from tilewright.layout import ComposedLayout, bank_conflicts, product, size
from tilewright.layout.banks import BANKS, WORD, lanes_together
from tilewright.viz.colour import BLANK, distinct
from tilewright.viz.figure import Figure
from tilewright.viz.figure_drawing import stacked_if_wide
from tilewright.viz.grids import AnyLayout, breaks, require_static, without_swizzle
from tilewright.viz.layouts import grid_shape
from tilewright.viz.panels import Cell, Panel
from tilewright.viz.windows import MOST_CELLS, cut

MOST_MARKS = 2  # phases that are written into one cell


def bank_figure(layout: AnyLayout, element_bits: int, *, vector: int = 1, access: AnyLayout | None = None) -> Figure:
    """Draw which banks hold each element of a tile in shared memory; a swizzled tile is drawn without its swizzle too.

    Two lanes of one access conflict where they want different words of one colour.

    Args:
        layout: a static layout of rank 2 (or 1) from coordinates to element offsets.
        element_bits: the width of an element.
        vector: neighbours in the row that are accessed together; they share a cell.
        access: maps (thread, value) to the 1-D coordinate of what is accessed, ``vector`` values at a time; its
            wavefronts are counted below the picture, and only the accessed cells are coloured. ``p2`` is a cell of
            phase 2 (the lanes that are served together), ``x8`` one whose bank has eight words to deliver in that
            phase, one after the other.

    Raises:
        ArgumentError: ``vector`` does not divide the row, or its elements are not side by side in memory.
        LayoutError: ``access`` reaches outside the tile, or its vectors are not neighbours in memory.

    >>> from tilewright.layout import Layout
    >>> figure = bank_figure(Layout((4, 16), (16, 1)), 64, vector=2, access=Layout((4, 2), (1, 4)))
    >>> figure.panels[0].cells[0].lines, figure.panels[0].cells[1].lines
    (('0', 'x4'), ('4',))
    """
    require_static(layout)
    if not hasattr(element_bits, "__index__") or element_bits < 1:
        raise ArgumentError(f"elements of {element_bits!r} bits have no banks: a positive integer is needed")
    notes: tuple[str, ...] = ()
    versions = [("", layout)]
    if isinstance(layout, ComposedLayout):
        versions = [("without the swizzle", without_swizzle(layout)), ("with it", layout)]
    panels = []
    for number, (title, version) in enumerate(versions):
        marks = None
        if access is not None:
            report = bank_conflicts(version, access, element_bits, vector)
            where = f"access {access} {title}".strip()
            notes = (*notes, f"{where}: wavefronts {report.cost}, ideal {report.ideal}")
            marks = _marks(version, access, element_bits, vector)
        panels.append(_panel(version, element_bits, vector, title, (0, number), marks))
    written = {word[0] for panel in panels for cell in panel.cells for line in cell.lines[1:] for word in line.split()}
    if access is not None:
        notes += ("without colour: not accessed",)
    notes += tuple(meaning for mark, meaning in MEANING.items() if mark in written)
    cell = "an element" if vector == 1 else f"{vector} elements"
    what = f"number and colour: bank of the first byte; a cell is {cell} of {element_bits} bits"
    return Figure(f"banks of {layout}", stacked_if_wide(tuple(panels)), notes=(*notes, what))


MEANING = {
    "p": "p and a number: the phase in which a cell is accessed; the lanes of a phase are served together",
    "x": "x and a number: the words that its bank delivers in that phase, one after the other",
}
Marks: TypeAlias = dict[tuple[int, int], list[tuple[int, int]]]
"""Row and column of a cell: the phases in which it is accessed, each with the words that its bank delivers then."""


def _marks(layout: AnyLayout, access: AnyLayout, bits: int, vector: int) -> Marks:
    """The accessed cells. Phases are counted as :func:`bank_conflicts` reports them: along the threads first."""
    rows = _size(grid_shape(layout)[0])
    width = vector * bits // 8
    together, threads = lanes_together(width), size(access[0])
    marks: Marks = {}
    phase = 0
    for value in range(0, size(access[1]), vector):
        for first in range(0, threads, together):
            lanes = range(first, min(first + together, threads))
            indices = {int(access(lane + threads * value)) for lane in lanes}
            words = {index: _words(int(layout(index)) * bits // 8, width) for index in indices}
            banks = Counter(word % BANKS for word in {word for own in words.values() for word in own})
            for index, own in words.items():
                place = index % rows, index // rows // vector
                marks.setdefault(place, []).append((phase, max(banks[word % BANKS] for word in own)))
            phase += 1
    return marks if phase > 1 else {place: [(-1, mark[0][1])] for place, mark in marks.items()}


def _words(byte: int, width: int) -> range:
    """The words that an access of ``width`` bytes wants."""
    return range(byte // WORD, (byte + width - 1) // WORD + 1)


def _mark(turns: list[tuple[int, int]]) -> str:
    """What is written into an accessed cell: phases and conflicts, the first few."""
    words = [
        " ".join(filter(None, (f"p{phase}" if phase >= 0 else "", f"x{degree}" if degree > 1 else "")))
        for phase, degree in turns[:MOST_MARKS]
    ]
    return " ".join(words) + (" .." if len(turns) > MOST_MARKS else "")


def bank_of(offset: int, element_bits: int) -> int:
    """The bank that holds the first bit of the element at ``offset``.

    >>> bank_of(64, 16), bank_of(66, 16)
    (0, 1)
    """
    return offset * element_bits // (8 * WORD) % BANKS


def _panel(layout: AnyLayout, bits: int, vector: int, title: str, at: tuple[int, int], marks: Marks | None) -> Panel:
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
        lines: tuple[str, ...] = (str(first),)
        fill = distinct(first // step)
        if marks is not None and (i, j) in marks:
            lines = tuple(filter(None, (*lines, _mark(marks[i, j]))))
            remark += "".join(
                f"; {f'phase {phase}: ' if phase >= 0 else ''}{degree} of its bank's words wanted"
                for phase, degree in marks[i, j]
            )
        elif marks is not None:
            fill, remark = BLANK, f"{remark}; not accessed"
        cells.append(Cell(i, j, lines, fill, remark))
    return Panel(
        title, extents[0], extents[1] // vector, tuple(cells), at, breaks(down), row_window=rows, column_window=columns
    )


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
