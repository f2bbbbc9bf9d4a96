"""Pictures of the scale factors of block-scaled ``tcgen05.mma``, in shared and in tensor memory."""

from __future__ import annotations

from typing import Any

from tilewright.atoms.scale_factors import FACTORS, ScaleTile
from tilewright.atoms.tcgen05_scaled import Tcgen05ScaledMma
from tilewright.atoms.tensor_memory import tmem_place
from tilewright.errors import ArgumentError
from tilewright.ir.target import WARP
from tilewright.viz.colour import BLANK, distinct
from tilewright.viz.figure import Figure
from tilewright.viz.panels import Axis, Cell, Panel
from tilewright.viz.tensor_memory import ends_of_parts, instruction_of


def scale_factors_figure(mma: Any, operand: str = "A", k: int | None = None) -> Figure:
    """Draw the scale factors of an operand of a block-scaled ``tcgen05.mma``: row and number of each, in shared and in
    tensor memory.

    Args:
        mma: a block-scaled tcgen05 instruction, or an atom or tiled MMA of one.
        operand: ``"A"`` or ``"B"``, whose rows are padded to 128.
        k: elements of the tile along K, of whole blocks of four factors; one block by default.

    Raises:
        ArgumentError: another instruction or operand. ConstraintError: half a block.

    >>> from tilewright.ir.types import E4M3, F32
    >>> mma = Tcgen05ScaledMma("mxf8f6f4", (128, 64, 32), F32, E4M3, E4M3)
    >>> figure = scale_factors_figure(mma)
    >>> next(cell.lines for cell in figure.panels[1].cells if (cell.row, cell.column) == (2, 5))
    ('34', 'f1')
    """
    atom = instruction_of(mma)
    if not isinstance(atom, Tcgen05ScaledMma):
        raise ArgumentError(f"{atom} has no scale factors: they are those of a block-scaled tcgen05.mma")
    if operand not in ("A", "B"):
        raise ArgumentError(f"scale factors are those of operand 'A' or 'B', not of {operand!r}")
    m, n, mma_k = atom.shape_mnk
    tile = ScaleTile(m // atom.ctas if operand == "A" else n, FACTORS * atom.vec if k is None else k, atom.vec, mma_k)
    shared, memory = _places_of_factors(tile)
    panels = (
        _factors("shared memory: lines of 16 bytes", shared, tile, (0, 0), Axis()),
        _factors(
            "tensor memory: lane x byte of its columns, the same in each 32 lanes",
            memory,
            tile,
            (0, 1),
            Axis(groups=tuple((4 * c, 4 * c + 4, f"column {c}") for c in range(tile.columns))),
        ),
    )
    named = [(distinct(i), f"MMA {i} along K") for i in range(tile.k // mma_k)]
    notes = [
        f"row and factor f of the row, which scales {tile.vec} elements from {tile.vec} * f on",
        f"an MMA takes {tile.factors} of a row",
    ]
    if tile.rows % 128:
        notes.append(f"the operand has {tile.rows} rows: those without colour are padding")
    return Figure(f"scale factors of {operand}: {tile.rows} x {tile.k} of {atom}", panels, tuple(named), tuple(notes))


def _places_of_factors(tile: ScaleTile) -> tuple[dict[tuple[int, int], Any], dict[tuple[int, int], Any]]:
    """(Row, factor) by line and byte in shared memory, and by lane and byte in tensor memory."""
    shared, memory = {}, {}
    to_shared, to_memory = tile.smem_layout(), tile.tmem_layout()
    for row in range(128 * tile.row_blocks):
        for factor in range(tile.k // tile.vec):
            number, within = divmod(factor, tile.factors)
            step = divmod(number, FACTORS // tile.factors)[::-1]  # of MMAs along K: in the block, and of blocks
            line = to_shared(((((row % 32, row // 32 % 4), row // 128), (0, within)), 0, step))
            place = to_memory(((((row % 32, row // 32), 0), (0, within)), 0, step))
            lane, column, byte = tmem_place(int(place), 8)
            shared[divmod(int(line), 16)] = memory[lane, 4 * column + byte] = row, factor
    return shared, memory


def _factors(title: str, factors: Any, tile: ScaleTile, where: tuple[int, int], axis: Axis) -> Panel:
    rows, columns = (max(place[i] for place in factors) + 1 for i in (0, 1))
    window = ends_of_parts(rows, range(WARP, rows, WARP))
    cells = []
    for row in window:
        for column in range(columns):
            if (row, column) in factors:
                of, factor = factors[row, column]
                fill = distinct(factor // tile.factors) if of < tile.rows else BLANK
                remark = f"row {of}, factor {factor}"
                cells.append(Cell(row, column, (str(of), f"f{factor}"), fill, remark))
    breaks = tuple(range(4, columns, 4))
    return Panel(title, rows, columns, tuple(cells), where, (), breaks, column_axis=axis, row_window=window)
