"""What a trace holds: spans of time, arrows from those who arrive to those who wait, and who played which role."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from tilewright.ir.core import Location
from tilewright.layout.drawable import Drawable
from tilewright.sim.tracing.clocks import WaitSource
from tilewright.sim.tracing.perfetto import write
from tilewright.sim.tracing.stalls import Stall, stalls

KINDS = (
    *("run", "wait", "load", "multicast", "store", "cp.async"),
    *("wgmma", "tcgen05", "tensor memory", "ldmatrix", "mma"),
)


@dataclass(frozen=True, slots=True)
class Span:
    """Something that takes time, in cycles of the model (:mod:`tilewright.sim.tracing.costs`).

    ``kind``: ``run`` and ``wait`` of a warp; ``load`` and ``store`` by TMA, until they have landed;
    ``multicast``, a load of another block of the cluster, ``source``, that fills this one too; ``wgmma``, a group on
    the tensor cores; ``tcgen05``, products, or copies to tensor memory, up to a commit, in both blocks of a pair
    (``source``: the one that issues); ``tensor memory``, a load or store of a warp there; ``cp.async``, a copy;
    ``ldmatrix`` and ``mma``, these instructions of a warp. ``block`` is its number in the grid, ``warp`` the one that
    runs, waits or has issued. ``name``: what is waited for, or the instruction. ``stage``: of the ring of mbarriers
    that TMA fills, or of the shared memory that ``cp.async`` fills, where one is meant. ``begun``: when what is
    asynchronous was issued. ``phase``: of the mbarrier, 0 for the first, that a wait waits for.
    """

    kind: str
    launch: int
    block: int
    warp: int
    start: float
    end: float
    name: str = ""
    stage: int | None = None
    loc: Location | None = None
    begun: float | None = None
    bytes: int = 0
    phase: int | None = None
    source: int | None = None

    @property
    def cycles(self) -> float:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Arrow:
    """The last arrival that a wait waited for: ``kind`` ``run`` (a warp arrived) or one of the asynchronous kinds."""

    launch: int
    kind: str
    block: int
    warp: int
    time: float
    to_block: int
    to_warp: int
    to_time: float
    name: str = ""
    stage: int | None = None


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of a barrier, from its first arrival to its completion. ``name``: ``full[0]``, ``mbarrier at 64``,
    ``barrier 1``, ``barrier of the cluster``; ``number``: how many were complete before; ``arrivals``: when who came
    (``kind`` ``run``: a warp, else an asynchronous unit), in order of time."""

    launch: int
    block: int
    name: str
    number: int
    arrivals: tuple[WaitSource, ...]

    @property
    def start(self) -> float:
        return self.arrivals[0].time

    @property
    def end(self) -> float:
        return self.arrivals[-1].time


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """One kernel: its name, grid and block, and the cycles between which it ran."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    start: float
    end: float


@dataclass(repr=False)
class Trace(Drawable):
    """The launches inside a ``with tilewright.sim.trace() as trace`` block, one after another.

    ``roles``: for each (launch, block, warp) what it does: ``loads``, ``multiplies``, ``stores``, joined by commas;
    ``reads``: it only waits for what TMA brings, or loads tensor memory. Warps that do none of it are left out.
    ``phases``: those of all barriers.
    """

    launches: list[LaunchRecord] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    roles: dict[tuple[int, int, int], str] = field(default_factory=dict)
    phases: list[Phase] = field(default_factory=list)

    def _picture(self) -> Any:
        return import_module("tilewright.viz").timeline(self, launch=len(self.launches) - 1)

    def __str__(self) -> str:
        many = "1 launch" if len(self.launches) == 1 else f"{len(self.launches)} launches"
        lines = [f"{many}, {self.cycles:g} cycles of the model"]
        for number, one in enumerate(self.launches):
            lines.append(f"  {one.name}: grid {one.grid}, block {one.block}, cycles {one.start:g} to {one.end:g}")
            lines += [f"    stall: {stall}" for stall in self.stalls(number)[:3]]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Trace of {len(self.launches)} launches: {len(self.spans)} spans, {self.cycles:g} cycles>"

    @property
    def cycles(self) -> float:
        """When the last launch ended."""
        return self.launches[-1].end if self.launches else 0.0

    def of(self, kinds: str | Iterable[str], block: int | None = None, warp: int | None = None) -> list[Span]:
        """The spans of these kinds, of one block or warp."""
        chosen = {kinds} if isinstance(kinds, str) else set(kinds)
        return [
            span
            for span in self.spans
            if span.kind in chosen and block in (None, span.block) and warp in (None, span.warp)
        ]

    def stalls(self, launch: int | None = None) -> list[Stall]:
        """What warps wait for and how long, the longest first: by role, by what they wait for and by what ends it.

        >>> Trace().stalls()
        []
        """
        return stalls(self, launch)

    def to_perfetto(self, path: str | Path) -> Path:
        """Write the trace as Chrome's JSON, which https://ui.perfetto.dev and chrome://tracing show; a cycle is a
        nanosecond there. A process is a block: its warps with their roles, its asynchronous units, its barriers (a span
        for each phase, a mark for each arrival), and the numbers of waiting warps and of bytes in flight."""
        return write(self, Path(path))


def overlap(one: Iterable[Any], other: Iterable[Any]) -> float:
    """Cycles in which a span of ``one`` and a span of ``other`` both run."""
    total, edges = 0.0, []
    for side, spans in enumerate((one, other)):
        for span in spans:
            edges += [(span.start, 1, side), (span.end, -1, side)]
    active, before = [0, 0], 0.0
    for time, step, side in sorted(edges):
        total += (time - before) if active[0] and active[1] else 0.0
        active[side] += step
        before = time
    return total
