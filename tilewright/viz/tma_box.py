"""One copy by TMA: a box of a matrix, and where its rows land in shared memory."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ArgumentError, ConstraintError
from tilewright.ir.tensormap import SWIZZLE_SPANS, TensorMap
from tilewright.ir.types import ScalarType
from tilewright.layout import ComposedLayout, Layout, Swizzle, format_tree, is_static
from tilewright.tiled.tma.plan import TmaPlan, plan_of
from tilewright.viz.colour import BLANK, distinct
from tilewright.viz.figure import Figure
from tilewright.viz.panels import Axis, Cell, Panel, swatches
from tilewright.viz.windows import ends

CHUNK, LINE = 16, 128  # bytes: what a swizzle keeps together; what the 32 banks deliver together
MARGIN, MOST_LINES = 2, 32  # lines and chunks of the tensor around the box; lines that a panel shows
FILL = "#d0d3d6"


def tma_box_figure(
    tensor: Layout, box: tuple[int, int], at: tuple[int, int], element: ScalarType, *, swizzle: int = 0
) -> Figure:
    """Draw the box that one TMA instruction loads, and the shared memory that it fills, in chunks of 16 bytes.

    A line is what is contiguous in the tensor: a row of (100,72):(72,1), a column of (72,100):(1,72). Lines of the box
    lie one behind the other in shared memory; chunks of one colour come from one line. What lies outside the tensor
    arrives as zeros.

    Args:
        tensor: a static layout of rank 2 with a contiguous mode.
        box: its extents in elements; lines of whole chunks.
        at: the coordinates of its first element; they may be negative, and are multiples of a chunk along a line.
        element: the type of an element.
        swizzle: 0, 32, 64 or 128 bytes.

    Raises:
        ArgumentError: not such a layout, box, place or swizzle.
        ConstraintError: what TMA does not copy.

    >>> from tilewright.ir.types import F16
    >>> figure = tma_box_figure(Layout((100, 72), (72, 1)), (8, 64), (96, 32), F16, swizzle=128)
    >>> [panel.title for panel in figure.panels]
    ['the tensor: lines of 9 chunks of 16 bytes', 'shared memory: lines of 128 bytes']
    >>> figure.notes[0]
    'box of 8 x 64 at (96,32): 1024 bytes, of which 704 lie outside the tensor and arrive as zeros'
    """
    tma_plan(tensor, box, element, swizzle)
    inner = tensor.stride.index(1)
    chunk = CHUNK // element.bytes
    if box[inner] % chunk or at[inner] % chunk:
        raise ArgumentError(f"boxes are drawn in chunks of {chunk} elements: {box[inner]} at {at[inner]} are not whole")
    lines, chunks = box[1 - inner], box[inner] // chunk
    first, left = at[1 - inner], at[inner] // chunk
    length, rows = tensor.shape[inner], tensor.shape[1 - inner]

    def inside(line: int, start: int) -> int:
        """Elements of a chunk that lie in the tensor."""
        return max(0, min(chunk, length - start * chunk)) if 0 <= line < rows and start >= 0 else 0

    def cell(row: int, column: int, line: int, start: int, place: str) -> Cell:
        filled = inside(line, start)
        name = f"{line}:{start * chunk}" if filled else "0"
        source = f"line {line}, elements {start * chunk} to {start * chunk + chunk - 1}"
        rest = "" if filled == chunk else f"; {chunk - filled} outside: zeros"
        return Cell(row, column, (name,), distinct((line - first) % 8) if filled else FILL, source + rest + place)

    own = {(first + i, left + j): (i, j) for i in range(lines) for j in range(chunks)}
    panels = (
        _tensor_panel(cell, own, rows, -(-length // chunk), inside),
        _memory_panel(cell, own, chunks, SWIZZLE_SPANS.index(swizzle)),
    )
    zeros = sum(chunk - inside(*place) for place in own) * element.bytes
    total = len(own) * CHUNK
    size = f"{' x '.join(map(str, box))} at {format_tree(at)}"
    missing = f"{total} bytes" + (f", of which {zeros} lie outside the tensor and arrive as zeros" if zeros else "")
    mode = f"swizzle of {swizzle} bytes" if swizzle else "no swizzle"
    return Figure(
        f"TMA: box of {size} from {tensor} x {element}, {mode}",
        panels,
        swatches([(FILL, "outside the tensor: zeros")] if zeros else []),
        (f"box of {size}: {missing}", "line:element of the first in a chunk; colour: line of the box, modulo 8"),
    )


def tma_plan(
    tensor: Layout, box: tuple[int, int], element: ScalarType, swizzle: int = 0, multicast: int = 1
) -> tuple[TmaPlan, TensorMap]:
    """The copy of ``box`` by one TMA instruction, and its tensor map, for :func:`tma_box_figure`'s arguments.

    ``multicast`` blocks of a cluster copy a part of the box each, for all of them.

    >>> from tilewright.ir.types import F16
    >>> tma_plan(Layout((100, 72), (72, 1)), (8, 64), F16, 128, multicast=2)[1]
    tensor map of (72,100) x f16 at 0x0, strides (144) bytes, box (64,4), swizzle 128B
    """
    if swizzle not in SWIZZLE_SPANS:
        raise ArgumentError(f"TMA swizzles 32, 64 or 128 bytes, or not at all (0); not {swizzle!r}")
    plain = isinstance(tensor, Layout) and is_static(tensor) and isinstance(tensor.stride, tuple)
    if not plain or len(tensor) != 2 or 1 not in tensor.stride:
        raise ArgumentError(f"{tensor} is not a matrix with a contiguous mode, such as (100,72):(72,1)")
    inner = tensor.stride.index(1)
    line = box[inner] * element.bytes
    if line > (swizzle or line):
        raise ArgumentError(f"lines of the box have {line} bytes; a swizzle of {swizzle} bytes permutes {swizzle}")
    smem: Any = Layout(box, (1, box[0]) if inner == 0 else (box[1], 1))
    if swizzle:
        smem = ComposedLayout(Swizzle(SWIZZLE_SPANS.index(swizzle), 4, 3), 0, smem)
    plan = plan_of(tensor, smem, box, element, element, multicast)
    if problems := plan.problems():
        raise ConstraintError(problems[0])
    if plan.elements_per_instruction != box[0] * box[1]:
        raise ArgumentError(f"one instruction copies {format_tree(plan.whole_box)} elements, not a box of {box}")
    return plan, plan.template()(0)[0]


def _tensor_panel(cell: Any, own: Any, rows: int, columns: int, inside: Any) -> Panel:
    """The box and what surrounds it; lines and chunks of the tensor have their numbers."""
    down = range(min(0, min(own)[0]), max(rows, max(own)[0] + 1))
    lefts = [start for _, start in own]
    across = range(min(0, *lefts), max(columns, max(lefts) + 1))
    near = [n for n, line in enumerate(down) if min(own)[0] - MARGIN <= line <= max(own)[0] + MARGIN]
    window = ends(tuple(near), MOST_LINES)
    beside = tuple(n for n, start in enumerate(across) if min(lefts) - MARGIN <= start <= max(lefts) + MARGIN)
    cells = []
    for row in window:
        for column in beside:
            place = down[row], across[column]
            if place in own:
                cells.append(cell(row, column, *place, ""))
            elif inside(*place):
                cells.append(Cell(row, column, (), BLANK, f"line {place[0]}: not in the box"))
    return Panel(
        f"the tensor: lines of {columns} chunks of {CHUNK} bytes",
        len(down),
        len(across),
        tuple(cells),
        (0, 0),
        row_axis=Axis(tuple(map(str, down))),
        column_axis=Axis(tuple(map(str, across))),
        row_window=window,
        column_window=beside,
    )


def _memory_panel(cell: Any, own: Any, chunks: int, bits: int) -> Panel:
    """Shared memory in lines of 128 bytes; the swizzle acts on the numbers of chunks, as on byte addresses."""
    swizzle = Swizzle(bits, 0, 3)
    width = LINE // CHUNK
    lines = -(-len(own) // width)
    window = ends(range(lines), MOST_LINES)
    cells = []
    for (line, start), (i, j) in own.items():
        row, column = divmod(int(swizzle(i * chunks + j)), width)
        if row in window:
            cells.append(cell(row, column, line, start, f"; byte {(row * width + column) * CHUNK}"))
    return Panel(f"shared memory: lines of {LINE} bytes", lines, width, tuple(cells), (0, 1), row_window=window)
