"""Pictures of ``tcgen05``: which block has what of an MMA's operands, and what is where in tensor memory.

Operands of ``tcgen05.mma`` belong to no threads. A and B are in the shared memory of a block, or of both blocks of a
pair; accumulators, and A where the instruction takes it from there, are in tensor memory, whose place is a lane and a
column. A warp reaches the 32 lanes from ``32 * (warp % 4)`` on. Long tiles are drawn by the ends of their parts: where
lanes or blocks change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from tilewright.atoms.tcgen05_mma import Tcgen05Mma
from tilewright.atoms.tensor_memory import LANES, tmem_place
from tilewright.atoms.tensor_memory_cp import SmemToTmem, copied_places
from tilewright.atoms.tensor_memory_move import TmemMove
from tilewright.errors import ArgumentError
from tilewright.ir.target import WARP
from tilewright.viz.colour import BLANK, distinct, thread_colour
from tilewright.viz.colouring import ColorBy, ThreadColours
from tilewright.viz.figure import Figure
from tilewright.viz.figure_drawing import stacked_if_wide
from tilewright.viz.panels import Axis, Cell, Legend, Panel
from tilewright.viz.windows import Window

SHARED = ("#e9edf1", "#cdd5dd")  # the shared memory of the two blocks
SHORT, FIRST, LAST = 8, 4, 2  # parts of so many rows are drawn whole; of others the first and the last ones
PLACE = "lane:column: a place in tensor memory; colour: the warp that reaches the lane"
QUARTERS = LANES // WARP


class Place(NamedTuple):
    """A place in tensor memory, and which block's it is; ``part``: the element in the column, where it has several."""

    block: int
    lane: int
    column: int
    part: int = 0

    @property
    def fill(self) -> str:
        return distinct(QUARTERS * self.block + self.lane // WARP)


Where: TypeAlias = Callable[[int, int], "Place | int"]
"""From row and column of an operand to the place in tensor memory, or to the block in whose shared memory it is."""


def instruction_of(made_of: Any) -> Any:
    """The instruction of an atom, a tiled copy or MMA, or itself.

    >>> from tilewright.atoms.tensor_memory_move import TmemLoad
    >>> instruction_of(TmemLoad("32x32b", 8))
    SM100_TMEM_LOAD_32x32b8x
    """
    instruction = getattr(made_of, "instruction", made_of)
    return made_of if callable(instruction) else instruction


def tcgen05_figure(mma: Any, tile_mnk: tuple[int, int, int] | None = None) -> Figure:
    """Draw A, B and C of a ``tcgen05.mma``: which block has each element, in shared memory or where in tensor memory.

    Args:
        mma: a tcgen05 instruction, or an atom or tiled MMA of one.
        tile_mnk: the tile that is multiplied, of whole instructions; one instruction's by default.

    Raises:
        ArgumentError: another instruction, or a tile that is not of whole ones.

    >>> from tilewright.ir.types import BF16, F32
    >>> figure = tcgen05_figure(Tcgen05Mma("f16", (256, 64, 16), F32, BF16, BF16, ctas=2))
    >>> [panel.title for panel in figure.panels]
    ['B (K x N)', 'A (M x K)', 'C (M x N)']
    >>> next(cell.lines for cell in figure.panels[2].cells if (cell.row, cell.column) == (130, 3))
    ('2:3',)
    """
    atom = _mma(mma)
    m, n, k = atom.shape_mnk if tile_mnk is None else tile_mnk
    if any(whole < 1 or whole % part for whole, part in zip((m, n, k), atom.shape_mnk, strict=True)):
        raise ArgumentError(
            f"the tile {m} x {n} x {k} does not consist of MMAs of {' x '.join(map(str, atom.shape_mnk))}"
        )
    a, b, c = _operand(atom, "A", m, k), _operand(atom, "B", n, k), _operand(atom, "C", m, n)
    # The same rows of A and C, and the same columns of B and C, are drawn.
    down = ends_of_parts(m, _breaks(a, m, 0) + _breaks(c, m, 0))
    across = ends_of_parts(n, _breaks(b, n, 0) + _breaks(c, n, 1))
    along = ends_of_parts(k, ())
    panels = (
        _panel("B (K x N)", (k, n), lambda row, column: b(column, row), (0, 1), (along, across)),
        _panel("A (M x K)", (m, k), a, (1, 0), (down, along)),
        _panel("C (M x N)", (m, n), c, (1, 1), (down, across)),
    )
    pair = atom.ctas == 2
    in_shared = "A and B" if atom.source == "SS" else "B"
    notes = [PLACE, f"{in_shared}: in shared memory{', s0 and s1: of block 0 and 1 of the pair' if pair else ''}"]
    if pair:
        notes.append("the warp of block 0 issues for both")
    if atom.shape_mnk[0] // 2 == 64 and atom.source == "TS" and pair:
        notes.append("A is there twice, in lanes 0-63 and 64-127")
    return Figure(str(atom), panels, _legend(panels, atom.ctas), tuple(notes))


def tensor_memory_figure(mma: Any, load: Any = None, tile_mn: tuple[int, int] | None = None) -> Figure:
    """Draw the tensor memory of accumulators: the element (m,n) at each lane and column, and who loads it.

    Args:
        mma: a tcgen05 instruction, or an atom or tiled MMA of one.
        load: a ``tcgen05.ld`` or ``st``, or an atom or tiled copy of one: each place then names the thread of the four
            warps and its register in one call.
        tile_mn: the tile that is multiplied, of whole instructions.

    Raises:
        ArgumentError: other instructions, a tile that is not of whole ones, or a load of places without accumulators.

    >>> from tilewright.atoms.tensor_memory_move import TmemLoad
    >>> from tilewright.ir.types import BF16, F32
    >>> figure = tensor_memory_figure(Tcgen05Mma("f16", (128, 64, 16), F32, BF16, BF16), TmemLoad("16x256b", 1))
    >>> next(cell.lines for cell in figure.panels[0].cells if (cell.row, cell.column) == (33, 3))
    ('33,3', 'T37', 'r1')
    """
    atom, move = _mma(mma), None if load is None else _move(load)
    m, n = atom.shape_mnk[:2] if tile_mn is None else tile_mn
    if m % atom.shape_mnk[0] or n % atom.shape_mnk[1] or m < 1 or n < 1:
        raise ArgumentError(f"the tile {m} x {n} does not consist of MMAs of {atom.shape_mnk[0]} x {atom.shape_mnk[1]}")
    where = _operand(atom, "C", m, n)
    owners: dict[tuple[int, int, int], tuple[int, int]] = {}
    for row in range(m):
        for column in range(n):
            place = where(row, column)
            assert isinstance(place, Place)
            owners[place[:3]] = row, column
    columns = max(column for _, _, column in owners) + 1
    loaded = {} if move is None else _calls(move, owners, columns)
    breaks = tuple(range(move.layouts.columns, columns, move.layouts.columns)) if move is not None else ()
    free = tuple(i for i in range(1, LANES) if ((0, i, 0) in owners) != ((0, i - 1, 0) in owners))
    rows, across = ends_of_parts(LANES, (*range(WARP, LANES, WARP), *free)), ends_of_parts(columns, breaks)
    groups = tuple((WARP * w, WARP * (w + 1), f"warp {w}") for w in range(QUARTERS))
    panels = tuple(
        Panel(
            f"block {block}: lane x column" if atom.ctas == 2 else "lane x column",
            LANES,
            columns,
            tuple(_memory_cell(Place(block, i, j), owners, loaded) for i in rows for j in across),
            (0, block),
            tuple(range(WARP, LANES, WARP)),
            breaks,
            row_axis=Axis(groups=groups),
            row_window=rows,
            column_window=across,
        )
        for block in range(atom.ctas)
    )
    notes = ["m,n: the element of the accumulators at this place"]
    if move is not None:
        notes.append(
            f"T, r: thread of the four warps, and its register in one {move.mnemonic()}; dark line: another call"
        )
    legend: Legend = () if move is not None else _legend(panels, atom.ctas)
    title = f"tensor memory: accumulators of {atom}"
    return Figure(title if move is None else f"{title}, {move}", stacked_if_wide(panels), legend, tuple(notes))


def tmem_copy_figure(move: Any, *, thread: int | None = None, color_by: ColorBy = "thread") -> Figure:
    """Draw a ``tcgen05.ld`` or ``st``: which register of which thread of a warp holds what is at a lane and column.

    Args:
        move: a ``tcgen05.ld`` or ``st``, or an atom or tiled copy of one.
        thread: draw only what this thread has.
        color_by: see :func:`~tilewright.viz.tv_figure`; the values are registers.

    >>> from tilewright.atoms.tensor_memory_move import TmemLoad
    >>> print(tmem_copy_figure(TmemLoad("16x64b", 1)).text().splitlines()[4])
     1   T4/r0   T6/r0
    """
    made = _move(move)
    held, colours = _registers(made), ThreadColours(color_by, WARP, made.layouts.register_count)
    if thread is not None and thread not in range(WARP):
        raise ArgumentError(f"cannot draw thread {thread!r}: there are {WARP}")
    rows, columns = max(lane for lane, _ in held) + 1, made.layouts.columns
    across = tuple(range(columns)) if columns <= 2 * SHORT else ends_of_parts(columns, ())
    cells = []
    for lane in range(rows):
        for column in across:
            who = held.get((lane, column))
            if who is None or thread not in (None, who[0]):
                cells.append(Cell(lane, column, (), BLANK, f"lane {lane}, column {column}"))
                continue
            text, fill = _of(who), colours.of(*who[:2])
            cells.append(Cell(lane, column, text, fill, f"lane {lane}, column {column}: {' '.join(text)}"))
    panel = Panel("tensor memory: lane x column", rows, columns, tuple(cells), column_window=across)
    notes = [f"{made.mnemonic()} of a warp, from its address on; T, r: thread and its register of 32 bits"]
    if made.pack:
        notes.append("lo, hi: the half of the register that has the low 16 bits of the column")
    return Figure(str(made), (panel,), colours.legend(thread), tuple(notes))


def cp_figure(copy: Any) -> Figure:
    """Draw a ``tcgen05.cp``: the words of each row in shared memory, and the lanes and columns that get them.

    >>> cp_figure(SmemToTmem("32x128b.warpx4")).panels[1].title
    'tensor memory: lane x column'
    """
    made = instruction_of(copy)
    if not isinstance(made, SmemToTmem):
        raise ArgumentError(f"{made} is not a tcgen05.cp")
    words, down = made.row_bytes // 4, ends_of_parts(made.rows, range(WARP, made.rows, WARP))
    source = tuple(
        Cell(r, w, (f"{r}.{w}",), distinct(r // WARP), f"row {r}, word {w}") for r in down for w in range(words)
    )
    to = {
        place: (row, word)
        for copied in copied_places(made.shape)
        for row, places in enumerate(copied)
        for word, place in enumerate(places)
    }
    rows = ends_of_parts(LANES, range(WARP, LANES, WARP))
    cells = []
    quarters = tuple(range(WARP, LANES, WARP))
    for lane in rows:
        for column in range(words):
            row, word = to.get((lane, column), (-1, 0))
            text, fill = ((), BLANK) if row < 0 else ((f"{row}.{word}",), distinct(row // WARP))
            cells.append(Cell(lane, column, text, fill, f"lane {lane}, column {column}"))
    panels = (
        Panel(
            f"shared memory: row x word of {made.row_bytes} bytes", made.rows, words, source, (0, 0), row_window=down
        ),
        Panel("tensor memory: lane x column", LANES, words, tuple(cells), (0, 1), quarters, row_window=rows),
    )
    notes = ("row.word: 32 bits of a row; columns count from the address on",)
    return Figure(f"{made}: {made.mnemonic()}", panels, (), notes)


# -- where things are --------------------------------------------------------------------------------------------------


def _mma(thing: Any) -> Tcgen05Mma:
    instruction = instruction_of(thing)
    if not isinstance(instruction, Tcgen05Mma):
        raise ArgumentError(f"{instruction} has nothing in tensor memory: it is not a tcgen05.mma")
    return instruction


def _move(thing: Any) -> TmemMove:
    instruction = instruction_of(thing)
    if not isinstance(instruction, TmemMove):
        raise ArgumentError(f"{instruction} is not a tcgen05.ld or st")
    return instruction


def _operand(atom: Tcgen05Mma, operand: str, rows: int, columns: int) -> Where:
    """A function that gives the place of an element in tensor memory, or the block in whose shared memory it is."""
    m, n, k = atom.shape_mnk
    each, wide = {"A": (m, k), "B": (n, k), "C": (m, n)}[operand]
    own = each // atom.ctas  # rows of a block
    if not atom.in_tensor_memory(operand):
        return lambda row, column: row % each // own
    width = atom.type_d.width if operand == "C" else atom.stored_type("A").width
    shape = (own, wide, rows // each, columns // wide)
    # Of a pair with 64 rows each, A is there twice: its first copy is drawn.
    layout = atom.tensor_memory(operand, (shape[:2], *shape[2:]))

    def place(row: int, column: int) -> Place:
        block, inside = divmod(row % each, own)
        return Place(block, *tmem_place(int(layout(((inside, column % wide), row // each, column // wide))), width))

    return place


def _registers(move: TmemMove) -> dict[tuple[int, int], tuple[int, int, str]]:
    """For (lane, column) from a warp's address on: thread, register, and which half of it."""
    registers = {}
    for thread in range(WARP):
        for register in range(move.layouts.register_count):
            for bit, half in ((0, "lo"), (16, "hi")) if move.pack else ((0, ""),):
                lane, column, _ = move.layouts.place(thread, register, bit)
                registers[lane, column] = thread, register, half
    return registers


def _of(who: tuple[int, int, str]) -> tuple[str, ...]:
    thread, register, half = who
    return tuple(filter(None, (f"T{thread}", f"r{register}", half)))


def _calls(move: TmemMove, registers: Any, columns: int) -> dict[tuple[int, int], tuple[int, int, str]]:
    """For (lane, column): thread of the four warps, register and half, of calls that take one place after the other."""
    held, step = _registers(move), move.layouts.columns
    tall = max(lane for lane, _ in held) + 1
    used = {place[1:] for place in registers}
    loaded = {}
    for first in range(0, LANES, tall):
        for left in range(0, columns, step):
            if (first, left) not in used:
                continue
            for (lane, column), (thread, register, half) in held.items():
                place = first + lane, left + column
                if place not in used:
                    raise ArgumentError(
                        f"{move} from lane {first} and column {left} on reaches lane {place[0]}, column {place[1]}, "
                        "where there is no accumulator: take a shape and repetition that fit the tile"
                    )
                loaded[place] = thread + first // WARP * WARP, register, half
    return loaded


# -- cells and panels --------------------------------------------------------------------------------------------------


def _memory_cell(place: Place, owner: Any, loaded: Any) -> Cell:
    element, who = owner.get(place[:3]), loaded.get((place.lane, place.column))
    remark = f"block {place.block}, lane {place.lane}, column {place.column}"
    if element is None:
        return Cell(place.lane, place.column, (), BLANK, f"{remark}: no accumulator")
    lines = (f"{element[0]},{element[1]}",)
    fill = place.fill if who is None else thread_colour(who[0], LANES)
    return Cell(place.lane, place.column, lines if who is None else (*lines, *_of(who)), fill, remark)


def ends_of_parts(extent: int, breaks: Iterable[int]) -> Window:
    """The first and the last indices of each part between breaks; short parts are shown whole.

    >>> ends_of_parts(40, (32,))
    (0, 1, 2, 3, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39)
    """
    indices: list[int] = []
    edges = (0, *sorted({*breaks}), extent)
    for first, last in zip(edges, edges[1:], strict=False):
        if last - first <= SHORT:
            indices += range(first, last)
        else:
            indices += (*range(first, first + FIRST), *range(last - LAST, last))
    return tuple(indices)


def _breaks(at: Where, extent: int, mode: int) -> tuple[int, ...]:
    """The rows (mode 0) or columns that are of another block or warp than the ones before."""
    parts = []
    for i in range(extent):
        place = at(i, 0) if mode == 0 else at(0, i)
        parts.append((place, 0) if isinstance(place, int) else (place.block, place.lane // WARP))
    return tuple(i for i in range(1, extent) if parts[i] != parts[i - 1])


def _panel(
    title: str, extents: tuple[int, int], at: Where, where: tuple[int, int], windows: tuple[Window, Window]
) -> Panel:
    rows, columns = extents
    down, across = _breaks(at, rows, 0), _breaks(at, columns, 1)
    cells = []
    for row in windows[0]:
        for column in windows[1]:
            place = at(row, column)
            if isinstance(place, int):
                remark = f"({row},{column}): shared memory of block {place}"
                cells.append(Cell(row, column, (f"s{place}",), SHARED[place], remark))
                continue
            part = (f".{place.part}",) if place.part else ()
            remark = f"({row},{column}): block {place.block}, lane {place.lane}, column {place.column}"
            cells.append(Cell(row, column, (f"{place.lane}:{place.column}", *part), place.fill, remark))
    return Panel(
        title, rows, columns, tuple(cells), where, down, across, row_window=windows[0], column_window=windows[1]
    )


def _legend(panels: Iterable[Panel], ctas: int) -> Legend:
    """The colours that are seen, with what they stand for."""
    of = [f" of block {block}" if ctas == 2 else "" for block in range(ctas)]
    entries = [(SHARED[block], f"shared memory{of[block]}") for block in range(ctas)]
    entries += [
        (Place(block, WARP * w, 0).fill, f"lanes {WARP * w} to {WARP * w + 31}{of[block]}")
        for block in range(ctas)
        for w in range(QUARTERS)
    ]
    seen = {cell.fill for panel in panels for cell in panel.cells}
    return tuple(entry for entry in entries if entry[0] in seen)
