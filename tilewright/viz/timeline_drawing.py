"""Timelines on a canvas and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tilewright.viz.canvas import BASE, GAP, LINE, MARGIN, PADDING, TEXTS, Canvas
from tilewright.viz.colour import text_colour
from tilewright.viz.figure_drawing import draw_legend, draw_notes

if TYPE_CHECKING:
    from tilewright.viz.timeline_figure import Bar, Timeline

WIDTH = 960.0  # pixels from the first to the last cycle
FULL = 0.73  # how much of a row a bar takes
COLUMNS = 96  # characters from the first to the last cycle
CAPTION, TITLE, SMALL = (TEXTS[kind].size for kind in ("caption", "title", "bar"))


def ticks(start: float, end: float) -> list[float]:
    """Six to fifteen round numbers between the two."""
    step = 1.0
    while (end - start) / step > 15:
        step *= 2.5 if str(int(step)).startswith("2") else 2.0
    while end - start < 4 * step:  # times of less than a few units
        step /= 2
    first = -(-start // step) * step
    return [first + i * step for i in range(int((end - first) // step) + 1)]


def draw_timeline(canvas: Canvas, timeline: Timeline) -> None:
    """Each bar is a group of class ``c`` that carries its row; each arrow a path of class ``arrow``."""
    top = MARGIN + TITLE + GAP - TITLE / 2
    left = MARGIN + max((TEXTS["caption"].width(row) for row in timeline.rows), default=0) + 2 * PADDING
    scale = WIDTH / (timeline.end - timeline.start)
    canvas.write(MARGIN, MARGIN + TITLE, timeline.title, "title")
    bottom = top + LINE * CAPTION + len(timeline.rows) * timeline.height
    at = ticks(timeline.start, timeline.end)
    for cycle in at:
        x = left + (cycle - timeline.start) * scale
        canvas.text(x, top + CAPTION - PADDING, f"{cycle:g}", "column")
        canvas.lines([(x, top + CAPTION, x, bottom)], "tick")
    canvas.write(left + WIDTH + 3 * PADDING, top + CAPTION - PADDING, timeline.unit, "caption")
    middles = []
    thick = timeline.height * FULL
    every = max(1, round(CAPTION / timeline.height))  # where rows are too thin for their names only some are named
    for number, name in enumerate(timeline.rows):
        middles.append(top + LINE * CAPTION + (number + 0.5) * timeline.height)
        if number % every == 0:
            canvas.text(left - 2 * PADDING, middles[-1] + CAPTION * BASE, name, "caption-right")
    for bar, seen in _with_what_is_seen(timeline.bars):
        _draw_bar(canvas, bar, left + (bar.start - timeline.start) * scale, middles[bar.row], scale, thick, seen)
    for link in timeline.links:
        x1, x2 = (left + (time - timeline.start) * scale for time in (link.time, link.to_time))
        y1, y2 = middles[link.row], middles[link.to_row]
        down = thick / 2 if y2 > y1 else -thick / 2
        canvas.arrow((x1, y1 + down, x2, y2 - down))
    bottom = draw_legend(canvas, timeline.legend, bottom + CAPTION)
    draw_notes(canvas, timeline.notes, bottom)


def _with_what_is_seen(bars: Sequence[Bar]) -> Iterator[tuple[Bar, float]]:
    """Bars in the order of time, each with the time at which the next of its row covers it: loads overlap."""
    covered: dict[int, float] = {}
    ordered = []
    for bar in sorted(bars, key=lambda b: b.start, reverse=True):
        ordered.append((bar, min(bar.end, covered.get(bar.row, bar.end))))
        covered[bar.row] = bar.start
    return reversed(ordered)


def _draw_bar(canvas: Canvas, bar: Bar, x: float, middle: float, scale: float, thick: float, seen: float) -> None:
    width = (bar.end - bar.start) * scale
    canvas.open_group("c", (bar.row, 0), bar.remark)
    canvas.rect(round(x, 1), middle - thick / 2, round(max(width, 0.5), 1), thick, bar.fill, frame=width > 1.5)
    free = (seen - bar.start) * scale
    if SMALL < thick + 3 and TEXTS["bar"].width(bar.label) + 2 <= free:
        canvas.text(x + free / 2, middle + SMALL * BASE, bar.label, "bar", text_colour(bar.fill))
    canvas.close_group()


def timeline_to_text(timeline: Timeline) -> str:
    """A line for each row: ``=`` runs, ``.`` waits, a digit for a stage, ``#`` anything else."""
    scale = COLUMNS / (timeline.end - timeline.start)
    lines = [[" "] * COLUMNS for _ in timeline.rows]
    for bar in timeline.bars:
        waits, runs = bar.remark.startswith("waits for"), bar.remark.startswith("runs")
        mark = "." if waits else "=" if runs else bar.label[-1:] or "#"
        first = int((bar.start - timeline.start) * scale)
        last = max(first + 1, round((bar.end - timeline.start) * scale))
        lines[bar.row][first:last] = mark * (min(last, COLUMNS) - first)
    width = max(map(len, timeline.rows), default=0)
    rows = [f"{name:>{width}} |{''.join(line)}|" for name, line in zip(timeline.rows, lines, strict=True)]
    scale_line = f"{'':>{width}} {timeline.start:<{COLUMNS - 8}g}{timeline.end:>10g} {timeline.unit}"
    return "\n".join([timeline.title, scale_line, *rows, *timeline.notes])
