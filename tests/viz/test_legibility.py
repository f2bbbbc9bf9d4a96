"""What every kind of picture keeps: labels that can be read, nothing cut off, nothing on top of something else."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from functools import cache

import pytest

from tests.viz.kinds import PICTURES, svg
from tests.viz.reading import NS
from tilewright.viz.colour import contrast

ADVANCE, RISE, DROP = 0.602, 0.76, 0.24  # of DejaVu Sans Mono, in ems


@dataclass(frozen=True)
class Label:
    text: str
    ink: str
    ground: str
    left: float
    top: float
    right: float
    bottom: float
    within: tuple[float, float, float, float] | None  # the rectangle below it, of the same group


def css(root: ET.Element) -> dict[str, dict[str, str]]:
    """The properties of each kind of text."""
    style = root.findtext(f"{NS}style") or ""
    rules = dict(re.findall(r"\.tilewright ([^{}]+)\{([^}]*)\}", style))
    return {
        name.removeprefix("text."): dict(part.split(":", 1) for part in body.split(";"))
        for name, body in rules.items()
        if name.startswith("text.") or name == ".c text"
    }


@cache
def labels(text: str) -> tuple[float, float, list[Label]]:
    """The size of a sheet, and its labels; read once for all tests."""
    root = ET.fromstring(text)
    styles = css(root)
    found: list[Label] = []
    sheet = (0.0, 0.0, float(root.get("width") or 0), float(root.get("height") or 0))
    drawn: list[tuple[tuple[float, float, float, float], str]] = [(sheet, "#ffffff")]

    def visit(element: ET.Element, inside: str) -> None:
        for child in element:
            if child.tag == f"{NS}rect":
                x, y, w, h = (float(child.get(name) or 0) for name in ("x", "y", "width", "height"))
                drawn.append(((x, y, x + w, y + h), child.get("fill") or ""))
            elif child.tag == f"{NS}text":
                found.append(label(child, inside))
            elif child.tag == f"{NS}g":
                visit(child, child.get("class") or inside)

    def label(element: ET.Element, inside: str) -> Label:
        style = styles[element.get("class") or ".c text"]
        assert element.get("class") or inside == "c"
        content, size = element.text or "", float(style["font-size"].removesuffix("px"))
        own = re.search(r"fill:(#\w+)", element.get("style") or "")
        ink = own.group(1) if own else style["fill"]
        x, base = float(element.get("x") or 0), float(element.get("y") or 0)
        width = len(content) * size * ADVANCE
        left = x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[style.get("text-anchor", "start")]
        middle = (left + width / 2, base - 0.36 * size)
        box, ground = next(
            (box, fill)
            for box, fill in reversed(drawn)
            if box[0] <= middle[0] <= box[2] and box[1] <= middle[1] <= box[3]
        )
        within = box if inside == "c" and box != sheet else None
        return Label(content, ink, ground, left, base - RISE * size, left + width, base + DROP * size, within)

    visit(root, "")
    return sheet[2], sheet[3], found


@pytest.mark.parametrize("name", PICTURES)
def test_every_label_has_contrast(name: str) -> None:
    _, _, found = labels(svg(name))
    assert found
    weak = [label for label in found if contrast(label.ink, label.ground) < 4.5]  # WCAG 2, level AA
    assert weak == []


@pytest.mark.parametrize("name", PICTURES)
def test_no_label_leaves_its_cell_or_the_sheet(name: str) -> None:
    width, height, found = labels(svg(name))
    for label in found:
        assert 0 <= label.left and label.right <= width and 0 <= label.top and label.bottom <= height, label
        if label.within is not None:
            left, top, right, bottom = label.within
            assert left <= label.left and label.right <= right, label
            assert top - 2 <= label.top and label.bottom <= bottom + 2, label


@pytest.mark.parametrize("name", [name for name in PICTURES if name != "large layout"])
def test_no_label_lies_on_another(name: str) -> None:
    _, _, found = labels(svg(name))
    found = sorted(found, key=lambda label: label.top)
    for number, one in enumerate(found):
        height = 0.25 * (one.bottom - one.top)  # capitals and digits are lower than a line
        for other in found[number + 1 :]:
            if other.top > one.bottom - 2 * height:
                break
            assert other.left >= one.right - 0.5 or one.left >= other.right - 0.5, (one, other)


def test_the_check_of_contrast_would_see_pale_text() -> None:
    text = svg("layout").replace(".c text{font-size:11px;fill:#10161c", ".c text{font-size:11px;fill:#9aa4ad")
    _, _, found = labels(text)
    assert any(contrast(label.ink, label.ground) < 4.5 for label in found)
