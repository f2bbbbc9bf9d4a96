"""Programs that draw layouts from inside ``@cute.jit``, as published ones do, run with their imports changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.viz.reading import read_svg
from tilewright import cute
from tilewright.cute_viz import (
    display_layout,
    render_layout_svg,
    render_swizzle_layout_svg,
    render_tv_layout_svg,
)


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def numbers(path: str) -> list[dict[tuple[int, int], int]]:
    return [panel.numbers() for panel in read_svg(Path(path).read_text()).panels]


def test_a_layout_and_its_swizzle() -> None:
    @cute.jit
    def draw():
        layout_2d = cute.make_layout((8, 32), stride=(32, 1))
        sw = cute.make_swizzle(3, 2, 3)
        swizzled_layout = cute.make_composed_layout(sw, 0, layout_2d)
        render_layout_svg(layout_2d, "out/original_layout.svg")
        render_swizzle_layout_svg(swizzled_layout, "out/swizzled_layout.svg")

    draw()
    (plain,) = numbers("out/original_layout.svg")
    assert plain == {(i, j): 32 * i + j for i in range(8) for j in range(32)}
    before, after = numbers("out/swizzled_layout.svg")
    assert before == plain
    assert after == {(i, j): 32 * i + (j ^ (i % 8) << 2) for i in range(8) for j in range(32)}


def test_a_swizzle_of_single_elements() -> None:
    @cute.jit
    def draw():
        layout_2d = cute.make_layout((32, 16), stride=(16, 1))
        sw = cute.make_swizzle(4, 0, 4)
        swizzled_layout = cute.make_composed_layout(sw, 0, layout_2d)
        render_swizzle_layout_svg(swizzled_layout, "out/swizzled_layout.svg")

    draw()
    _, after = numbers("out/swizzled_layout.svg")
    assert after == {(i, j): 16 * i + (j ^ i % 16) for i in range(32) for j in range(16)}


def test_thread_value_layouts() -> None:
    @cute.jit
    def draw():
        tiler_mn, tv_layout = cute.make_layout_tv(
            cute.make_layout((16, 4), stride=(1, 16)), cute.make_layout((4, 1), stride=(1, 0))
        )
        render_tv_layout_svg(tv_layout, tiler_mn, "out/tv_layout.svg")
        return display_layout(tv_layout)

    draw()
    (panel,) = read_svg(Path("out/tv_layout.svg").read_text()).panels
    assert panel.words() == {(i, j): [f"T{i // 4 + 16 * j}", f"V{i % 4}"] for i in range(64) for j in range(4)}
