"""A chart of bars with their ranges, drawn on the canvases of tilewright.viz."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.viz.canvas import BASE, LINE, MARGIN, TEXTS, Canvas
from tilewright.viz.picture import Picture
from tilewright.viz.timeline_drawing import ticks

WIDTH, HEIGHT, FULL = 420.0, 24.0, 0.62  # pixels of the axis and of a row; how much of a row its bar takes
OURS, PEER = "#8cbaf7", "#d0d7de"


@dataclass(frozen=True, slots=True)
class Bar:
    """A value with its name; ``low`` and ``high`` are the range it is the mean of. ``peer``: not ours."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    peer: bool = False
    remark: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class BarChart(Picture):
    """Bars from 0, below each other. A line stands at ``equal``, if it is given: where both sides are as fast."""

    title: str
    bars: Sequence[Bar]
    unit: str
    equal: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def most(self) -> float:
        return max(bar.high or bar.value for bar in self.bars)

    def written(self, bar: Bar) -> str:
        return f"{bar.value:.2f}" if self.equal else f"{bar.value:.3g}"

    def draw(self, canvas: Canvas) -> None:
        style = TEXTS["caption"]
        left = MARGIN + max(style.width(bar.name) for bar in self.bars) + 10
        top = MARGIN + TEXTS["title"].size + 2 * LINE * style.size
        scale = WIDTH / self.most
        bottom = top + len(self.bars) * HEIGHT
        canvas.write(MARGIN, MARGIN + TEXTS["title"].size, self.title, "title")
        for at in ticks(0.0, self.most) if self.most >= 4 else _quarters(self.most):
            canvas.text(left + at * scale, top - 6, f"{at:g}", "column")
            canvas.lines([(left + at * scale, top, left + at * scale, bottom)], "tick")
        canvas.write(left + WIDTH + 14, top - 6, self.unit, "caption")
        for number, bar in enumerate(self.bars):
            self._row(canvas, bar, left, top + (number + 0.5) * HEIGHT, scale)
        if self.equal is not None:
            canvas.lines([(left + self.equal * scale, top - 3, left + self.equal * scale, bottom)], "atom")
        for number, note in enumerate(self.notes):
            canvas.write(MARGIN, bottom + (number + 1.5) * LINE * style.size, note, "caption")
        canvas.reach(left + WIDTH + 60, bottom)

    def _row(self, canvas: Canvas, bar: Bar, left: float, middle: float, scale: float) -> None:
        thick = HEIGHT * FULL
        canvas.text(left - 8, middle + TEXTS["caption"].size * BASE, bar.name, "caption-right")
        canvas.open_group("c", None, bar.remark or f"{bar.name}: {bar.value:.3g} {self.unit}")
        canvas.rect(left, middle - thick / 2, bar.value * scale, thick, PEER if bar.peer else OURS)
        if bar.low is not None and bar.high is not None:
            ends = left + bar.low * scale, left + bar.high * scale
            across = [(end, middle - 4, end, middle + 4) for end in ends]
            canvas.lines([(ends[0], middle, ends[1], middle), *across], "atom")
        canvas.close_group()
        canvas.write(left + WIDTH + 14, middle + TEXTS["caption"].size * BASE, self.written(bar), "caption")

    def text(self) -> str:
        width = max(len(bar.name) for bar in self.bars)
        rows = (
            f"{bar.name:>{width}} {'#' * round(40 * bar.value / self.most)} {self.written(bar)}" for bar in self.bars
        )
        return "\n".join([self.title, *rows, *self.notes])

    def shortened(self, most_bytes: int = 0) -> BarChart:
        return self


def _quarters(most: float) -> list[float]:
    step = 0.25 if most < 2 else 0.5
    return [step * i for i in range(int(most / step) + 1)]
