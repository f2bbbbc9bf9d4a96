"""A cluster whose blocks multicast their parts of A and B: masks, what a block receives, who frees its buffer."""

from __future__ import annotations

from tilewright.errors import ArgumentError
from tilewright.lang.tensors.algebra import make_layout_image_mask
from tilewright.layout import Layout
from tilewright.viz.colour import BLANK, distinct
from tilewright.viz.figure import Figure
from tilewright.viz.panels import Cell, Panel

MOST_BLOCKS = 16  # of a cluster


def cluster_figure(cluster: tuple[int, int], block: tuple[int, int] = (0, 0), *, consumer_warps: int = 4) -> Figure:
    """Draw who sends what to whom in a GEMM whose blocks multicast A along N and B along M.

    Above: the mask of each block's copies, a colour for the blocks that share a tile. Below: what ``block`` receives,
    and which warps arrive at its empty barrier before it may load again.

    Args:
        cluster: blocks along M and N.
        block: the coordinate of the block that the lower panels are about.
        consumer_warps: warps of a block that read the tiles; each arrives once per block that sent to it.

    Raises:
        ArgumentError: more than 16 blocks, sizes that are not positive integers, or a block outside the cluster.

    >>> figure = cluster_figure((2, 2))
    >>> [cell.lines for cell in figure.panels[0].cells]
    [('rank 0', '0b0101'), ('rank 2', '0b0101'), ('rank 1', '0b1010'), ('rank 3', '0b1010')]
    >>> figure.notes[-1]
    'the empty barrier of rank 0 expects 12 arrivals: (2 + 2 - 1) blocks x 4 warps'
    """
    rows, columns = _checked(cluster, block, consumer_warps)
    ranks = Layout((rows, columns, 1))
    places = [(m, n) for m in range(rows) for n in range(columns)]
    masks = {at: tuple(_mask(ranks, at, mode) for mode in (1, 0)) for at in places}
    own = 1 << ranks((*block, 0))

    def panel(title: str, where: tuple[int, int], lines: dict[tuple[int, int], tuple[str, int | None]]) -> Panel:
        cells = []
        for at in places:
            line, hue = lines[at]
            fill = BLANK if hue is None else distinct(hue)
            cells.append(Cell(*at, (f"rank {ranks((*at, 0))}", line), fill, f"block {at}: {line}"))
        return Panel(title, rows, columns, tuple(cells), where)

    def binary(mask: int) -> str:
        return f"0b{mask:0{rows * columns}b}"

    def received(at: tuple[int, int]) -> tuple[str, int | None]:
        sent = [name for name, mask in zip("AB", masks[at], strict=True) if mask & own]
        return (" and ".join(sent) or "-", len(sent) if sent else None)

    def arrivals(at: tuple[int, int]) -> tuple[str, int | None]:
        arrives = at == block or any(mask >> ranks((*at, 0)) & 1 for mask in masks[block])
        return (f"{consumer_warps} warps" if arrives else "-", 1 if arrives else None)

    who = f"rank {ranks((*block, 0))}"
    panels = (
        panel("A: mask of each block's copy", (0, 0), {at: (binary(masks[at][0]), at[0]) for at in places}),
        panel("B: mask of each block's copy", (0, 1), {at: (binary(masks[at][1]), at[1]) for at in places}),
        panel(f"what each block sends to {who}", (1, 0), {at: received(at) for at in places}),
        panel(f"who arrives at the empty barrier of {who}", (1, 1), {at: arrivals(at) for at in places}),
    )
    count = sum(arrivals(at)[1] is not None for at in places)
    notes = (
        "rows: blocks along M, columns: along N; bit r of a mask is the block of rank r",
        f"a block of a row loads 1/{columns} of the row's tile of A, a block of a column 1/{rows} of B's",
        f"the empty barrier of {who} expects {count * consumer_warps} arrivals: "
        f"({columns} + {rows} - 1) blocks x {consumer_warps} warps",
    )
    return Figure(f"multicast in a cluster of {rows} x {columns} blocks", panels, notes=notes)


def _mask(ranks: Layout, at: tuple[int, int], mode: int) -> int:
    """The ranks that differ from a block in one mode only; the cluster may have 16 blocks, the mask has 16 bits."""
    return int(make_layout_image_mask(ranks, (*at, 0), mode=mode).value) & 0xFFFF


def _checked(cluster: tuple[int, int], block: tuple[int, int], warps: int) -> tuple[int, int]:
    if len(cluster) != 2 or len(block) != 2:
        raise ArgumentError(f"a cluster {cluster!r} with block {block!r}: both need a number along M and one along N")
    if not all(hasattr(n, "__index__") for n in (*cluster, *block, warps)) or min(*cluster, warps) < 1:
        raise ArgumentError(
            f"a cluster of {cluster!r} blocks with {warps!r} consumer warps: positive integers are needed"
        )
    if cluster[0] * cluster[1] > MOST_BLOCKS:
        raise ArgumentError(f"a cluster of {cluster[0]} x {cluster[1]} blocks: at most {MOST_BLOCKS} are possible")
    if not all(0 <= at < extent for at, extent in zip(block, cluster, strict=True)):
        raise ArgumentError(f"block {block} is outside a cluster of {cluster[0]} x {cluster[1]} blocks")
    return cluster[0], cluster[1]
