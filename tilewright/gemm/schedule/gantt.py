"""When each thread block of a launch runs, and where: a model, for pictures and for comparisons without a GPU.

Blocks start in the order of the grid, each as soon as a place on a multiprocessor is free, on the one with most free
places. A piece takes its k tiles' time. A piece that does not finish its tile stores its sums; the one that does waits
for all earlier ones of the tile, loads their sums, and writes the tile. Serial split-K hands on from slice to slice.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.errors import ArgumentError
from tilewright.gemm.schedule.blocks import REDUCTION, SPLIT_K, Block, Piece

WAIT, EXCHANGE, EPILOGUE = "waits", "exchange of sums", "epilogue"


@dataclass(frozen=True)
class Costs:
    """Microseconds of one k tile, of storing or loading a tile's sums, of the end of a tile, of starting a block."""

    k_tile: float = 1.0
    exchange: float = 2.0
    epilogue: float = 2.0
    start: float = 0.0


@dataclass(frozen=True)
class BlockSpan:
    """What one block does between two times on place ``place`` of multiprocessor ``sm``. ``kind`` is the block's, or
    waiting, exchanging sums, or the end of a tile."""

    kind: str
    block: int
    tile: int
    sm: int
    place: int
    start: float
    end: float
    k_tiles: int = 0


@dataclass(frozen=True)
class SumTransfer:
    """Sums that block ``block`` had stored at ``time``, and that ``to_block`` began to load at ``to_time``."""

    block: int
    time: float
    to_block: int
    to_time: float
    tile: int


@dataclass(frozen=True)
class Schedule:
    """All that happens in one launch."""

    spans: tuple[BlockSpan, ...]
    arrows: tuple[SumTransfer, ...]
    sms: int
    occupancy: int
    time: float

    @property
    def quantisation_efficiency(self) -> float:
        """The k tiles of the product, against those that could have been multiplied at all places while the busiest
        one works: what is lost because the work does not divide."""
        work: dict[tuple[int, int], int] = {}
        for span in self.spans:
            work[span.sm, span.place] = work.get((span.sm, span.place), 0) + span.k_tiles
        most = max(work.values(), default=0)
        return sum(work.values()) / (most * self.sms * self.occupancy) if most else 1.0

    @property
    def utilisation(self) -> float:
        """The part of all places' time in which they multiply."""
        busy = sum(span.end - span.start for span in self.spans if span.k_tiles)
        return busy / (self.time * self.sms * self.occupancy) if self.time else 1.0


def schedule(blocks: Sequence[Block], sms: int, occupancy: int = 1, costs: Costs | None = None) -> Schedule:
    """The schedule of ``blocks`` on ``sms`` multiprocessors that hold ``occupancy`` blocks each.

    Nine tiles on eight multiprocessors take two waves as one block each, of which the second is almost empty:

    >>> from tilewright.gemm.schedule.blocks import data_parallel, stream_k
    >>> from tilewright.gemm.schedule.streamk import StreamK
    >>> plan = StreamK.of((384, 384, 2048), (128, 128, 32), multiprocessors=8, occupancy=1, fragments=1)
    >>> found = [schedule(blocks, 8) for blocks in (data_parallel(9, 64), stream_k(plan))]
    >>> [(f"{one.quantisation_efficiency:.3f}", one.time) for one in found]
    [('0.562', 132.0), ('1.000', 78.0)]
    """
    if sms < 1 or occupancy < 1:
        raise ArgumentError(f"a schedule takes at least one multiprocessor and block, not {sms} and {occupancy}")
    machine = _Machine(list(blocks), sms, occupancy, costs or Costs())
    for number, block in enumerate(machine.blocks):
        machine.run(number, block)
    end = max((span.end for span in machine.spans), default=0.0)
    return Schedule(tuple(machine.spans), tuple(machine.arrows), sms, occupancy, end)


class _Machine:
    """Blocks only wait for blocks that started before them, so they can be timed one after the other."""

    def __init__(self, blocks: list[Block], sms: int, occupancy: int, costs: Costs) -> None:
        self.blocks, self.costs = blocks, costs
        self.free = [(0.0, place, sm) for place in range(occupancy) for sm in range(sms)]
        self.spans: list[BlockSpan] = []
        self.arrows: list[SumTransfer] = []
        self.stored: dict[int, list[tuple[float, int]]] = {}  # by tile: when which block had stored sums
        self.reduced = Counter(block.pieces[0].tile for block in blocks if block.kind == REDUCTION)
        last: dict[int, int] = {}
        for block in blocks:
            for piece in block.pieces:
                last[piece.tile] = max(last.get(piece.tile, 0), piece.end)
        self.last = last

    def run(self, number: int, block: Block) -> None:
        """Put a block on the multiprocessor that is free first, and its pieces one after the other from then on."""
        if not block.pieces:
            return
        time, place, sm = heapq.heappop(self.free)
        time += self.costs.start

        def span(kind: str, tile: int, until: float, k_tiles: int = 0) -> float:
            if until > time or k_tiles:
                self.spans.append(BlockSpan(kind, number, tile, sm, place, time, until, k_tiles))
            return until

        for piece in block.pieces:
            if piece.end > piece.begin:
                k_tiles = piece.end - piece.begin
                time = span(block.kind, piece.tile, time + k_tiles * self.costs.k_tile, k_tiles)
            waits = self.awaited(block, piece)
            if waits:
                time = span(WAIT, piece.tile, max(time, *(stored for stored, _ in waits)))
                self.arrows += [SumTransfer(other, stored, number, time, piece.tile) for stored, other in waits]
                time = span(EXCHANGE, piece.tile, time + len(waits) * self.costs.exchange * self.part(block))
            if self.finishes(block, piece):
                time = span(EPILOGUE, piece.tile, time + self.costs.epilogue * self.part(block))
            else:
                time = span(EXCHANGE, piece.tile, time + self.costs.exchange)
                self.stored.setdefault(piece.tile, []).append((time, number))
        heapq.heappush(self.free, (time, place, sm))

    def awaited(self, block: Block, piece: Piece) -> list[tuple[float, int]]:
        """Whose sums the block loads for the tile."""
        stored = self.stored.get(piece.tile, [])
        if block.kind == SPLIT_K:
            return stored[-1:]
        return stored if self.finishes(block, piece) and (piece.begin > 0 or block.kind == REDUCTION) else []

    def finishes(self, block: Block, piece: Piece) -> bool:
        if block.kind == REDUCTION:
            return True
        return piece.end == self.last[piece.tile] and not (piece.tile in self.reduced and piece.begin > 0)

    def part(self, block: Block) -> float:
        """How much of a tile the block adds up and writes: a reduction block one fragment."""
        return 1.0 / self.reduced[block.pieces[0].tile] if block.kind == REDUCTION else 1.0
