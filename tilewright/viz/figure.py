"""A picture as data: panels of cells, a legend, notes. How it looks on paper is the business of the writers.

What draws grids builds a :class:`Figure`; :mod:`~tilewright.viz.svg`, :mod:`~tilewright.viz.tikz` and
:mod:`~tilewright.viz.terminal` each write any figure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from tilewright.errors import ArgumentError

LONGEST_SIDE = 256
MOST_CELLS = 32768


@dataclass(frozen=True, slots=True)
class Cell:
    """One square: what is written in it, line by line, its colour ``#rrggbb``, and a remark shown on hovering."""

    row: int
    column: int
    lines: tuple[str, ...]
    fill: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A grid of cells. ``at`` is its (row, column) among the panels of the figure; heavy lines precede the breaks."""

    title: str
    rows: int
    columns: int
    cells: tuple[Cell, ...]
    at: tuple[int, int] = (0, 0)
    row_breaks: tuple[int, ...] = ()
    column_breaks: tuple[int, ...] = ()


class Picture:
    """What every picture can do, once it can write itself as SVG, LaTeX and text."""

    __slots__ = ()

    def svg(self) -> str:
        """The picture as an SVG document."""
        raise NotImplementedError

    def tex(self) -> str:
        """The picture as a LaTeX document of its own (TikZ, class ``standalone``)."""
        raise NotImplementedError

    def text(self) -> str:
        """The picture as plain text."""
        raise NotImplementedError

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture in the format that the suffix names: ``.svg``, ``.tex``, ``.png`` or ``.txt``.

        Missing folders are made.

        Raises:
            ArgumentError: another suffix, a path that cannot be written, or PNG without cairosvg.
        """
        target = Path(path)
        writers = {".svg": self._svg_bytes, ".tex": self._tex_bytes, ".txt": self._text_bytes, ".png": self._png_bytes}
        if target.suffix not in writers:
            raise ArgumentError(f"cannot draw into {target}: the name must end in one of {', '.join(writers)}")
        data = writers[target.suffix]()
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except OSError as error:
            raise ArgumentError(f"cannot write {target}: {error.strerror or error}") from error

    def _repr_svg_(self) -> str:
        return self.svg()

    def _svg_bytes(self) -> bytes:
        return self.svg().encode()

    def _tex_bytes(self) -> bytes:
        return self.tex().encode()

    def _text_bytes(self) -> bytes:
        return (self.text() + "\n").encode()

    def _png_bytes(self) -> bytes:
        try:
            import cairosvg
        except (ImportError, OSError) as error:  # OSError: the package is there, the cairo library is not
            raise ArgumentError("PNG needs cairosvg and the cairo library: pip install 'tilewright[viz]'") from error
        return bytes(cairosvg.svg2png(bytestring=self._svg_bytes(), scale=2))


@dataclass(frozen=True, slots=True)
class Figure(Picture):
    """Panels, a legend of (colour, meaning), and notes. Shows itself in notebooks and in terminals that know rich.

    >>> figure = Figure("one cell", (Panel("", 1, 1, (Cell(0, 0, ("7",), "#ffffff"),)),))
    >>> print(figure.text())
    one cell
       0
    0  7
    """

    title: str
    panels: tuple[Panel, ...]
    legend: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = field(default=())

    def svg(self) -> str:
        """The picture as an SVG document."""
        from tilewright.viz.svg import figure_to_svg

        return figure_to_svg(self)

    def tex(self) -> str:
        """The picture as a LaTeX document of its own (TikZ, class ``standalone``)."""
        from tilewright.viz.tikz import figure_to_tikz

        return figure_to_tikz(self)

    def text(self) -> str:
        """The picture as plain text; ``rich.print(figure)`` shows it in colour."""
        from tilewright.viz.terminal import figure_to_text

        return figure_to_text(self).plain.rstrip()

    def __rich__(self) -> object:
        from tilewright.viz.terminal import figure_to_text

        return figure_to_text(self)


def cut(rows: int, columns: int) -> tuple[int, int, tuple[str, ...]]:
    """How much of a grid is drawn, and the note that says so when it is not all of it.

    >>> cut(4, 1000)
    (4, 256, ('cut: 4 of 4 rows and 256 of 1000 columns are drawn',))
    """
    shown_rows, shown_columns = min(rows, LONGEST_SIDE), min(columns, LONGEST_SIDE)
    shown_rows = min(shown_rows, MOST_CELLS // shown_columns)
    if (shown_rows, shown_columns) == (rows, columns):
        return rows, columns, ()
    note = f"cut: {shown_rows} of {rows} rows and {shown_columns} of {columns} columns are drawn"
    return shown_rows, shown_columns, (note,)
