"""Retile in a picture: one thread's registers, numbered by the MMA that owns them and by the copy that fills them."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ArgumentError
from tilewright.lang.tensors.algebra import make_identity_tensor
from tilewright.layout import Layout, size
from tilewright.viz.colour import BLANK, colours_of, distinct
from tilewright.viz.figure import Figure
from tilewright.viz.panels import Cell, Panel
from tilewright.viz.windows import cut

SIDES = {"A": (0, 2, "D"), "B": (1, 2, "D"), "C": (0, 1, "S")}  # modes of (M, N, K), and the copy's register side


def retile_figure(
    tiled_copy: Any, tiled_mma: Any, operand: str = "A", thread: int = 0, tile: tuple[int, int] | None = None
) -> Figure:
    """Draw what ``tiled_copy.retile`` does to one thread's fragment of an operand of ``tiled_mma``.

    Above, the elements of a tile that the thread holds, numbered once by the MMA's partition and once by the
    copy's. Below, the register behind each number, before and after retile. One colour is one register.

    Args:
        tiled_copy: a copy made for the MMA, such as by ``make_tiled_copy_A``.
        operand: ``"A"``, ``"B"`` or ``"C"``.
        tile: rows and columns of the tensor: the MMA's own tile, or a multiple of it, where the repetitions that the
            MMA and the copy count differently come to light.

    Raises:
        ArgumentError: another operand, a thread that the MMA does not have, or a tile that its own does not divide.
        ConstraintError: the copy was made for another MMA.

    >>> from tilewright import Float16, Float32
    >>> from tilewright.viz import retile_figure
    >>> mma = cute.make_tiled_mma(cute.nvgpu.warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16)))
    >>> atom = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(num_matrices=4), Float16)
    >>> figure = retile_figure(cute.make_tiled_copy_A(atom, mma), mma)
    >>> figure.panels[2].title, figure.panels[3].title
    ('registers ((2,2,2),1,1):((1,2,4),0,0)', 'retiled ((8,1),1,1):((1,0),0,0)')
    """
    if operand not in SIDES:
        raise ArgumentError(f"an MMA has the operands A, B and C, not {operand!r}")
    for thing, what, needed in ((tiled_copy, "tiled copy", "retile"), (tiled_mma, "tiled MMA", "get_tile_size")):
        if not hasattr(thing, needed):
            raise ArgumentError(f"retile_figure: an object of type {type(thing).__name__} is not a {what}")
    if not hasattr(thread, "__index__") or not 0 <= thread < tiled_mma.size:
        raise ArgumentError(f"there is no thread {thread} among the {tiled_mma.size} of the MMA")
    *modes, side = SIDES[operand]
    extents = tuple(int(tiled_mma.get_tile_size(mode)) for mode in modes)
    if tile is not None:
        if len(tile) != 2 or any(n < 1 or n % own for n, own in zip(tile, extents, strict=True)):
            raise ArgumentError(f"retile_figure: {tile} is not a multiple of the MMA's tile of {operand}, {extents}")
        extents = tile
    coordinates = make_identity_tensor(extents)
    of_mma = getattr(tiled_mma.get_slice(thread), f"partition_{operand}")(coordinates)
    of_copy = getattr(tiled_copy.get_slice(thread), f"partition_{side}")(coordinates)
    before = Layout(of_mma.shape)
    after = tiled_copy.retile(before)
    panels = (
        _elements(f"{operand}: values of thread {thread} by the MMA", extents, of_mma, before, (0, 0)),
        _elements(f"{operand}: values of thread {thread} by the copy", extents, of_copy, after, (0, 1)),
        _registers(f"registers {before}", before, (1, 0)),
        _registers(f"retiled {after}", after, (1, 1)),
    )
    colours = colours_of("the register", size(before))
    return Figure(f"retile of {operand} for thread {thread}", panels, notes=(colours,))


def _elements(title: str, extents: tuple[int, ...], part: Any, registers: Layout, at: tuple[int, int]) -> Panel:
    value_at = {part[value]: value for value in range(size(part.shape))}
    rows, columns = cut(*extents)
    cells = []
    for place in ((i, j) for i in rows for j in columns):
        value = value_at.get(place)
        if value is None:
            cells.append(Cell(*place, (), BLANK, f"{place}: another thread's"))
        else:
            remark = f"{place}: value {value}, register {registers(value)}"
            cells.append(Cell(*place, (f"V{value}",), distinct(registers(value)), remark))
    return Panel(title, extents[0], extents[1], tuple(cells), at, row_window=rows, column_window=columns)


def _registers(title: str, layout: Layout, at: tuple[int, int]) -> Panel:
    count = size(layout)
    cells = []
    for value in range(count):
        register = layout(value)
        remark = f"value {value}: register {register}"
        cells.append(Cell(0, value, (f"R{register}",), distinct(register), remark))
    return Panel(title, 1, count, tuple(cells), at)
