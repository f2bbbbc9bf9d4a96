"""Reading drawings back: what a test needs to find every cell with its number."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field

NS = "{http://www.w3.org/2000/svg}"

CellPosition = tuple[int, int]
Segment = tuple[float, float, float, float]


@dataclass
class DrawnCell:
    lines: list[str]
    fill: str
    box: tuple[float, float, float, float]
    text_at: list[tuple[float, float]]
    remark: str


@dataclass
class DrawnPanel:
    title: str
    cells: dict[CellPosition, DrawnCell] = field(default_factory=dict)
    lines: dict[str, set[Segment]] = field(default_factory=dict)

    def words(self) -> dict[CellPosition, list[str]]:
        return {place: cell.lines for place, cell in self.cells.items()}

    def numbers(self) -> dict[CellPosition, int]:
        return {place: int(line) for place, (line,) in self.words().items()}


@dataclass
class Drawing:
    title: str
    width: float
    height: float
    font: float
    panels: list[DrawnPanel]
    legend: dict[str, str]
    captions: list[str]


def read_svg(text: str) -> Drawing:
    root = ET.fromstring(text)
    style = root.findtext(f"{NS}style") or ""
    font = float(re.search(r"\.c text\{font-size:([\d.]+)px", style).group(1))
    groups = root.findall(f"{NS}g")
    panels = [_panel(group) for group in groups if group.get("class") == "panel"]
    legend = {
        group.findtext(f"{NS}text") or "": group.find(f"{NS}rect").get("fill")
        for group in groups
        if group.get("class") == "legend"
    }
    captions = [element.text or "" for element in root.findall(f"{NS}text") if element.get("class") == "caption"]
    width, height = float(root.get("width") or 0), float(root.get("height") or 0)
    return Drawing(root.get("aria-label") or "", width, height, font, panels, legend, captions)


def _lines(group: ET.Element) -> dict[str, set[Segment]]:
    """The segments of each kind of line."""
    found: dict[str, set[Segment]] = {}
    for path in group.findall(f"{NS}path"):
        numbers = re.findall(r"M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)", path.get("d") or "")
        found.setdefault(path.get("class") or "", set()).update(tuple(map(float, n)) for n in numbers)
    return found


def _panel(group: ET.Element) -> DrawnPanel:
    titles = [element.text or "" for element in group.findall(f"{NS}text") if element.get("class") == "caption"]
    panel = DrawnPanel(titles[0] if titles else "", lines=_lines(group))
    for cell in group.findall(f"{NS}g"):
        place = int(cell.get("data-row") or 0), int(cell.get("data-column") or 0)
        assert place not in panel.cells
        rect, texts = cell.find(f"{NS}rect"), cell.findall(f"{NS}text")
        assert rect is not None
        panel.cells[place] = DrawnCell(
            [element.text or "" for element in texts],
            rect.get("fill") or "",
            tuple(float(rect.get(name) or 0) for name in ("x", "y", "width", "height")),
            [(float(element.get("x") or 0), float(element.get("y") or 0)) for element in texts],
            cell.findtext(f"{NS}title") or "",
        )
    return panel
