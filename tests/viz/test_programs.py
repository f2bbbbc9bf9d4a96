"""Programs that draw layouts from inside ``@cute.jit``, as published ones do, run with their imports changed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.viz.reading import read_svg
from tilewright import Float16, Float32, cute, cute_viz, viz
from tilewright.cute_viz import (
    display_layout,
    render_layout_svg,
    render_swizzle_layout_svg,
    render_tv_layout_svg,
)
from tilewright.errors import ArgumentError
from tilewright.layout import Layout, SymbolicInt


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


NAMES = (
    "render_layout_svg render_tv_layout_svg render_swizzle_layout_svg render_copy_layout_svg render_tiled_copy_svg "
    "render_mma_layout_svg render_mma_from_layouts render_tiled_mma_svg render_layout_slice_svg display_svg "
    "display_layout display_tv_layout display_swizzle_layout display_copy_layout display_tiled_copy "
    "display_mma_layout display_tiled_mma display_layout_slice tidfrg_S tidfrg_D"
)


def test_the_names_of_the_package_that_programs_import() -> None:
    assert set(NAMES.split()) <= set(cute_viz.__all__)
    assert all(getattr(cute_viz, name).__doc__ for name in cute_viz.__all__)


def test_nested_layouts_flat_or_with_their_tiles() -> None:
    layout = cute.make_layout(((2, 2), (3, 4)), stride=((1, 6), (2, 12)))
    for flat in (True, False):
        render_layout_svg(layout, "x.svg", flatten_hierarchical=flat)
        text = Path("x.svg").read_text()
        assert read_svg(text).panels == read_svg(display_layout(layout, flatten_hierarchical=flat).svg()).panels
        (panel,) = read_svg(text).panels
        assert bool(panel.lines) == (not flat)
        assert panel.numbers() == {(i, j): layout((i, j)) for i in range(4) for j in range(12)}
        outside = [group for group in text.splitlines() if 'class="group"' in group]
        assert len(outside) == (0 if flat else 4)
    assert Path("x.svg").read_text() != display_layout(layout).svg()  # flat by default


def test_copies_by_their_layouts_or_tensors() -> None:
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32, num_bits_per_copy=64)
    tiled = cute.make_tiled_copy_tv(
        atom, cute.make_ordered_layout((4, 8), order=(1, 0)), cute.make_ordered_layout((1, 2), order=(1, 0))
    )
    layout_s, layout_d = cute_viz.tidfrg_S(tiled, (4, 16)), cute_viz.tidfrg_D(tiled, (4, 16))
    for thread in range(32):
        for value in range(2):
            assert layout_s[thread, value] == layout_d[thread, value] == (thread // 8, 2 * (thread % 8) + value)
    cute_viz.render_copy_layout_svg(layout_s, layout_d, (4, 16), "copy.svg")
    cute_viz.render_tiled_copy_svg(tiled, (4, 16), "tiled.svg")
    one, two = (read_svg(Path(name).read_text()).panels for name in ("copy.svg", "tiled.svg"))
    assert [panel.words() for panel in one] == [panel.words() for panel in two]
    assert cute_viz.display_copy_layout(layout_s, layout_d, (4, 16)).svg() == Path("copy.svg").read_text()
    with pytest.raises(ArgumentError, match=r"the tile \(4, 4\) is not that of the tiled copy, \(4, 16\)"):
        cute_viz.tidfrg_S(tiled, (4, 4))


def test_mmas_by_both_names_and_from_layouts() -> None:
    tiled = mma()
    cute_viz.render_mma_layout_svg(tiled, (16, 8, 16), "one.svg")
    cute_viz.render_tiled_mma_svg(tiled, (16, 8, 16), "two.svg")
    assert Path("one.svg").read_text() == Path("two.svg").read_text()
    assert cute_viz.display_mma_layout(tiled, (16, 8, 16)) == cute_viz.display_tiled_mma(tiled, (16, 8, 16))
    cute_viz.render_mma_from_layouts(tiled.tv_layout_C, tiled.tv_layout_A, tiled.tv_layout_B, (16, 8, 16), "three.svg")
    one, three = (read_svg(Path(name).read_text()).panels for name in ("one.svg", "three.svg"))
    assert [panel.words() for panel in one] == [panel.words() for panel in three]


def test_slices() -> None:
    layout = cute.make_layout((4, 4), stride=(4, 1))
    cute_viz.render_layout_slice_svg(layout, (1, None), "x.svg")
    assert Path("x.svg").read_text() == cute_viz.display_layout_slice(layout, (1, None)).svg()
    (panel,) = read_svg(Path("x.svg").read_text()).panels
    assert {place for place, cell in panel.cells.items() if cell.fill != "#ffffff"} == {(1, j) for j in range(4)}


def test_programs_that_import_cute_viz_find_it_here() -> None:
    code = (
        "import tilewright.compat as c; c.install(replace=True); import cute_viz, tilewright.cute_viz as own\n"
        "from cutlass import cute; print(cute_viz is own, cute_viz.display_layout(cute.make_layout((2, 2))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stdout.splitlines()[0] == "True (2,2):(1,2)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cute_viz.render_layout_svg(cute.make_layout(4), "x.gif"), "must end in one of .svg, .png"),
        (lambda: cute_viz.render_layout_svg(cute.make_layout(4), 5), "5: it is not the path of a file"),
        (lambda: cute_viz.render_layout_svg(Layout(()), "x.svg"), "it has no modes"),
        (lambda: cute_viz.render_layout_svg("4:1", "x.svg"), "'4:1': it is not a layout"),
        (lambda: cute_viz.render_layout_svg(Layout((4, SymbolicInt("n"))), "x.svg"), "it has run-time integers"),
        (lambda: cute_viz.render_tv_layout_svg(Layout((2, 2)), (0, 2), "x.svg"), "its extents must be positive"),
        (lambda: cute_viz.render_tv_layout_svg(Layout((2, 2)), "ab", "x.svg"), "its extents must be known"),
        (lambda: cute_viz.render_tv_layout_svg(Layout(4), (2, 2), "x.svg"), "must have the modes"),
        (lambda: cute_viz.render_tv_layout_svg(Layout((1 << 12, 1 << 12)), (4096, 4096), "x.svg"), "are too many"),
        (lambda: cute_viz.render_tiled_mma_svg(mma(), (16, 8), "x.svg"), r"must have the modes \(M, N, K\)"),
        (lambda: cute_viz.render_tiled_copy_svg(mma(), (16, 8), "x.svg"), "object of type TiledMma here: it has no"),
        (lambda: cute_viz.display_tiled_mma(Layout(4)), "object of type Layout here: it has no"),
        (lambda: cute_viz.tidfrg_S(mma(), (16, 8)), "TiledMma is not a tiled copy"),
        (lambda: cute_viz.display_svg("missing.svg"), "cannot read missing.svg"),
        (lambda: cute_viz.display_svg(None), "it is not the path of an SVG file"),
        (lambda: viz.raster_figure("along_m", (2.5, 4)), "all must be integers"),
        (lambda: viz.raster_figure("along_m", (4,)), "their numbers along M and N are needed"),
        (lambda: viz.raster_figure("along_m", (1024, 1024)), "is too large"),
        (lambda: viz.raster_figure("along_m", (4, 4), concurrent=0), "0 blocks cannot run together"),
        (lambda: viz.retile_figure(Layout(4), mma()), "object of type Layout is not a tiled copy"),
        (lambda: viz.bank_figure(Layout((8, 8)), 0), "0 bits have no banks"),
        (lambda: viz.timeline(3), "has no timeline"),
    ],
)
def test_mistakes_end_in_one_error(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()
    assert not list(Path().iterdir())


def test_a_tile_repeated_over_a_large_one_is_evaluated_where_it_is_drawn() -> None:
    figure = cute_viz.display_tiled_mma(mma(), (1 << 14, 1 << 14, 16))
    assert figure.all_notes()[0].startswith("left out")
    (c,) = [panel for panel in figure.panels if panel.title.startswith("C")]
    last = max(c.cells, key=lambda cell: (cell.row, cell.column))
    assert (last.row, last.column) == ((1 << 14) - 1, (1 << 14) - 1) and last.lines == ("T31", "V3")


def mma() -> Any:
    return cute.make_tiled_mma(cute.nvgpu.warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16)))
