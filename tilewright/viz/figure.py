"""A picture as data: panels of cells, a legend, notes. The writers of the file formats decide how it looks.

What draws grids builds a :class:`Figure` of :mod:`~tilewright.viz.panels`; :mod:`~tilewright.viz.figure_drawing` draws
any figure on a canvas, and :mod:`~tilewright.viz.terminal` writes it as text.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tilewright.viz.canvas import Canvas
from tilewright.viz.figure_drawing import draw_panels
from tilewright.viz.panels import Axis, Legend, Panel
from tilewright.viz.picture import Picture
from tilewright.viz.windows import MOST_BYTES

if TYPE_CHECKING:  # rich is imported where text is written
    from rich.text import Text


@dataclass(frozen=True, slots=True, repr=False)
class Figure(Picture):
    """Panels, a legend of (colour, meaning), and notes. Shows itself in notebooks and in terminals that know rich.

    >>> from tilewright.viz.panels import Cell
    >>> figure = Figure("one cell", (Panel("", 1, 1, (Cell(0, 0, ("7",), "#ffffff"),)),))
    >>> print(figure)
    one cell
       0
    0  7
    """

    title: str
    panels: tuple[Panel, ...]
    legend: Legend = ()
    notes: tuple[str, ...] = field(default=())

    def all_notes(self) -> tuple[str, ...]:
        """The notes, and what is left out of the panels."""
        missing: dict[str, list[str]] = {}
        for panel in self.panels:
            if sentence := panel.left_out():
                missing.setdefault(sentence, []).append(panel.title)
        some = [
            f"left out{f' of {names[0]}' if len(missing) > 1 and names[0] else ''}: {sentence}"
            for sentence, names in missing.items()
        ]
        return (*some, *self.notes)

    def shortened(self, most_bytes: int = MOST_BYTES) -> Figure:
        """The figure itself, or with fewer cells, so that its SVG has no more than ``most_bytes``."""
        figure, cells = self, sum(len(panel.cells) for panel in self.panels)
        while (long := len(figure.svg())) > most_bytes and cells > 16:
            cells = max(16, int(cells * 0.97 * most_bytes / long))
            share = max(4, cells // len(self.panels))
            note = "shortened for the notebook; a file, such as .save('picture.svg'), shows more"
            figure = replace(self, panels=tuple(p.narrower(share) for p in self.panels), notes=(*self.notes, note))
        return figure

    def small(self) -> Figure:
        """The figure with small cells: colours alone, what is written in a cell is said on hovering.

        >>> from tilewright.viz.panels import Cell
        >>> panel = Panel("", 1, 1, (Cell(0, 0, ("7",), "#ffffff", "offset 7"),))
        >>> Figure("one cell", (panel,)).small().panels[0].cells[0]
        Cell(row=0, column=0, lines=(), fill='#ffffff', remark='offset 7')
        """
        panels = []
        for panel in self.panels:
            cells = tuple(replace(cell, lines=(), remark=cell.remark or " ".join(cell.lines)) for cell in panel.cells)
            panels.append(replace(panel, cells=cells, row_axis=Axis(), column_axis=Axis(), small=True))
        return replace(self, panels=tuple(panels))

    def draw(self, canvas: Canvas) -> None:
        """Draw the figure on a canvas."""
        draw_panels(canvas, self.title, self.panels, self.legend, self.all_notes())

    def text(self) -> str:
        """The picture as plain text; ``rich.print(figure)`` shows it in colour."""
        return self.__rich__().plain.rstrip()

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        cells = sum(len(panel.cells) for panel in self.panels)
        return f"<Figure {self.title!r}: {cells} cells in {len(self.panels)} panels>"

    def __rich__(self) -> Text:
        from tilewright.viz.terminal import panels_to_text

        return panels_to_text(self.title, self.panels, self.legend, self.all_notes())
