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
    notes: list[str] = []
    for name, schedule in schedules:
        rows.append(name)
        rows_of_blocks = _block_rows(schedule, len(rows))
        rows += _row_labels(schedule)
        bars += [_bar(span, rows_of_blocks[span.block]) for span in schedule.spans]
        links += _links(schedule, rows_of_blocks)
        notes += _notes(name, schedule, rows_of_blocks, unit)
    used = {span.kind for _, schedule in schedules for span in schedule.spans}
    legend = tuple((colour, kind) for kind, colour in COLOURS.items() if kind in used)
    end = max(schedule.time for _, schedule in schedules)
    height = max(THIN, min(THICK, PIXELS * len(schedules) / len(rows)))
    return Timeline(
        title, tuple(rows), tuple(bars), tuple(links), 0.0, end, legend, (*notes, "modelled times"), unit, height
    )


def _row_labels(schedule: Schedule) -> list[str]:
    """A row for each place of each multiprocessor."""
    places = [f".{place}" for place in range(schedule.occupancy)] if schedule.occupancy > 1 else [""]
    return [f"SM {sm}{place}" for sm in range(schedule.sms) for place in places]


def _block_rows(schedule: Schedule, first: int) -> dict[int, int]:
    """The row of each block, where the rows of the schedule begin at ``first``."""
    return {span.block: first + span.sm * schedule.occupancy + span.place for span in schedule.spans}


def _bar(span: BlockSpan, row: int) -> Bar:
    return Bar(row, span.start, span.end, COLOURS[span.kind], "" if span.kind == WAIT else str(span.tile), remark(span))


def _links(schedule: Schedule, rows: dict[int, int]) -> list[TimelineLink]:
    """The arrows that are drawn, between rows that are near to each other."""
    return [
        TimelineLink(rows[arrow.block], arrow.time, rows[arrow.to_block], arrow.to_time)
        for arrow in schedule.arrows[:MOST_ARROWS]
        if 0 < abs(rows[arrow.block] - rows[arrow.to_block]) <= FARTHEST
    ]


def _notes(name: str, schedule: Schedule, rows: dict[int, int], unit: str) -> list[str]:
    notes = [
        f"{name}: {schedule.time:.4g} {unit}, quantisation efficiency {schedule.quantisation_efficiency:.1%}, "
        f"utilisation {schedule.utilisation:.1%}"
    ]
    if any(abs(rows[arrow.block] - rows[arrow.to_block]) > FARTHEST for arrow in schedule.arrows):
        notes.append(f"{name}: arrows over more than {FARTHEST} rows are left out; bars of one number add to one tile")
    return notes


def remark(span: BlockSpan) -> str:
    multiplies = f", {span.k_tiles} k tiles" if span.k_tiles else ""
    return f"{span.kind}: block {span.block}, tile {span.tile}{multiplies}, {span.start:.4g} to {span.end:.4g}"
