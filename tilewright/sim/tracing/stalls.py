"""Stalls: the waits of a trace, added up by waiting warp, what it waits for, and what ends the wait."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.ir.core import Location
from tilewright.reports import Shown

if TYPE_CHECKING:
    from tilewright.sim.tracing.record import Span, Trace

ENDED = {
    "run": "a warp",
    "load": "TMA",
    "store": "TMA",
    "wgmma": "tensor cores",
    "tcgen05": "tensor cores",
    "cp.async": "cp.async",
}

WAITS = {"wgmma": "tensor cores", "tcgen05.wait": "tensor memory", "cp.async.wait": "cp.async"}
"""What instructions that wait for a group wait for, by how they begin; the others wait for TMA."""


@dataclass(frozen=True, slots=True)
class Stall(Shown):
    """Waits of one kind.

    Attributes:
        role: of the warps that wait, as the trace names it; empty for warps without one.
        name: what they wait for.
        ended_by: ``a warp`` (its arrival), ``TMA``, ``tensor cores``, ``tensor memory``, ``cp.async``; by what came
            last.
        loc: the Python line.
        cycles: of all waits together.
        share: the part of the warps' time (from the launch's start to its end) that this is.
        count: of waits.
    """

    role: str
    name: str
    ended_by: str
    loc: Location | None
    cycles: float
    share: float
    count: int

    def __str__(self) -> str:
        where = f" at {self.loc}" if self.loc is not None else ""
        who = self.role or "no role"
        part = f"{100 * self.share:.1f} %"
        return f"{part} of the time of warps that play {who!r}: {self.name}, ended by {self.ended_by}{where}"


def stalls(trace: Trace, launch: int | None) -> list[Stall]:
    # An arrow ends where and when the wait that it ended does.
    ends = {(a.launch, a.to_block, a.to_warp, a.to_time): a.kind for a in trace.arrows}
    cycles: dict[tuple[str, str, str, Location | None], float] = defaultdict(float)
    counts: dict[tuple[str, str, str, Location | None], int] = defaultdict(int)
    for span in trace.of("wait"):
        if launch in (None, span.launch):
            by = ended_by(span, ends.get((span.launch, span.block, span.warp, span.end)))
            key = (trace.roles.get((span.launch, span.block, span.warp), ""), _place(span.name), by, span.loc)
            cycles[key] += span.cycles
            counts[key] += 1
    time = _time(trace, launch)
    result = [Stall(*key, total, total / time[key[0]], counts[key]) for key, total in cycles.items()]
    return sorted(result, key=lambda stall: -stall.cycles)


def ended_by(wait: Span, kind: str | None) -> str:
    """What ends a wait: the arrival of this ``kind`` (of an arrow), or without one the agent whose group it waits
    for."""
    if kind is not None:
        return ENDED[kind]
    return next((agent for start, agent in WAITS.items() if wait.name.startswith(start)), "TMA")


def _place(name: str) -> str:
    """The stages of a ring are one place."""
    return name.split("[")[0] if name.endswith("]") else name


def _time(trace: Trace, launch: int | None) -> dict[str, float]:
    """The time of all warps of a role together."""
    warps = {(s.launch, s.block, s.warp) for s in trace.of(("run", "wait")) if launch in (None, s.launch)}
    time: dict[str, float] = defaultdict(float)
    for who in warps:
        launched = trace.launches[who[0]]
        time[trace.roles.get(who, "")] += launched.end - launched.start
    return time
