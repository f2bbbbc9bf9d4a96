"""Schedules of thread blocks as Gantt charts: multiprocessors against time."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.errors import ArgumentError
from tilewright.gemm.schedule.blocks import DATA_PARALLEL, REDUCTION, SPLIT_K, STREAM_K
from tilewright.gemm.schedule.gantt import EPILOGUE, EXCHANGE, WAIT, BlockSpan, Schedule
from tilewright.viz.timeline_figure import Bar, Timeline, TimelineLink

COLOURS = {
    DATA_PARALLEL: "#9cc3ea",
    STREAM_K: "#f0c893",
    SPLIT_K: "#9cc685",
    REDUCTION: "#c4aece",
    EXCHANGE: "#d98388",
    EPILOGUE: "#bcc3ca",
    WAIT: "#ffffff",
}
PIXELS, THIN, THICK = 420.0, 3.0, 22.0  # of the rows of one schedule, of one row at least and at most
MOST_ARROWS = 400
FARTHEST = 2  # rows that an arrow crosses at the most


def gantt(schedules: Sequence[tuple[str, Schedule]], title: str = "Schedules", unit: str = "us") -> Timeline:
    """Schedules, each with its name, one below the other on one scale of time.

    A row stands for one place of a multiprocessor; bars are coloured by what the block does, with the number of the
    output tile where it fits. An arrow leads from stored sums to where they are added, if that is at most two rows
    away: longer ones would hide the bars, whose numbers say the same. The name of a schedule stands above its rows;
    below all are its time, its quantisation efficiency (how evenly k tiles are spread over places) and its utilisation
    (the part of all places' time in which they multiply).

    Raises:
        ArgumentError: no schedule to draw, or none in which anything happens.
    """
    if not any(schedule.spans for _, schedule in schedules):
        raise ArgumentError("there is no schedule with a block to draw")
    rows: list[str] = []
    bars: list[Bar] = []
    links: list[TimelineLink] = []
    notes = []
    for name, schedule in schedules:
        rows.append(name)
        notes.append(
            f"{name}: {schedule.time:.4g} {unit}, quantisation efficiency {schedule.quantisation_efficiency:.1%}, "
            f"utilisation {schedule.utilisation:.1%}"
        )
        first = len(rows)
        several = schedule.occupancy > 1
        rows += [
            f"SM {sm}" + (f".{place}" if several else "")
            for sm in range(schedule.sms)
            for place in range(schedule.occupancy)
        ]

        def row(span: BlockSpan, first: int = first, places: int = schedule.occupancy) -> int:
            return first + span.sm * places + span.place

        bars += [
            Bar(row(s), s.start, s.end, COLOURS[s.kind], "" if s.kind == WAIT else str(s.tile), remark(s))
            for s in schedule.spans
        ]
        where = {span.block: row(span) for span in schedule.spans}
        links += [
            TimelineLink(where[a.block], a.time, where[a.to_block], a.to_time)
            for a in schedule.arrows[:MOST_ARROWS]
            if 0 < abs(where[a.block] - where[a.to_block]) <= FARTHEST
        ]
        if any(abs(where[a.block] - where[a.to_block]) > FARTHEST for a in schedule.arrows):
            far = f"{name}: arrows over more than {FARTHEST} rows are left out; bars of one number add to one tile"
            notes.append(far)
    used = {span.kind for _, schedule in schedules for span in schedule.spans}
    legend = tuple((colour, kind) for kind, colour in COLOURS.items() if kind in used)
    end = max(schedule.time for _, schedule in schedules)
    height = max(THIN, min(THICK, PIXELS * len(schedules) / len(rows)))
    return Timeline(
        title, tuple(rows), tuple(bars), tuple(links), 0.0, end, legend, (*notes, "modelled times"), unit, height
    )


def remark(span: BlockSpan) -> str:
    multiplies = f", {span.k_tiles} k tiles" if span.k_tiles else ""
    return f"{span.kind}: block {span.block}, tile {span.tile}{multiplies}, {span.start:.4g} to {span.end:.4g}"
