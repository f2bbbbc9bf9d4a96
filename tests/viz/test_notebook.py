"""What Jupyter asks of objects."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.viz.reading import read_svg
from tilewright import Float16
from tilewright.atoms.copy_table import COPIES
from tilewright.atoms.mma_sync_table import MMA_SYNC
from tilewright.errors import ArgumentError
from tilewright.layout import ComposedLayout, Layout, Swizzle, SymbolicInt
from tilewright.tiled import MmaAtom, make_copy_atom, make_tiled_copy_A, make_tiled_mma
from tilewright.viz import display_layout, display_svg, figure_of, print_latex

SWIZZLED = ComposedLayout(Swizzle(2, 0, 2), 0, Layout((4, 4), (4, 1)))


def test_layouts_draw_themselves() -> None:
    layout = Layout((4, 8))
    (panel,) = read_svg(layout._repr_svg_() or "").panels
    assert panel.numbers() == {(i, j): i + 4 * j for i in range(4) for j in range(8)}
    assert [p.title for p in read_svg(SWIZZLED._repr_svg_() or "").panels] == ["before", "after"]
    assert Layout((4, SymbolicInt("n")))._repr_svg_() is None


def test_tiled_objects_and_atoms_draw_themselves() -> None:
    mma = make_tiled_mma(MMA_SYNC["SM80_16x8x16_F32F16F16F32_TN"])
    copy = make_tiled_copy_A(make_copy_atom(COPIES["SM75_U32x4_LDSM_N"], Float16), mma)
    for thing in (mma, copy, mma.get_slice(3), copy.get_slice(3)):
        assert read_svg(thing._repr_svg_() or "").title.startswith("tiled ")
    assert len(read_svg(MmaAtom(mma.op)._repr_svg_() or "").panels) == 3


def test_the_algebra_loads_no_pictures() -> None:
    code = "import sys; from tilewright.layout import Layout; Layout(4); print('tilewright.viz' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_picture_of_anything_drawable() -> None:
    layout = Layout((4, 4), (4, 1))
    tiled_copy = SimpleNamespace(layout_src_tv_tiled=layout, layout_dst_tv_tiled=layout, tiler_mn=(4, 4))
    for thing, panels in [
        (layout, [""]),
        (SWIZZLED, ["before", "after"]),
        (MMA_SYNC["SM80_16x8x16_F32F16F16F32_TN"], ["B (K x N)", "A (M x K)", "C (M x N)"]),
        (COPIES["SM75_U32x4_LDSM_N"], ["source", "destination"]),
        (tiled_copy, ["source", "destination"]),
    ]:
        assert [panel.title for panel in figure_of(thing).panels] == panels
    with pytest.raises(ArgumentError, match="not a layout"):
        figure_of("layout")


def test_display_gives_what_a_notebook_draws(tmp_path) -> None:
    assert display_layout(SWIZZLED)._repr_svg_().startswith("<svg")
    (tmp_path / "x.svg").write_text("<svg/>")
    assert display_svg(tmp_path / "x.svg")._repr_svg_() == "<svg/>"


def test_results_show_themselves_as_print_does() -> None:
    from tilewright import cute, gemm, sim
    from tilewright.analysis import occupancy
    from tilewright.cute.runtime import from_dlpack
    from tilewright.layout import bank_conflicts
    from tilewright.sim.checks.collect import Report

    @cute.kernel
    def add(a: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        a[t] = a[t] + 1.0

    @cute.jit
    def run(a: cute.Tensor):
        add(a).launch(grid=(1, 1, 1), block=(32, 1, 1))

    x = from_dlpack(np.zeros(32, np.float32))
    compiled = cute.compile(run, x)
    with sim.trace() as trace:
        compiled(x)
    with sim.profile() as profile:
        compiled(x)
    report = gemm.gemm(np.ones((16, 16), np.float16), np.ones((16, 16), np.float16))
    column = bank_conflicts(Layout((8, 64), (64, 1)), Layout((8, 8), (1, 8)), 16, 8)
    for shown, words in [
        (compiled.kernels[0], ["kernel @add", "sreg"]),
        (compiled, ["compiled run (add)", "kernel @add", "host function run"]),
        (report, ["16 x 16 product by", "decomposition", "data_parallel"]),
        (occupancy(128, 64, 1024, "sm_90"), ["warps"]),
        (column, ["wavefronts"]),
        (profile, ["1 launch in", "add", "instructions", "bank conflicts"]),
        (Report(), ["the checks found nothing"]),
    ]:
        html = shown._repr_html_()
        ElementTree.fromstring(f"<div>{html}</div>")  # well-formed: nothing of the text is read as a tag
        text = "".join(ElementTree.fromstring(f"<div>{html}</div>").itertext())
        for word in words:
            assert word in text
        if shown is not compiled:
            assert all(word in str(shown) for word in words) and len(repr(shown)) < 100_000
    drawn = ElementTree.fromstring(trace._repr_svg_() or "")
    assert "add" in drawn.get("aria-label", "") and "cycles of the model" in str(trace) and "\n" not in repr(trace)
    assert read_svg(x._repr_svg_() or "").panels[0].words()[0, 31] == ["2"]


def test_a_stand_in_tensor_has_no_picture() -> None:
    from tilewright.cute.runtime import make_fake_compact_tensor

    assert make_fake_compact_tensor(Float16, (4, 4))._repr_svg_() is None


def test_ipython_takes_the_pictures_and_tables() -> None:
    formatter = pytest.importorskip("IPython.core.formatters").DisplayFormatter()
    data, _ = formatter.format(Layout((2, 2)))
    assert data["image/svg+xml"].startswith("<svg") and data["text/plain"] == "(2,2):(1,2)"
    data, _ = formatter.format(display_layout(SWIZZLED))
    assert data["image/svg+xml"].startswith("<svg") and "<Figure 'Sw<2,0,2>" in data["text/plain"]


def test_print_latex(capsys) -> None:
    print_latex(Layout((2, 2)))
    assert capsys.readouterr().out.startswith(r"\documentclass")
