"""SVG, LaTeX, text and PNG of one figure."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.viz.kinds import picture
from tests.viz.reading import read_svg
from tilewright.errors import ArgumentError
from tilewright.layout import ComposedLayout, Layout, Swizzle, parse
from tilewright.viz import (
    Cell,
    Figure,
    Panel,
    bank_figure,
    divide_figure,
    layout_figure,
    mma_figure,
    raster_figure,
    swizzle_figure,
    tv_figure,
)
from tilewright.viz.colour import distinct
from tilewright.viz.picture import Picture
from tilewright.viz.tikz import MOST_WORDS, TikzCanvas, escape

ADVANCE = 0.602  # of DejaVu Sans Mono, in ems

FIGURES = {
    "layout": layout_figure(Layout((4, 8), (8, 1))),
    "numbers of many digits": layout_figure(Layout((4, 4), (1_000_000, 123_456_789))),
    "coordinates": layout_figure(parse("((2,2),(4,2)):((1,8),(2,16))"), show=("index", "offset", "coordinate")),
    "slices": layout_figure(Layout((4, 3, 6))),
    "swizzle": swizzle_figure(ComposedLayout(Swizzle(3, 2, 3), 0, Layout((8, 32), (32, 1)))),
    "thread values": tv_figure(parse("((4,8,4),(2,2,2)):((128,1,16),(64,8,512))"), (64, 16)),
    "mma": mma_figure(Layout((4, 16), (16, 1)), Layout((4, 8), (1, 4)), Layout((4, 8), (8, 1)), (8, 4, 8)),
    "banks": bank_figure(ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1))), 16, vector=8),
    "divide": divide_figure(Layout((5, 6)), (2, 4)),
    "raster": raster_figure("grouped_m", (12, 16), group=4, concurrent=24),
}


@pytest.fixture(params=FIGURES)
def figure(request: pytest.FixtureRequest) -> Figure:
    return FIGURES[request.param]


def test_text_fits_its_cell_and_cells_fit_the_sheet(figure: Figure) -> None:
    drawing = read_svg(figure.svg())
    for panel in drawing.panels:
        for cell in panel.cells.values():
            x, y, width, height = cell.box
            assert 0 <= x and x + width <= drawing.width and 0 <= y and y + height <= drawing.height
            for line, (middle, base) in zip(cell.lines, cell.text_at, strict=True):
                half = len(line) * ADVANCE * drawing.font / 2
                assert x < middle - half and middle + half < x + width
                assert y < base - 0.75 * drawing.font and base + 0.2 * drawing.font < y + height
    assert drawing.font >= 10


def test_cells_do_not_overlap(figure: Figure) -> None:
    boxes = {cell.box[:2] for panel in read_svg(figure.svg()).panels for cell in panel.cells.values()}
    assert len(boxes) == sum(len(panel.cells) for panel in figure.panels)
    for panel in read_svg(figure.svg()).panels:
        for (row, column), cell in panel.cells.items():
            right = panel.cells.get((row, column + 1))
            below = panel.cells.get((row + 1, column))
            assert right is None or right.box[0] == pytest.approx(cell.box[0] + cell.box[2], abs=0.01)
            assert below is None or below.box[1] == pytest.approx(cell.box[1] + cell.box[3], abs=0.01)


def test_latex_draws_what_the_svg_draws(figure: Figure) -> None:
    drawing, tex = read_svg(figure.svg()), figure.tex()
    cells = [cell for panel in drawing.panels for cell in panel.cells.values()]
    boxes = [
        (fill, tuple(map(float, numbers)))
        for *numbers, fill in re.findall(r"^\\cell\{(.*?)\}\{(.*?)\}\{(.*?)\}\{(.*?)\}\{c(.*?)\}$", tex, re.MULTILINE)
    ]
    assert boxes[: len(cells)] == [(cell.fill[1:], cell.box) for cell in cells]
    texts = {(float(x), float(y)): word for x, y, word in re.findall(r"\\textat\{(.*?)\}\{(.*?)\}\{.*?\}\{(.*)\}", tex)}
    for cell in cells:
        assert [texts[at] for at in cell.text_at] == [escape(line) for line in cell.lines]
        assert all(len(line) * 0.531 * 8 / 0.7528 < cell.box[2] for line in cell.lines)  # 8 pt typewriter
    for panel in drawing.panels:
        for kind, segments in panel.lines.items():
            drawn = "".join(re.findall(rf"\\draw\[{kind}\](.*);", tex))
            numbers = re.findall(r"\(([^,]+),([^)]+)\) -- \(([^,]+),([^)]+)\)", drawn)
            assert segments <= {tuple(map(float, n)) for n in numbers}
    for words in (figure.title, *figure.all_notes()):
        assert all(escape(word) in tex for word in words.split())
    stripped = re.sub(r"\\[{}\\]", "", tex)
    assert stripped.count("{") == stripped.count("}")
    assert tex.startswith(r"\documentclass") and tex.rstrip().endswith(r"\end{document}")
    defined = set(re.findall(r"\\definecolor\{(\w+)\}", tex))
    assert set(re.findall(r"\bc[0-9a-f]{6}\b", tex)) == defined


def test_text_has_every_cell_in_its_row(figure: Figure) -> None:
    lines = figure.text().splitlines()
    at = 1
    for panel in figure.panels:
        at += bool(panel.title) + 1
        for row, after in zip(panel.drawn_rows, (*panel.drawn_rows[1:], None), strict=True):
            words = ["/".join(filter(None, cell.lines)) for cell in panel.cells if cell.row == row]
            assert [word for word in lines[at].split() if word != "…"] == [str(row), *words]
            at += 1 + (after is not None and after != row + 1)
    for note in figure.all_notes():
        assert note in lines


def test_colour_in_terminals() -> None:
    from rich.console import Console

    console = Console(force_terminal=True, color_system="truecolor", width=200)
    with console.capture() as capture:
        console.print(layout_figure(Layout((2, 2))))
    assert "\x1b[38;2;16;22;28;48;2;140;186;247m" in capture.get()


def test_signs_of_the_formats_are_escaped() -> None:
    figure = Figure('a<b & "c" {d}_e', (Panel("p<q", 1, 1, (Cell(0, 0, ("x&y",), "#ffffff", "r<s"),)),))
    drawing = read_svg(figure.svg())
    assert drawing.title == 'a<b & "c" {d}_e'
    assert drawing.panels[0].title == "p<q" and drawing.panels[0].cells[0, 0].remark == "r<s"
    assert r"a<b \& " in figure.tex() and r"\{d\}\_e" in figure.tex()


def test_save_by_suffix(tmp_path: Path) -> None:
    figure = FIGURES["layout"]
    figure.save(tmp_path / "deep" / "er" / "x.svg")
    assert (tmp_path / "deep" / "er" / "x.svg").read_text() == figure.svg()
    figure.save(str(tmp_path / "x.tex"))
    assert (tmp_path / "x.tex").read_text() == figure.tex()
    figure.save(tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_text() == figure.text() + "\n"
    with pytest.raises(ArgumentError, match=r"must end in one of .svg, .png, .pdf, .tex, .txt"):
        figure.save(tmp_path / "x.gif")
    with pytest.raises(ArgumentError, match="cannot write"):
        figure.save(tmp_path / "x.txt" / "y.svg")


def test_notebooks_show_the_svg() -> None:
    assert FIGURES["layout"]._repr_svg_() == FIGURES["layout"].svg()


ENGINE = next((name for name in ("pdflatex", "lualatex", "xelatex", "tectonic") if shutil.which(name)), None)


def compiled(picture: Picture, folder: Path) -> str:
    """What TeX writes of its work."""
    picture.save(folder / "x.tex")
    command = [str(ENGINE), *(["-interaction=nonstopmode", "-halt-on-error"] if ENGINE != "tectonic" else []), "x.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=120)
    if "standalone.cls' not found" in done.stdout or "tikz.sty' not found" in done.stdout:
        pytest.skip("this TeX has no standalone class or no TikZ")
    assert done.returncode == 0, done.stdout[-2000:]
    assert (folder / "x.pdf").read_bytes().startswith(b"%PDF")
    log = folder / "x.log"
    return log.read_text(errors="replace") if log.exists() else done.stdout


@pytest.mark.skipif(ENGINE is None, reason="no TeX engine is installed")
@pytest.mark.parametrize("name", [*FIGURES, "timeline", "schedules", "tiled copy"])
def test_tex_compiles(name: str, tmp_path: Path) -> None:
    log = compiled(FIGURES.get(name) or picture(name), tmp_path)
    assert "Missing character" not in log and "Overfull" not in log


@pytest.mark.skipif(ENGINE != "pdflatex", reason="pdflatex is not installed")
def test_the_largest_picture_that_is_written_compiles(tmp_path: Path) -> None:
    side, words = 110, ("T127", "V15", "+3")
    cells = tuple(Cell(i, j, words, distinct(i + j)) for i in range(side) for j in range(side))
    figure = Figure("large", (Panel("", side, side, cells),))
    canvas = TikzCanvas()
    figure.draw(canvas)
    assert 0.9 * MOST_WORDS < canvas.words() < MOST_WORDS
    used, memory = map(int, re.findall(r"(\d+) words of memory out of (\d+)", compiled(figure, tmp_path))[0])
    assert memory > 5_000_000 or abs(used - canvas.words()) < 5_000_000 - MOST_WORDS


def test_accents_and_signs_that_latex_lacks() -> None:
    assert escape("Größe → 3 µs") == r"Größe $\to$ 3 ?s"
