"""The base of all pictures: they write themselves as SVG, PNG, PDF, LaTeX and text, and show itself in notebooks."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from tilewright.errors import ArgumentError
from tilewright.viz.canvas import Canvas
from tilewright.viz.windows import MOST_BYTES


class Picture:
    """A picture that can draw itself on a canvas, and write itself as text."""

    __slots__ = ()

    title: str

    def draw(self, canvas: Canvas) -> None:
        """Draw the picture on a canvas."""
        raise NotImplementedError

    def text(self) -> str:
        """The picture as plain text."""
        raise NotImplementedError

    def shortened(self, most_bytes: int = MOST_BYTES) -> Picture:
        """The picture itself, or with less in it and a note that says so: an SVG of ``most_bytes`` at the most."""
        raise NotImplementedError

    def svg(self) -> str:
        """The picture as an SVG document."""
        from tilewright.viz.svg import SvgCanvas

        canvas = SvgCanvas()
        self.draw(canvas)
        return canvas.document(self.title)

    def png(self) -> bytes:
        """The picture as a PNG file.

        Raises:
            ArgumentError: Pillow is not installed.
        """
        from tilewright.viz.png import PngCanvas

        canvas = PngCanvas()
        self.draw(canvas)
        return canvas.document()

    def pdf(self) -> bytes:
        """The picture as a PDF file of one page, with its font."""
        from tilewright.viz.pdf import PdfCanvas

        canvas = PdfCanvas()
        self.draw(canvas)
        return canvas.document(self.title)

    def tex(self) -> str:
        """The picture as a LaTeX document of its own (TikZ, class ``standalone``).

        Raises:
            ArgumentError: more than TeX's memory takes.
        """
        from tilewright.viz.tikz import TikzCanvas

        canvas = TikzCanvas()
        self.draw(canvas)
        return canvas.document(self.title)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture in the format that the suffix names: ``.svg``, ``.png``, ``.pdf``, ``.tex`` or ``.txt``.

        Missing folders are made.

        Raises:
            ArgumentError: another suffix, a path that cannot be written, PNG without Pillow, or too much for TeX.
        """
        try:
            target = Path(path)
        except TypeError as error:
            raise ArgumentError(f"cannot draw into {path!r}: it is not the path of a file") from error
        writers: dict[str, Callable[[], bytes]] = {
            ".svg": lambda: self.svg().encode(),
            ".png": self.png,
            ".pdf": self.pdf,
            ".tex": lambda: self.tex().encode(),
            ".txt": lambda: (self.text() + "\n").encode(),
        }
        if target.suffix.lower() not in writers:
            raise ArgumentError(f"cannot draw into {target}: the name must end in one of {', '.join(writers)}")
        data = writers[target.suffix.lower()]()
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except OSError as error:
            raise ArgumentError(f"cannot write {target}: {error.strerror or error}") from error

    def _repr_svg_(self) -> str:
        return self.shortened().svg()
