"""The order in which thread blocks visit the tiles of a matrix, drawn, and what it does for the L2 cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.errors import ArgumentError
from tilewright.gemm.schedule.raster import GroupedRaster, HilbertRaster, Raster
from tilewright.viz.colour import distinct
from tilewright.viz.colouring import numbers
from tilewright.viz.figure import Figure
from tilewright.viz.panels import Axis, Cell, Panel
from tilewright.viz.windows import cut

Tile = tuple[int, int]
MOST_TILES = 1 << 18
ORDERS = ("along_m", "along_n", "grouped_m", "grouped_n", "hilbert")


def raster_order(order: str, tiles: Tile, group: int = 8) -> list[Tile]:
    """The (m, n) tiles in the order in which blocks are started.

    Args:
        order: one of the rasters of ``tilewright.gemm``. ``along_m`` and ``along_n`` walk that mode first;
            ``grouped_m`` (``grouped_n``) visits strips of ``group`` tiles along M (N), crossing each strip at every
            step, which is CUTLASS's thread-block swizzle for ``grouped_n``; ``hilbert`` follows the Hilbert curve.
        tiles: how many tiles there are along M and N.
        group: the width of a strip.

    Raises:
        ArgumentError: an unknown order, or a size that is not positive.

    >>> raster_order("grouped_n", (2, 4), group=2)
    [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]
    """
    if not isinstance(tiles, tuple | list) or len(tiles) != 2:
        raise ArgumentError(f"no raster of {tiles!r} tiles: their numbers along M and N are needed")
    rows, columns = tiles
    if not all(hasattr(number, "__index__") for number in (rows, columns, group)):
        raise ArgumentError(f"no raster of {rows!r} x {columns!r} tiles in groups of {group!r}: all must be integers")
    if min(rows, columns, group) < 1:
        raise ArgumentError(f"no raster of {rows} x {columns} tiles in groups of {group}: all must be positive")
    if rows * columns > MOST_TILES:
        raise ArgumentError(f"a raster of {rows} x {columns} tiles is too large: it can have {MOST_TILES}")
    raster = _raster(order, tiles, group)
    return [raster.tile(index, rows, columns) for index in range(rows * columns)]


@dataclass(frozen=True)
class PanelReuse:
    """Operand panels (a tile row of A, a tile column of B) that blocks ask for, and that must come from memory."""

    asked: int
    fetched: int

    @property
    def factor(self) -> float:
        """How often a fetched panel is used."""
        return self.asked / self.fetched


def l2_reuse(order: Sequence[Tile], concurrent: int) -> PanelReuse:
    """Count panels under the model that the blocks running together share what the L2 holds, and waves share nothing.

    Args:
        order: tiles in the order in which blocks start.
        concurrent: blocks that run at the same time (SMs x blocks per SM).

    >>> l2_reuse(raster_order("along_n", (4, 4)), concurrent=4), l2_reuse(raster_order("hilbert", (4, 4)), concurrent=4)
    (PanelReuse(asked=32, fetched=20), PanelReuse(asked=32, fetched=16))
    """
    if not hasattr(concurrent, "__index__") or concurrent < 1:
        raise ArgumentError(f"{concurrent} blocks cannot run together")
    fetched = 0
    for start in range(0, len(order), concurrent):
        wave = order[start : start + concurrent]
        fetched += len({m for m, _ in wave}) + len({n for _, n in wave})
    return PanelReuse(2 * len(order), fetched)


def raster_figure(order: str | Sequence[Tile], tiles: Tile, *, group: int = 8, concurrent: int = 132) -> Figure:
    """Draw the order of thread blocks: the number of each tile, coloured by its wave, and arrows from tile to tile.

    Args:
        order: a name that :func:`raster_order` knows, or the (m, n) tiles themselves in the order of the blocks.
        tiles: how many tiles there are along M and N.
        group: the width of a strip, for the orders that have strips.
        concurrent: blocks that run at the same time: a wave.

    Raises:
        ArgumentError: an unknown order, a size that is not positive, or a tile of ``order`` that is not
            among ``tiles``.

    >>> print(raster_figure("grouped_m", (2, 4), group=2, concurrent=4).text())
    grouped_m, group 2, 2 x 4 tiles
       0  1  2  3
    0  0  2  4  6
    1  1  3  5  7
       wave 0
       wave 1
    L2: 4 blocks at a time use each fetched panel 2.00 times (16 asked for, 8 fetched)
    L2: in the order along_n they would use it 1.60 times
    """
    if isinstance(order, str):
        sequence = raster_order(order, tiles, group)
        name = f"{order}, group {group}" if order.startswith("grouped") else order
    else:
        sequence, name = list(order), "tiles in the given order"
        _check_among(sequence, raster_order("along_n", tiles))
    reuse, plain = l2_reuse(sequence, concurrent), l2_reuse(raster_order("along_n", tiles), concurrent)
    rows, columns = cut(*tiles)
    drawn = frozenset(rows), frozenset(columns)
    waves = -(-len(sequence) // concurrent)
    cells = []
    for number, (m, n) in enumerate(sequence):
        if m in drawn[0] and n in drawn[1]:
            wave = number // concurrent
            remark = f"tile ({m},{n}): block {number}, wave {wave}"
            cells.append(Cell(m, n, (str(number),), distinct(wave), remark))
    legend = numbers("wave ", waves)
    figures = (
        f"L2: {concurrent} blocks at a time use each fetched panel {reuse.factor:.2f} times "
        f"({reuse.asked} asked for, {reuse.fetched} fetched)",
        f"L2: in the order along_n they would use it {plain.factor:.2f} times",
    )
    down, across = (Axis(groups=((0, tiles[at], f"tiles along {'MN'[at]}"),)) for at in (0, 1))
    panel = Panel(
        "",
        *tiles,
        tuple(cells),
        row_axis=down,
        column_axis=across,
        row_window=rows,
        column_window=columns,
        path=tuple(sequence),
    )
    return Figure(f"{name}, {tiles[0]} x {tiles[1]} tiles", (panel,), legend, figures)


def _check_among(sequence: list[Tile], every: list[Tile]) -> None:
    """Refuse tiles that the matrix does not have, or an order of none."""
    if not sequence:
        raise ArgumentError("order is empty: it needs the (m, n) of a tile at least")
    choices = set(every)
    for tile in sequence:
        if tile not in choices:
            raise ArgumentError(
                f"order: {tile!r} is not among the {len(every)} tiles, of which {every[-1]} is the last"
            )


def _raster(order: str, tiles: Tile, group: int) -> Raster:
    """The raster that a kernel of the GEMM library takes its tile from."""
    rasters: dict[str, Raster] = {
        "along_m": GroupedRaster(tiles[0], "m"),
        "along_n": GroupedRaster(tiles[1], "n"),
        "grouped_m": GroupedRaster(group, "m"),
        "grouped_n": GroupedRaster(group, "n"),
        "hilbert": HilbertRaster(),
    }
    if order not in rasters:
        raise ArgumentError(f"unknown raster order {order!r}; there are {', '.join(ORDERS)}")
    return rasters[order]
