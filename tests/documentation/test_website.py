"""The site (tools/website): every page is in its navigation, and its checks find what is wrong."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from urllib.parse import parse_qsl
from xml.etree import ElementTree

import pytest

pytest.importorskip("griffe")


from tilewright.explorer.answer import answer
from tilewright.explorer.tabs import tab_of
from tilewright.lang.launch import options
from tilewright.layout import parse
from tilewright.viz import composition_figure
from tools import speed
from tools.website import api, build, card, commands, gallery, links, measurements, pictures, tutorials
from tools.website.docstrings import markdown
from tools.website.parameters import with_table

ROOT = Path(__file__).resolve().parents[2]
NAVIGATION = re.findall(r'"([\w/]+\.md)"', (ROOT / "zensical.toml").read_text(encoding="utf-8"))


def test_the_navigation_has_every_page() -> None:
    written = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert written - set(NAVIGATION) == set(), "add the page to nav in zensical.toml"
    assert len(NAVIGATION) == len(set(NAVIGATION))


def test_the_navigation_has_every_page_of_the_reference() -> None:
    made = {f"api/{page}.md" for page in api.PAGES} | {"api/index.md"}
    assert made == {page for page in NAVIGATION if page.startswith("api/")}
    assert tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["theme"]["font"] is False


def test_every_public_package_is_in_the_reference() -> None:
    named = {name.split(".")[1] for names in api.PAGES.values() for name in names if "." in name}
    internal = {
        "atoms",
        "base_dsl",
        "cli",
        "cutlass_dsl",
        "explorer",
        "ir",
        "lang",
        "own_files",
        "pytest_plugin",
        "tiled",
    }
    internal |= {
        "cuda_version",
        "disk_cache",
        "location_keywords",
        "foreign_names",
        "reports",
        "stand_in_names",
        "stand_ins",
    }
    found = {path.stem for path in (ROOT / "tilewright").iterdir() if path.suffix in ("", ".py")}
    assert {name for name in found if not name.startswith("_")} - internal == named


def test_names_are_described_once() -> None:
    pages = api.modules()
    described = [where for entries in pages.values() for entry in entries for _, where in entry.described]
    assert len(described) == len(set(described)) > 400
    layout, cute = pages["layout"][0], pages["cute"][0]
    assert ("Layout", "tilewright.layout.layout.Layout") in layout.described
    assert ("Layout", "tilewright.layout.layout.Layout") in cute.elsewhere
    assert ("Tensor", "tilewright.lang.tensors.tensor.Tensor") in cute.described


def test_functions_that_other_functions_make_are_described() -> None:
    text = api.entry_text("isinf", "tilewright.lang.tensors.math.isinf")
    assert text.startswith("### isinf {") and "isinf(" in text and "is infinite" in text


def test_every_block_of_the_gallery_draws_a_picture(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    (tmp_path / "gallery.md").write_text(page, encoding="utf-8")
    gallery.write_page(ROOT / "docs" / "gallery.md", tmp_path / "gallery.md")
    made = (tmp_path / "gallery.md").read_text(encoding="utf-8")
    pictures = sorted(tmp_path.glob("gallery/*.svg"))
    assert len(pictures) == page.count("_figure(") + page.count("gantt([") + page.count("timeline(") - 1 >= 14
    assert all(ElementTree.parse(picture).getroot().tag.endswith("svg") for picture in pictures)
    assert made.count("](gallery/") == len(pictures) > made.count('<div class="beside" markdown>') > 2


def test_pictures_link_to_the_explorer_with_their_state() -> None:
    states = [shown.state for shown in gallery.blocks(ROOT / "docs" / "five_posts" / "1_layouts.md") if shown.state]
    assert len(states) >= 6
    for state in states:
        tab, query = state.split("?")
        found = answer(tab_of(tab), dict(parse_qsl(query, strict_parsing=True)))
        assert "error" not in found and found["pictures"], state


@pytest.mark.parametrize("notebook", sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_link_to_the_explorer_with_their_state(notebook: Path) -> None:
    states = re.findall(r"\(\.\./explorer/index\.html#([^)\s]+)\)", notebook.read_text(encoding="utf-8"))
    assert states
    for state in states:
        tab, _, query = state.partition("?")
        texts = dict(parse_qsl(query, strict_parsing=True)) if query else {}
        found = answer(tab_of(tab), texts)
        assert set(texts) <= {field.name for field in tab_of(tab).fields}
        assert "error" not in found and found["pictures"], state


def test_the_page_of_the_command_line_has_every_command_and_option() -> None:
    page = commands.text()
    for name in (
        "run",
        "check",
        "mutate",
        "gemm",
        "tune",
        "streamk",
        "show",
        "analyse",
        "layout",
        "atom",
        "demo",
        "explore",
    ):
        assert f"## tilewright {name} {{" in page
    assert "| `--schedules` |" in page and "| `A.npy` | m x k matrix | required |" in page


def test_docstrings_as_markdown() -> None:
    text = "See :func:`~a.b` and :class:`C`::\n\n    x\n\nArgs:\n    p, q: two\n        numbers.\n\n>>> 1\n1\n\nEnd."
    assert markdown(text) == (
        "See `b` and `C`:\n\n    x\n\nArgs:\n    p: two\n        numbers.\n    q: two\n        numbers.\n\n"
        "```pycon\n>>> 1\n1\n```\n\nEnd."
    )


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ('<a href="b.html#x">', None),
        ('<a href="sub/">', None),
        ('<a href="https://example.org/">', None),
        ('<a href="c.html">', "no such file"),
        ('<a href="b.html#y">', "no such anchor"),
        ('<a href="#y">', "no such anchor"),
        ('<a href="b.html#x?state=1">', None),
        ('<a href="b.html#y?state=1">', "no such anchor"),
        ('<a href="/b.html">', "absolute"),
        ('<img src="b.png">', "no such file"),
        ('<script src="https://example.org/x.js"></script>', "from elsewhere"),
    ],
)
def test_broken_links_are_found(tmp_path: Path, body: str, complaint: str | None) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "index.html").write_text("<p>", encoding="utf-8")
    (tmp_path / "a.html").write_text(body, encoding="utf-8")
    (tmp_path / "b.html").write_text('<h2 id="x">', encoding="utf-8")
    found = links.broken(tmp_path)
    assert found == [] if complaint is None else len(found) == 1 and complaint in found[0]


def test_links_out_of_the_folder_of_pages() -> None:
    page, target = build.DOCS / "gemm.md", build.PAGES / "gemm.md"
    assert build.relinked("[a](../bench/notes/README.md), [b](tma.md#x)", page, target) == (
        "[a](measurements/index.md), [b](tma.md#x)"
    )
    assert build.relinked("[c](https://example.org/x)", page, target) == "[c](https://example.org/x)"
    deeper, target = build.DOCS / "path" / "x.md", build.PAGES / "path" / "x.md"
    assert build.relinked("[d](../../CONTRIBUTING.md)", deeper, target) == "[d](../contributing.md)"


COLUMNS = 124  # of code that fit the column of a page at 1280 pixels


def test_code_fits_its_column() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        blocks = re.findall(r"^```\w+\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        assert [line for block in blocks for line in block.splitlines() if len(line) > COLUMNS] == [], page


def test_drawings_are_part_of_the_page(tmp_path: Path) -> None:
    figure = composition_figure(parse("(4,2):(2,1)"), parse("4:2"))
    figure.save(tmp_path / "a.svg")
    (tmp_path / "other.svg").write_text("<svg/>", encoding="utf-8")
    text = '<p><img alt="A &amp; B" src="a.svg" /></p><img alt="" src="a.svg" /><img alt="" src="other.svg" />'
    made = pictures.inline(text, tmp_path / "page.html")
    assert made.count('<figure class="picture"><svg ') == 2 and made.endswith('<img alt="" src="other.svg" />')
    assert made.count('aria-label="A &amp; B"') == 1 and f'aria-label="{figure.title}"' in made
    assert made.count("<title>") > 8, "hovering says what a cell is"
    names = re.findall(r'<marker id="([^"]+)"', made)
    assert len(names) == len(set(names)) and all(f"url(#{name})" in made for name in names)


def test_links_show_a_card(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = '<title>A &amp; B</title><meta name="description" content="What it is">'
    made = card.add(text, Path("api/layout.html"), "..")
    assert '<meta property="og:title" content="A &amp; B">' in made
    assert '<meta property="og:image" content="../assets/card.png">' in made and "og:url" not in made
    monkeypatch.setenv(card.ADDRESS, "https://example.org/docs/")
    made = card.add(text, Path("api/layout.html"), "..")
    assert 'content="https://example.org/docs/assets/card.png"' in made
    assert 'content="https://example.org/docs/api/layout.html"' in made
    card.draw(ROOT / "docs" / "pictures", tmp_path / "assets" / "card.png")
    assert (tmp_path / "assets" / "card.png").stat().st_size > 10_000


def test_examples_are_tutorials() -> None:
    assert set(tutorials.TITLES) == {path.stem for path in tutorials.EXAMPLES.glob("*.py")}
    assert {f"tutorials/{name}.md" for name in (*tutorials.TITLES, "index")} <= set(NAVIGATION)
    for name in tutorials.TITLES:
        program = tutorials.EXAMPLES / f"{name}.py"
        source, text = program.read_text(encoding="utf-8"), tutorials.page(program, "", "")
        code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
        parts = re.split(r"# %%.*\n|# -- .*\n", source)[1:] or [source.split('"""\n', 1)[1]]
        lines = [line for part in parts for line in part.splitlines() if line.strip() and not line.startswith("#")]
        assert [line for line in lines if line.strip() not in code] == [], "the page has all of the program's code"
        drawn = re.findall(r"^# !\[[^\]]+\]\((\w+\.svg)\)", source, re.MULTILINE)
        assert all(f'"{picture}"' in source or name == "transpose" for picture in drawn), name


@pytest.mark.parametrize("name", ["transpose"])
def test_a_tutorial_shows_what_its_program_draws_and_what_the_checks_find(name: str) -> None:
    results = tutorials.made(tutorials.EXAMPLES / f"{name}.py")
    drawn = re.findall(r"\]\((\w+\.svg)\)", tutorials.page(tutorials.EXAMPLES / f"{name}.py", "", ""))
    assert sorted(drawn) == sorted(picture.name for picture in results.glob("*.svg")) != []
    assert "bank-conflict" in (results / "found.txt").read_text(encoding="utf-8")
    assert "largest error" in (results / "printed.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("subject", measurements.SUBJECTS)
def test_the_charts_of_a_subject_have_records(subject: str) -> None:
    for drawn in measurements.charts(subject):
        assert drawn.bars and all((bar.low or bar.value) > 0 for bar in drawn.bars), drawn.title


def test_a_row_without_records_is_refused() -> None:
    row = speed.Row("none of this kind", speed.SCALED, {"set": "of a name that nothing has"})
    with pytest.raises(ValueError, match=r"scaled_later.*has no record .*'none of this kind'"):
        row.bar()


def test_the_chart_of_the_first_page_is_what_the_results_say() -> None:
    assert speed.is_current(), "run python -m tools.speed"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for row in (row for row in speed.FIRST if not row.is_peer and "unaligned" not in row.name):
        bar = row.bar()
        assert f"{bar.value:.2f} ({bar.low:.2f} to {bar.high:.2f})" in readme, row.name


def test_every_note_of_the_measurements_has_one_subject(tmp_path: Path) -> None:
    notes = [note for subject in measurements.SUBJECTS for note in measurements.notes_of(subject)]
    assert sorted(notes) == sorted(measurements.NOTES.glob("2*.md"))
    text = measurements.page("ampere", tmp_path)
    assert "| CUTLASS's Stream-K | 0.51 of cuBLAS | 0.31 to 0.77 | 64 | `shapes_h200_2026-11-20.json` |" in text
    assert len(list(tmp_path.glob("*.svg"))) == text.count("![") == 3
    dates = re.findall(r"^\| (2026-\d\d-\d\d) \|", measurements.page("hopper", tmp_path), re.MULTILINE)
    assert dates == sorted(dates, reverse=True) != []


def test_parameters_have_a_table() -> None:
    text = "Adds.\n\n``a`` and ``b`` are numbers; ``out``: where the sum goes. Raises nothing.\n\n>>> 1\n1"
    made = with_table(text, ["a", "b", "out", "loc"])
    assert made.endswith(
        "Args:\n    a: ``a`` and ``b`` are numbers\n    b: ``a`` and ``b`` are numbers\n    out: where the sum goes\n\n"
        ">>> 1\n1"
    )
    assert with_table("Args:\n    a: one", ["a", "b"]) == "Args:\n    a: one"
    assert with_table("No word of them.", ["x", "y"]) == "No word of them."


def test_each_compile_option_is_explained() -> None:
    for field in fields(options.CompileOptions):
        kind = next(v for v in vars(options).values() if getattr(v, "field", None) == field.name)
        said = api.entry_text(kind.__name__, f"{options.__name__}.{kind.__name__}")
        assert f"--{field.name.replace('_', '-')}" in said and len(said.rsplit(": ", 1)[1]) > 20, field.name
