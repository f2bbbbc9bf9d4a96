"""A trace drawn against time: warps by role, TMA and tensor cores by stage, arrows from arrivals to waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tilewright.errors import ArgumentError
from tilewright.ir.target import WARPGROUP_WARPS
from tilewright.sim import Trace
from tilewright.sim.tracing import Arrow, Phase, Span, ended_by
from tilewright.sim.tracing.record import LaunchRecord
from tilewright.viz.canvas import Canvas
from tilewright.viz.colour import distinct
from tilewright.viz.picture import Picture
from tilewright.viz.windows import MOST_BYTES

RUN, WAIT, PLAIN = "#b9c3cd", "#ffffff", "#dfe4e9"
MOST_STALLS = 5  # that are named
ENDS = {
    "a warp": "#f6d5d0",
    "TMA": "#cfe3f5",
    "tensor cores": "#f7e7b4",
    "cp.async": "#d8ecd2",
    "tensor memory": "#e6d7ef",
}
"""What ends a wait, and the colour that says so."""
KINDS = {
    "load": "TMA loads",
    "multicast": "multicast to it",
    "wgmma": "wgmma",
    "tcgen05": "tcgen05",
    "tensor memory": "tensor memory",
    "store": "TMA stores",
    "cp.async": "cp.async",
    "ldmatrix": "ldmatrix",
    "mma": "mma.sync",
}
OF_A_WARP = ("ldmatrix", "mma", "tensor memory")  # one row shows those of the warps that are drawn


@dataclass(frozen=True, slots=True)
class Bar:
    """Something between two times in a row: its colour, what is written in it where it fits, a remark on hovering."""

    row: int
    start: float
    end: float
    fill: str
    label: str
    remark: str


@dataclass(frozen=True, slots=True)
class TimelineLink:
    """An arrow from a time in one row to a time in another."""

    row: int
    time: float
    to_row: int
    to_time: float


@dataclass(frozen=True, slots=True, repr=False)
class Timeline(Picture):
    """Rows of bars against time, in ``unit`` from ``start`` to ``end``; ``height`` is that of a row, in pixels."""

    title: str
    rows: tuple[str, ...]
    bars: tuple[Bar, ...]
    links: tuple[TimelineLink, ...]
    start: float
    end: float
    legend: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = field(default=())
    unit: str = "cycles"
    height: float = 22.0

    def draw(self, canvas: Canvas) -> None:
        from tilewright.viz.timeline_drawing import draw_timeline

        draw_timeline(canvas, self)

    def text(self) -> str:
        from tilewright.viz.timeline_drawing import timeline_to_text

        return timeline_to_text(self)

    def shortened(self, most_bytes: int = MOST_BYTES) -> Timeline:
        """The timeline itself, or with neighbouring short bars drawn as one, so that its SVG has ``most_bytes``."""
        timeline, short = self, (self.end - self.start) / 2048
        while len(timeline.svg()) > most_bytes and short < self.end - self.start:
            bars, links = joined(self.bars, short), self.links if short * 64 < self.end - self.start else ()
            note = f"shortened for the notebook: bars less than {short:.3g} {self.unit} apart are drawn as one"
            if len(links) < len(self.links):
                note += ", and no arrows"
            timeline = replace(self, bars=bars, links=links, notes=(*self.notes, note + "; a file shows all"))
            short *= 2
        return timeline

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Timeline {self.title!r}: {len(self.bars)} bars in {len(self.rows)} rows>"


def joined(bars: Sequence[Bar], short: float) -> tuple[Bar, ...]:
    """Bars of less than ``short`` put together with the one before them in their row, if that ended shortly before.

    >>> joined((Bar(0, 0.0, 1.0, "#ffffff", "a", "x"), Bar(0, 1.0, 2.0, "#ffffff", "b", "y")), 4.0)
    (Bar(row=0, start=0.0, end=2.0, fill='#ffffff', label='', remark='2 bars'),)
    """
    bars_joined: list[Bar] = []
    last: dict[int, int] = {}  # by row: index of its last bar in the result
    members: dict[int, int] = {}
    for bar in sorted(bars, key=lambda b: (b.row, b.start)):
        at = last.get(bar.row)
        before = None if at is None else bars_joined[at]
        near = before is not None and max(bar.end - bar.start, bar.start - before.end) < short
        if (
            at is not None
            and before is not None
            and near
            and (before.end - before.start < short or before.fill == bar.fill)
        ):
            members[at] = members.get(at, 1) + 1
            bars_joined[at] = replace(before, end=max(before.end, bar.end), label="", remark=f"{members[at]} bars")
        else:
            last[bar.row] = len(bars_joined)
            bars_joined.append(bar)
    return tuple(bars_joined)


def timeline(
    trace: Trace,
    *,
    launch: int = 0,
    blocks: Sequence[int] = (0,),
    start: float | None = None,
    end: float | None = None,
    title: str | None = None,
    barriers: bool = False,
    stalls: bool = False,
) -> Timeline:
    """Draw one launch of a trace.

    A row stands for the warps of a warpgroup with one role, and shows the first of them: grey where it runs, white
    where it waits, with the barrier's name. Below are the block's TMA loads, one row for each stage of the ring, and
    those that other blocks multicast to it; its wgmma by warpgroup, its tcgen05, its TMA stores, its ``cp.async`` by
    stage, and the first warp's ldmatrix, mma.sync and accesses to tensor memory. The colour of products is the stage
    that their operands come from. An arrow leads from the
    last arrival to the wait that it ends, and from a multicast load to each other block that it fills.

    Args:
        trace: from ``tilewright.sim.trace()``.
        launch: which of its launches.
        blocks: numbers of the blocks to draw.
        start: the first cycle to draw, of the launch's own; by default where the launch begins.
        end: the last one.
        title: instead of the kernel's name.
        barriers: draw a row for each barrier, too: its phases from the first arrival to the completion.
        stalls: let the colour of a wait say what ends it (a warp, TMA, tensor cores, tensor memory, cp.async), and
            name the longest stalls below.

    Raises:
        ArgumentError: a launch or block that the trace does not hold, or no time between start and end.

    >>> from tilewright import sim, viz
    >>> @cute.kernel
    ... def double(x: cute.Tensor):
    ...     i, _, _ = cute.arch.thread_idx()
    ...     x[i] = 2 * x[i]
    >>> @cute.jit
    ... def run(x: cute.Tensor):
    ...     double(x).launch(grid=(1, 1, 1), block=(64, 1, 1))
    >>> with sim.trace() as trace:
    ...     run(np.ones(64, np.float32))
    >>> viz.timeline(trace).rows
    ('warps 0-1',)
    """
    launched = _launch(trace, launch, blocks)
    first, last = _shown_time(launched, start, end)
    rows = _Rows(trace, launch, blocks, barriers, stalls)
    spans = [s for s in trace.spans if s.launch == launch and s.end > first and s.start < last]
    phases = [p for p in trace.phases if rows.has(p) and p.end > first and p.start < last]
    bars = [bar for span in spans if (bar := rows.bar(span)) is not None] + [rows.phase(p) for p in phases]
    arrows = [a for a in trace.arrows if a.launch == launch and first <= a.time and a.to_time <= last]
    links = [link for arrow in arrows if (link := rows.link(arrow, launched.start)) is not None]
    links += [link for span in spans if (link := rows.sent(span, first, launched.start)) is not None]
    worst = [f"stall: {stall}" for stall in trace.stalls(launch)[:MOST_STALLS]] if stalls else []
    return Timeline(
        launched.name if title is None else title,
        tuple(rows.labels),
        tuple(_shifted(bar, first, last, launched.start) for bar in bars),
        tuple(links),
        first - launched.start,
        last - launched.start,
        _legend(spans, bars, stalls),
        ("times in cycles of the model of tilewright.sim.tracing.costs", *worst),
    )


def _launch(trace: Trace, launch: int, blocks: Sequence[int]) -> LaunchRecord:
    """The launch; ArgumentError where the trace does not hold it or one of its blocks."""
    if not isinstance(trace, Trace):
        raise ArgumentError(f"an object of type {type(trace).__name__} has no timeline: sim.trace() gives a trace")
    if not 0 <= launch < len(trace.launches):
        raise ArgumentError(f"the trace has {len(trace.launches)} launches, and no launch {launch}")
    blocks_seen = {span.block for span in trace.spans if span.launch == launch}
    missing = [block for block in blocks if block not in blocks_seen]
    if missing or not blocks:
        raise ArgumentError(
            f"the launch has blocks 0 to {max(blocks_seen, default=0)}, and no block {missing or blocks}"
        )
    return trace.launches[launch]


def _shown_time(launched: LaunchRecord, start: float | None, end: float | None) -> tuple[float, float]:
    """The first and the last cycle to draw, of the trace, for cycles of the launch."""
    first = launched.start + (start or 0.0)
    last = launched.end if end is None else min(launched.end, launched.start + end)
    if last <= first:
        cycles = launched.end - launched.start
        raise ArgumentError(f"nothing to draw from cycle {start} to {end}: the launch takes {cycles:g}")
    return first, last


def _shifted(bar: Bar, first: float, last: float, origin: float) -> Bar:
    """The part of a bar that is drawn, in cycles of the launch, which begins at ``origin``."""
    return replace(bar, start=max(bar.start, first) - origin, end=min(bar.end, last) - origin)


def _legend(spans: Sequence[Span], bars: Sequence[Bar], stalls: bool) -> tuple[tuple[str, str], ...]:
    """The colours that are drawn, and their meanings."""
    stages = sorted({span.stage for span in spans if span.stage is not None and span.kind != "wait"})
    waits = [(colour, f"waits for {who}") for who, colour in ENDS.items()] if stalls else [(WAIT, "waits")]
    legend = [(RUN, "runs"), *waits, *((distinct(stage), f"stage {stage}") for stage in stages)]
    drawn = {bar.fill for bar in bars}
    return tuple(entry for entry in legend if entry[0] in drawn)


def _part(kind: str, warp: int, stage: int | None) -> int | None:
    """Which of the rows of an asynchronous unit: its stage, for wgmma its warpgroup; None where one row has all."""
    if kind in OF_A_WARP or kind == "tcgen05":
        return None
    return warp // WARPGROUP_WARPS if kind == "wgmma" else stage


class _Rows:
    """Which row shows which spans."""

    def __init__(self, trace: Trace, launch: int, blocks: Sequence[int], barriers: bool, stalls: bool) -> None:
        self.launch = launch
        self.ends = {(a.to_block, a.to_warp, a.to_time): a.kind for a in trace.arrows if a.launch == launch}
        self.stalls = stalls
        self.barriers: dict[tuple[int, str], int] = {}  # the row of each barrier
        self.labels: list[str] = []
        self.warps: dict[tuple[int, int], int] = {}  # the row of each warp, of those that are drawn
        self.first: set[tuple[int, int]] = set()  # the warps whose spans are drawn
        self.units: dict[tuple[int, str, int | None], int] = {}
        for block in blocks:
            prefix = f"block {block}: " if len(blocks) > 1 else ""
            mine = [s for s in trace.spans if (s.launch, s.block) == (launch, block)]
            self._add_warps(trace, launch, block, mine, prefix)
            for kind, name in KINDS.items():
                parts = {_part(kind, s.warp, s.stage) for s in mine if s.kind == kind}
                for part in sorted(parts, key=lambda p: -1 if p is None else p):
                    self.units[block, kind, part] = len(self.labels)
                    which = "" if part is None else f" {'warpgroup' if kind == 'wgmma' else 'stage'} {part}"
                    self.labels.append(f"{prefix}{name}{which}")
            named = {p.name for p in trace.phases if (p.launch, p.block) == (launch, block)} if barriers else ()
            for name in sorted(named):
                self.barriers[block, name] = len(self.labels)
                self.labels.append(f"{prefix}{name}")

    def _add_warps(self, trace: Trace, launch: int, block: int, spans: list[Span], prefix: str) -> None:
        numbers = sorted({s.warp for s in spans})
        roles = {w: trace.roles.get((launch, block, w), "") for w in numbers}
        if any(roles.values()):
            numbers = [w for w in numbers if roles[w]]
        together: dict[tuple[int, str], list[int]] = {}
        for w in numbers:
            together.setdefault((w // WARPGROUP_WARPS, roles[w].replace(", stores", "")), []).append(w)
        for warps in together.values():
            self.first.add((block, warps[0]))
            self.warps |= {(block, warp): len(self.labels) for warp in warps}
            who = f"warp {warps[0]}" if len(warps) == 1 else f"warps {warps[0]}-{warps[-1]}"
            role = roles[warps[0]]
            self.labels.append(f"{prefix}{who}{f' ({role})' if role else ''}")

    def row(self, kind: str, block: int, warp: int, stage: int | None) -> int | None:
        if kind in ("run", "wait"):
            return self.warps.get((block, warp))
        return self.units.get((block, kind, _part(kind, warp, stage)))

    def bar(self, span: Span) -> Bar | None:
        row = self.row(span.kind, span.block, span.warp, span.stage)
        warp_hidden = span.kind in ("run", "wait", *OF_A_WARP) and (span.block, span.warp) not in self.first
        if row is None or warp_hidden or (span.kind == "wgmma" and span.warp % WARPGROUP_WARPS):
            return None  # the four warps of a warpgroup do the same
        stage = span.stage if span.kind != "wait" else None
        fill = {"run": RUN, "wait": WAIT}.get(span.kind, PLAIN if stage is None else distinct(stage))
        if self.stalls and span.kind == "wait":
            fill = ENDS[ended_by(span, self.ends.get((span.block, span.warp, span.end)))]
        of_unit = "cp" if span.name.startswith("tcgen05.cp") else "" if stage is None else str(stage)
        label = span.name if span.kind == "wait" else of_unit
        what = "waits for " if span.kind == "wait" else ""
        phase = "" if span.phase is None else f", phase {span.phase}"
        size = f", {span.bytes} bytes" if span.bytes else ""
        line = f", {Path(span.loc.file).name}:{span.loc.line}" if span.loc else ""
        sender = "" if span.source is None else f" by block {span.source}"
        remark = f"{what}{span.name or 'runs'}{sender}: {span.start:g} to {span.end:g}{phase}{size}{line}"
        return Bar(row, span.start, span.end, fill, label, remark)

    def sent(self, span: Span, first: float, start: float) -> TimelineLink | None:
        """The arrow of a multicast: from the block that loads to another one that the load fills."""
        if span.kind != "multicast" or span.source is None or span.start < first:
            return None
        row = self.row("load", span.source, span.warp, span.stage)
        to_row = self.row("multicast", span.block, span.warp, span.stage)
        if row is None or to_row is None:
            return None
        return TimelineLink(row, span.start - start, to_row, span.start - start)

    def has(self, phase: Phase) -> bool:
        return phase.launch == self.launch and (phase.block, phase.name) in self.barriers

    def phase(self, phase: Phase) -> Bar:
        row = self.barriers[phase.block, phase.name]
        who = f"{len(phase.arrivals)} arrivals" if len(phase.arrivals) > 1 else "1 arrival"
        remark = f"{phase.name}, phase {phase.number}: {who} from {phase.start:g} to {phase.end:g}"
        return Bar(row, phase.start, phase.end, PLAIN, str(phase.number), remark)

    def link(self, arrow: Arrow, start: float) -> TimelineLink | None:
        row = self.row(arrow.kind, arrow.block, arrow.warp, arrow.stage)
        to_row = self.row("run", arrow.to_block, arrow.to_warp, None)
        if row is None or to_row is None or row == to_row or (arrow.to_block, arrow.to_warp) not in self.first:
            return None
        return TimelineLink(row, arrow.time - start, to_row, arrow.to_time - start)
