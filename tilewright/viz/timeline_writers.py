"""Timelines as SVG, TikZ and text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.viz.colour import text_colour
from tilewright.viz.svg import CAPTION, GAP, GLYPH, LINE, MARGIN, PADDING, TITLE, SvgWriter, draw_legend

if TYPE_CHECKING:
    from tilewright.viz.timeline import Bar, Timeline

WIDTH = 960.0  # pixels from the first to the last cycle
FULL, SMALL = 0.73, 9.0  # how much of a row a bar takes; font of its label
COLUMNS = 96  # characters from the first to the last cycle
MARKER = (
    '<defs><marker id="head" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
    '<path d="M0 0L6 3L0 6z" fill="#a03020"/></marker></defs>'
)


def ticks(start: float, end: float) -> list[float]:
    """Six to fifteen round numbers between the two."""
    step = 1.0
    while (end - start) / step > 15:
        step *= 2.5 if str(int(step)).startswith("2") else 2.0
    first = -(-start // step) * step
    return [first + i * step for i in range(int((end - first) // step) + 1)]


def timeline_to_svg(timeline: Timeline) -> str:
    """Each bar is a group of class ``c`` that carries its row; each arrow a path of class ``a``."""
    out = SvgWriter()
    top = MARGIN + TITLE + GAP - TITLE / 2
    left = MARGIN + max(map(len, timeline.rows), default=0) * CAPTION * GLYPH + 2 * PADDING
    scale = WIDTH / (timeline.end - timeline.start)
    out.raw(MARKER)
    out.text(MARGIN, MARGIN + TITLE, timeline.title, "t")
    out.reach(left + WIDTH, top)
    bottom = top + LINE * CAPTION + len(timeline.rows) * timeline.height
    for cycle in ticks(timeline.start, timeline.end):
        x = left + (cycle - timeline.start) * scale
        out.text(x, top + CAPTION - PADDING, f"{cycle:g}", "l m")
        out.raw(f'<path d="M{x:.1f} {top + CAPTION:.1f}V{bottom:.1f}" stroke="#e4e8ec" stroke-width=".8"/>')
    middles = []
    thick = timeline.height * FULL
    every = max(1, round(CAPTION / timeline.height))  # names of rows that are too thin for them stand at some of them
    for number, name in enumerate(timeline.rows):
        middles.append(top + LINE * CAPTION + (number + 0.5) * timeline.height)
        if number % every == 0:
            out.text(left - 2 * PADDING, middles[-1] + CAPTION * 0.36, name, "p r")
    for bar in timeline.bars:
        _draw_bar(out, bar, left + (bar.start - timeline.start) * scale, middles[bar.row], scale, thick)
    for link in timeline.links:
        x1, x2 = (left + (time - timeline.start) * scale for time in (link.time, link.to_time))
        y1, y2 = middles[link.row], middles[link.to_row]
        down = thick / 2 if y2 > y1 else -thick / 2
        out.raw(f'<path class="a" d="M{x1:.1f} {y1 + down:.1f}L{x2:.1f} {y2 - down:.1f}" fill="none" stroke="#a03020" '
                'stroke-width=".7" stroke-opacity=".7" marker-end="url(#head)"/>')  # fmt: skip
    bottom = draw_legend(out, timeline.legend, bottom + CAPTION)
    for note in timeline.notes:
        bottom += CAPTION * LINE
        out.text(MARGIN, bottom, note, "p")
        out.reach(MARGIN + len(note) * CAPTION * GLYPH, bottom)
    return out.document(timeline.title)


def _draw_bar(out: SvgWriter, bar: Bar, x: float, middle: float, scale: float, thick: float) -> None:
    width = (bar.end - bar.start) * scale
    out.open_group("c", (bar.row, 0), bar.remark)
    out.rect(round(x, 1), middle - thick / 2, round(max(width, 0.5), 1), thick, bar.fill)
    if SMALL < thick + 3 and len(bar.label) * SMALL * GLYPH + 2 <= width:
        ink = text_colour(bar.fill)
        out.raw(f'<text x="{x + width / 2:.1f}" y="{middle + SMALL * 0.36:.1f}" style="font-size:{SMALL:g}px" '
                f'fill="{ink}">{bar.label}</text>')  # fmt: skip
    out.close_group()


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


def timeline_to_tikz(timeline: Timeline) -> str:
    from tilewright.viz.tikz import escape

    scale = 16.0 / (timeline.end - timeline.start)
    lines = [r"\documentclass[tikz]{standalone}", r"\begin{document}", r"\begin{tikzpicture}[font=\sffamily\tiny]"]
    for number, name in enumerate(timeline.rows):
        lines.append(rf"\node[left] at (0,{-0.5 * number:g}) {{{escape(name)}}};")
    for bar in timeline.bars:
        x1, x2 = ((time - timeline.start) * scale for time in (bar.start, bar.end))
        y, (red, green, blue) = -0.5 * bar.row, (int(bar.fill[i : i + 2], 16) for i in (1, 3, 5))
        colour = f"{{rgb,255:red,{red};green,{green};blue,{blue}}}"
        lines.append(rf"\fill[draw=black,very thin,fill={colour}] ({x1:.3f},{y - 0.18:.3f}) rectangle "
                     rf"({x2:.3f},{y + 0.18:.3f});")  # fmt: skip
    for link in timeline.links:
        x1, x2 = ((time - timeline.start) * scale for time in (link.time, link.to_time))
        lines.append(rf"\draw[->,red!60!black,very thin] ({x1:.3f},{-0.5 * link.row:g}) -- "
                     rf"({x2:.3f},{-0.5 * link.to_row:g});")  # fmt: skip
    return "\n".join([*lines, r"\end{tikzpicture}", r"\end{document}", ""])
