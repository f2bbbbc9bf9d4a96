"""Why Stream-K was planned as it is: every number of blocks that the cost model tried, with what it saves."""

from __future__ import annotations

from tilewright.errors import ArgumentError
from tilewright.gemm.schedule.streamk_blocks import candidates, get_blocks, trials
from tilewright.viz.colour import BLANK, distinct
from tilewright.viz.figure import Figure
from tilewright.viz.panels import Axis, Cell, Panel, swatches
from tilewright.viz.windows import Window

COLUMNS = ("tiles", "blocks", "data-parallel", "Stream-K", "saved")
AROUND = 6  # rows above and below the chosen one


def streamk_plan_figure(tiles: int, k_tiles: int, multiprocessors: int, occupancy: int = 1) -> Figure:
    """Draw the plans between which the cost model chooses, a row each, and the one it takes in colour.

    A row says how many tiles Stream-K would take, over how many blocks, how many k-iterations in a row these tiles
    cost as data-parallel blocks and as Stream-K (fixup included), and the difference.

    Args:
        tiles: output tiles.
        k_tiles: k-iterations of one tile.
        multiprocessors: of the GPU, each with room for ``occupancy`` blocks.

    Raises:
        ArgumentError: a number is not a positive integer.

    >>> print(streamk_plan_figure(9, 64, 8).text())
    9 tiles of 64 k-iterations on 8 multiprocessors
       tiles         blocks         data-parallel  Stream-K       saved
    0  9             8              128            80             48
       chosen
    Stream-K: 9 tiles over 8 blocks; data-parallel: 0 tiles
    """
    numbers = (tiles, k_tiles, multiprocessors, occupancy)
    if not all(hasattr(number, "__index__") and number > 0 for number in numbers):
        raise ArgumentError(f"no plan for {numbers}: tiles, k tiles, multiprocessors, occupancy are positive integers")
    dp_tiles, chosen = get_blocks(tiles, k_tiles, multiprocessors, occupancy)
    rows = [
        (candidate.tiles, *trial, trial.data_parallel - trial.stream_k)
        for candidate in candidates(tiles, multiprocessors, occupancy)
        for trial in trials(candidate, k_tiles, multiprocessors)
    ]
    taken = (tiles - dp_tiles, chosen)
    drawn = _near([row[:2] for row in rows], taken)
    cells = tuple(
        Cell(i, j, (str(rows[i][j]),), distinct(0) if rows[i][:2] == taken else BLANK)
        for i in drawn
        if i < len(rows)
        for j in range(len(COLUMNS))
    )
    panel = Panel("", max(len(rows), 1), len(COLUMNS), cells, column_axis=Axis(COLUMNS), row_window=drawn)
    what = f"Stream-K: {taken[0]} tiles over {chosen} blocks; data-parallel: {dp_tiles} tiles"
    if not rows:
        what = f"data-parallel: the {tiles} tiles fill whole waves, or have too few k-iterations to share"
    legend = swatches([(distinct(0), "chosen")]) if chosen else ()
    title = f"{tiles} tiles of {k_tiles} k-iterations on {multiprocessors} multiprocessors"
    return Figure(title, (panel,), legend, (what,))


def _near(plans: list[tuple[int, int]], taken: tuple[int, int]) -> Window:
    """The rows that are drawn: the first, the last, and those around the one that is taken."""
    last = max(len(plans) - 1, 0)
    middle = plans.index(taken) if taken in plans else 0
    return tuple(sorted({0, last, *range(max(middle - AROUND, 0), min(middle + AROUND, last) + 1)}))
