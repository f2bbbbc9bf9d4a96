"""Timelines: each bar stands where its span is, in the row of who it belongs to; arrows; all writers; bad input."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tilewright.errors import ArgumentError
from tilewright.sim import Trace
from tilewright.sim.tracing import Arrow, LaunchRecord, Phase, Span
from tilewright.sim.tracing.clocks import WaitSource
from tilewright.viz import timeline
from tilewright.viz.colour import distinct
from tilewright.viz.timeline_drawing import WIDTH, ticks
from tilewright.viz.timeline_figure import ENDS, WAIT

SVG = "{http://www.w3.org/2000/svg}"


def trace() -> Trace:
    """Warp 0 loads two stages, warps 4 to 7 wait for the first and multiply."""
    spans = [
        Span("run", 0, 3, 0, 0, 100),
        Span("load", 0, 3, 0, 100, 300, "tma.load.2d", 0, bytes=4096),
        Span("load", 0, 3, 0, 200, 400, "tma.load.2d", 1),
    ]
    arrows = []
    for warp in range(4, 8):
        spans += [
            Span("wait", 0, 3, warp, 0, 320, "full[0]", 0),
            Span("run", 0, 3, warp, 320, 500),
            Span("wgmma", 0, 3, warp, 350, 450, "wgmma", 0),
        ]
        arrows.append(Arrow(0, "load", 3, 0, 300, 3, warp, 320, "full[0]", 0))
    roles = {(0, 3, 0): "loads", **{(0, 3, w): "multiplies" for w in range(4, 8)}}
    return Trace([LaunchRecord("kernel", (4, 1, 1), (256, 1, 1), 0, 500)], spans, arrows, roles)


def test_rows_bars_and_arrows_of_the_svg() -> None:
    picture = timeline(trace(), blocks=(3,))
    names = ["warp 0 (loads)", "warps 4-7 (multiplies)", "TMA loads stage 0", "TMA loads stage 1", "wgmma warpgroup 1"]
    assert list(picture.rows) == names
    root = ElementTree.fromstring(picture.svg())
    texts = [t.text for t in root.iter(f"{SVG}text")]
    assert all(name in texts for name in names)
    groups = [g for g in root.iter(f"{SVG}g") if g.get("class") == "c"]
    bars = [(int(g.get("data-row", "-1")), g.find(f"{SVG}rect"), g.find(f"{SVG}title")) for g in groups]
    assert sorted(row for row, _, _ in bars) == [0, 1, 1, 2, 3, 4]
    left = min(float(r.get("x", "0")) for _, r, _ in bars if r is not None)
    load = next(r for row, r, _ in bars if row == 2)
    assert load is not None and load.get("fill") == distinct(0)
    assert float(load.get("x", "0")) - left == pytest.approx(100 / 500 * WIDTH, abs=0.2)
    assert float(load.get("width", "0")) == pytest.approx(200 / 500 * WIDTH, abs=0.2)
    remarks = {title.text for _, _, title in bars if title is not None}
    assert "waits for full[0]: 0 to 320" in remarks and "tma.load.2d: 100 to 300, 4096 bytes" in remarks
    (arrow,) = [p for p in root.iter(f"{SVG}path") if p.get("class") == "arrow"]
    x1, _, x2, _ = map(float, re.findall(r"[\d.]+", arrow.get("d", "")))
    assert x2 - x1 == pytest.approx(20 / 500 * WIDTH, abs=0.2)
    assert "full[0]" in texts and "stage 1" in texts


def test_a_part_of_the_time() -> None:
    picture = timeline(trace(), blocks=(3,), start=330, end=480, title="the end")
    assert picture.title == "the end" and (picture.start, picture.end) == (330, 480)
    assert {(b.row, b.start, b.end) for b in picture.bars} == {(1, 330, 480), (3, 330, 400), (4, 350, 450)}
    assert not picture.links


def test_text_and_tex() -> None:
    text = timeline(trace(), blocks=(3,)).text().splitlines()
    assert text[0] == "kernel" and text[1].endswith("500 cycles")
    row = next(line for line in text if "warps 4-7" in line).split("|")[1]
    assert row.count(".") == pytest.approx(320 / 500 * 96, abs=2)
    assert row.count("=") == pytest.approx(180 / 500 * 96, abs=2)
    tex = timeline(trace(), blocks=(3,)).tex()
    bars = re.findall(r"^\\cell\{.*?\}\{.*?\}\{(.*?)\}\{.*?\}", tex, re.MULTILINE)
    assert float(bars[0]) == pytest.approx(320 / 500 * WIDTH, abs=0.2)
    assert len(bars) == 6 + len(timeline(trace(), blocks=(3,)).legend)
    assert len(re.findall(r"^\\head", tex, re.MULTILINE)) == 1 and r"\end{document}" in tex
    assert r"{\captionfont}{cycles}" in tex and r"{\titlefont}{kernel}" in tex


def test_bad_input() -> None:
    with pytest.raises(ArgumentError, match="no launch 1"):
        timeline(trace(), launch=1)
    with pytest.raises(ArgumentError, match=r"no block \[0\]"):
        timeline(trace())
    with pytest.raises(ArgumentError, match="the launch takes 500"):
        timeline(trace(), blocks=(3,), start=400, end=300)


@pytest.mark.parametrize("end", [7, 100, 11590, 1e6])
def test_ticks_are_few(end: float) -> None:
    found = ticks(0, end)
    assert 4 <= len(found) <= 16 and found[0] == 0 and found[-1] <= end


def test_an_arrow_from_any_warp_of_a_row_leads_to_the_first_of_another() -> None:
    made = trace()
    ways = ((6, 0), (5, 4), (0, 6))
    made.arrows = [Arrow(0, "run", 3, warp, 420 + warp, 3, to, 450, "empty[0]", 0) for warp, to in ways]
    (link,) = timeline(made, blocks=(3,)).links
    assert (link.row, link.time, link.to_row, link.to_time) == (1, 426, 0, 450)


def test_barriers_and_stalls() -> None:
    made = trace()
    came = (WaitSource(90, "run", 3, 0), WaitSource(300, "load", 3, 0))
    made.phases.append(Phase(0, 3, "full[0]", 0, came))
    plain, picture = timeline(made, blocks=(3,)), timeline(made, blocks=(3,), barriers=True, stalls=True)
    assert list(picture.rows) == [*plain.rows, "full[0]"]
    (phase,) = [bar for bar in picture.bars if bar.row == len(plain.rows)]
    assert (phase.start, phase.end, phase.label) == (90, 300, "0")
    assert phase.remark == "full[0], phase 0: 2 arrivals from 90 to 300"
    (wait,) = [bar for bar in picture.bars if bar.label == "full[0]"]
    assert wait.fill == ENDS["TMA"] and (ENDS["TMA"], "waits for TMA") in picture.legend
    assert [bar for bar in plain.bars if bar.label == "full[0]"][0].fill == WAIT
    notes = [note for note in picture.notes if note.startswith("stall: ")]
    assert notes == ["stall: 64.0 % of the time of warps that play 'multiplies': full, ended by TMA"]
    text = picture.svg()
    assert ENDS["TMA"] in text and "stall: 64.0 %" in text
