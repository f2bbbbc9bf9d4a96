r"""Drawings as LaTeX: a document of class ``standalone`` with one TikZ picture.

pdfTeX keeps a page in a memory of five million words until it is written, and a node of TikZ takes about 500 of them.
So rectangles and texts are macros on the lower layers of PGF and TeX, which the document defines itself: each takes
about 100. What is still too large is refused, with a word on what to use instead of TeX.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.errors import ArgumentError
from tilewright.viz.canvas import FRAME, LINES, MARGIN, TEXTS, Canvas, Segment, arrow_head, short

PIXEL = 0.75  # of the drawing, in big points of 1/72 inch
LARGEST = 16_000 / PIXEL  # pixels: TeX knows no length above 16383 pt
# Fonts by the size of a text in pixels: Computer Modern's typewriter, in sizes in which it is narrower than our font.
SIZES = ((14.0, 10), (12.0, 9), (0.0, 8))  # in points
FONTS = {10: r"\titlefont", 9: r"\captionfont", 8: r"\cellfont"}
ANCHORS = {"start": "textfrom", "middle": "textat", "end": "textto"}
# Words of pdfTeX's memory: of nodes, and of tokens and characters. Measured with TeX Live 2022, with the copy that the
# class standalone makes of the picture; FREE_TOKENS of the words that loading TikZ takes are free again for tokens.
RECTANGLE, TEXT, INK, COMMAND, SEGMENT, HEAD = (30, 77), (63, 0), (18, 22), (54, 62), (24, 53), (43, 80)
CHARACTER, SPACE, SIGN = (0, 3), (13, 0), (28, 3)  # in addition to TEXT
FREE_TOKENS, LOADED, MOST_WORDS = 1_280_000, 1_850_000, 4_800_000  # of 5,000,000
TOGETHER = 64  # segments that one command draws
SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "_": r"\_",
    "^": r"\^{}",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "$": r"\$",
    "~": r"\~{}",
    "·": r"$\cdot$",
    "→": r"$\to$",
    "×": r"$\times$",
    "⊕": r"$\oplus$",
    "⋯": r"$\cdots$",
    "⋮": r"$\vdots$",
    "∘": r"$\circ$",
    "…": r"\dots{}",
}
ACCENTED = "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿ"  # letters of every LaTeX font
MACROS = r"""\newdimen\px \px=0.75bp % the unit of all lengths below; y runs down
% \cell and \block {x}{y}{width}{height}{colour}: a rectangle, with a frame and without
\newcommand\cell[5]{{\corners{#1}{#2}{#3}{#4}\pgfsetfillcolor{#5}\pgfusepath{fill,stroke}}}
\newcommand\block[5]{{\corners{#1}{#2}{#3}{#4}\pgfsetfillcolor{#5}\pgfusepath{fill}}}
\newcommand\corners[4]{\pgfpathrectangle{\pgfqpoint{#1\px}{-#2\px}}{\pgfqpoint{#3\px}{-#4\px}}}
% \textfrom, \textat, \textto {x}{y}{font}{text}: a text that starts, is centred or ends there, on its baseline
\newcommand\textfrom[4]{\place{0}{#1}{#2}{#3#4}}
\newcommand\textat[4]{\place{0.5}{#1}{#2}{#3#4}}
\newcommand\textto[4]{\place{1}{#1}{#2}{#3#4}}
\newcommand\place[4]{\setbox0=\hbox{\frenchspacing#4}\dimen0=\dimexpr#2\px-#1\wd0\relax
  \wd0=0pt\kern\dimen0\raise-#3\px\box0\kern-\dimen0 }
% \head {x}{y}{x}{y}{x}{y}: the head of an arrow by its three corners
\newcommand\head[6]{{\pgfpathmoveto{\pgfqpoint{#1\px}{-#2\px}}\pgfpathlineto{\pgfqpoint{#3\px}{-#4\px}}%
  \pgfpathlineto{\pgfqpoint{#5\px}{-#6\px}}\pgfpathclose\pgfusepath{fill}}}"""


class TikzCanvas(Canvas):
    """Collects commands, and counts what they take of TeX's memory."""

    def __init__(self) -> None:
        super().__init__()
        self._back: list[str] = []  # ticks
        self._fills: list[str] = []
        self._front: list[str] = []
        self._colours: set[str] = {FRAME}
        self._arrows: list[Segment] = []
        self._ink = ""  # of the last text
        self._styles: dict[str, str] = {}  # of the kinds of lines that there are
        self._nodes = self._tokens = 0

    def rect(self, x: float, y: float, width: float, height: float, fill: str, frame: bool = True) -> None:
        numbers = "".join(f"{{{short(value)}}}" for value in (x, y, width, height))
        self._fills.append(rf"\{'cell' if frame else 'block'}{numbers}{{{self._colour(fill)}}}")
        self._takes(RECTANGLE)
        self.reach(x + width, y + height)

    def text(self, x: float, y: float, content: str, kind: str, ink: str = "") -> None:
        style = TEXTS[kind]
        self._write_in(ink or style.colour)
        font = FONTS[next(points for least, points in SIZES if style.size >= least)]
        place = f"{{{short(x)}}}{{{short(y)}}}"
        self._front.append(rf"\{ANCHORS[style.anchor]}{place}{{{font}}}{{{escape(content)}}}")
        self._takes(TEXT)
        for character in content:
            self._takes(SIGN if character in SPECIAL else SPACE if character == " " else CHARACTER)

    def lines(self, segments: Iterable[Segment], kind: str) -> None:
        paths = [f"({short(x1)},{short(y1)}) -- ({short(x2)},{short(y2)})" for x1, y1, x2, y2 in segments]
        to = self._back if kind == "tick" else self._front
        for first in range(0, len(paths), TOGETHER):
            self._style(kind)
            to.append(rf"\draw[{kind}] {' '.join(paths[first : first + TOGETHER])};")
            self._takes(COMMAND)
        self._takes(SEGMENT, len(paths))

    def arrow(self, segment: Segment) -> None:
        self._arrows.append(segment)

    def _draw_arrows(self) -> None:
        self.lines(self._arrows, "arrow")
        for segment in self._arrows:
            self._write_in(LINES["arrow"].colour)
            corners = "".join(f"{{{short(x)}}}{{{short(y)}}}" for x, y in arrow_head(segment))
            self._front.append(rf"\head{corners}")
            self._takes(HEAD)
        self._arrows = []

    def document(self, title: str) -> str:
        """The whole file.

        Raises:
            ArgumentError: more than TeX's memory takes, or longer than any length that TeX knows.
        """
        self._draw_arrows()
        what = title or "the picture"
        instead = "save it as .pdf and include that with \\includegraphics, or draw a part of it"
        if (words := self.words()) > MOST_WORDS:
            raise ArgumentError(f"{what} takes {words / 1e6:.1f} million words of TeX's memory of 5 million: {instead}")
        width, height = self.width + MARGIN, self.height + MARGIN
        if max(width, height) > LARGEST:
            metres = max(width, height) * PIXEL / 72 * 0.0254
            raise ArgumentError(f"{what} is {metres:.1f} m long, and TeX knows no length above 5.7 m: {instead}")
        return "\n".join(
            [
                r"\documentclass{standalone}",
                r"\usepackage{tikz}",
                *(rf"\definecolor{{{_name(c)}}}{{HTML}}{{{c[1:].upper()}}}" for c in sorted(self._colours)),
                *(rf"\DeclareFixedFont{name}{{OT1}}{{cmtt}}{{m}}{{n}}{{{points}}}" for points, name in FONTS.items()),
                MACROS,
                r"\begin{document}",
                r"\begin{tikzpicture}[x=\px,y=-\px,",
                *(f"  {style}," for style in self._styles.values()),
                "]",
                rf"\useasboundingbox (0,0) rectangle ({short(width)},{short(height)});",
                rf"\pgfsetstrokecolor{{{_name(FRAME)}}}\pgfsetlinewidth{{0.6\px}}",
                *self._back,
                *self._fills,
                *self._front,
                r"\end{tikzpicture}",
                r"\end{document}",
                "",
            ]
        )

    def words(self) -> int:
        """The words of TeX's memory that the document takes."""
        return LOADED + self._nodes + max(0, self._tokens - FREE_TOKENS)

    def _takes(self, words: tuple[int, int], times: int = 1) -> None:
        self._nodes += words[0] * times
        self._tokens += words[1] * times

    def _colour(self, colour: str) -> str:
        self._colours.add(colour)
        return _name(colour)

    def _write_in(self, colour: str) -> None:
        """Texts and heads of arrows that follow have this colour."""
        if colour != self._ink:
            self._front.append(rf"\pgfsetfillcolor{{{self._colour(colour)}}}")
            self._ink = colour
            self._takes(INK)

    def _style(self, kind: str) -> None:
        style = LINES[kind]
        cap = "butt" if kind == "arrow" else "rect"
        self._styles[kind] = (
            f"{kind}/.style={{draw={self._colour(style.colour)},draw opacity={style.opacity:g},"
            rf"line width={style.width:g}\px,line cap={cap}}}"
        )


def _name(colour: str) -> str:
    return f"c{colour[1:].lower()}"


def escape(text: str) -> str:
    """Text for LaTeX; a question mark for a character that its fonts lack."""
    return "".join(SPECIAL.get(c, c if c.isascii() or c in ACCENTED else "?") for c in text)
