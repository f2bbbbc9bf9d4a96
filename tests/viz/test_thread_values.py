"""Thread-value pictures put every (thread, value) where the layout says."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from tests.viz.reading import DrawnPanel, read_svg
from tilewright import Float16, cute
from tilewright.atoms.copy_table import COPIES
from tilewright.atoms.mma_sync_table import MMA_SYNC
from tilewright.atoms.names import copy_by_name, mma_by_name
from tilewright.errors import ArgumentError
from tilewright.layout import Layout, make_layout_tv, parse, product
from tilewright.tiled import make_copy_atom, make_tiled_copy_A, make_tiled_mma
from tilewright.viz import copy_atom_figure, mma_atom_figure, mma_figure, tiled_copy_figure, tiled_mma_figure, tv_figure
from tilewright.viz.colour import thread_colour

# SM80_16x8x16_F32F16F16F32_TN and SM75_U32x4_LDSM_N of CuTe
MMA_A = parse("((4,8),(2,2,2)):((32,1),(16,8,128))")
MMA_B = parse("((4,8),(2,2)):((16,1),(8,64))")
MMA_C = parse("((4,8),(2,2)):((32,1),(16,8))")
LDSM_SRC = parse("(32,8):(8,1)")
LDSM_DST = parse("(32,(2,4)):(2,(1,64))")


def owners(layout: Layout, rows: int) -> dict[tuple[int, int], list[str]]:
    """The words of each cell by brute force, for layouts in which each element has one owner."""
    threads, values = (product(mode) for mode in layout.shape)
    result = {}
    for t in range(threads):
        for v in range(values):
            index = layout((t, v))
            result[index % rows, index // rows] = [f"T{t}", f"V{v}"]
    return result


def flipped(words: dict[tuple[int, int], list[str]]) -> dict[tuple[int, int], list[str]]:
    return {(j, i): lines for (i, j), lines in words.items()}


def colours_follow_threads(panel: DrawnPanel, threads: int) -> bool:
    return all(cell.fill == thread_colour(int(cell.lines[0][1:]), threads) for cell in panel.cells.values())


@pytest.mark.parametrize(
    ("layout", "tile"),
    [
        (MMA_C, (16, 8)),
        (MMA_A, (16, 16)),
        (Layout(((2, 2, 2), (2, 2, 2)), ((1, 16, 4), (8, 2, 32))), (8, 8)),
        (Layout((32, 4), (4, 1)), 128),
        (Layout((128, 2), (2, 1)), (16, (4, 4))),
    ],
)
def test_every_element_shows_its_thread_and_value(layout: Layout, tile: object) -> None:
    drawing = read_svg(tv_figure(layout, tile).svg())
    (panel,) = drawing.panels
    rows = tile[0] if isinstance(tile, tuple) else 1
    assert panel.words() == owners(layout, rows)
    threads = product(layout.shape[0])
    assert colours_follow_threads(panel, threads)
    assert len(drawing.legend) == (threads // 4 if threads <= 32 else threads // 32)
    first, name = (4, "T4 to T7") if threads <= 32 else (32, "warp 1 (T32 to T63)")
    assert drawing.legend[name] == thread_colour(first, threads)


def test_the_layout_of_make_layout_tv_with_its_tiler() -> None:
    tiler, layout = make_layout_tv(Layout((4, 8), (8, 1)), Layout((2, 2), (2, 1)))
    (panel,) = read_svg(tv_figure(layout, tiler).svg()).panels
    assert panel.words() == owners(layout, product(tiler[0]))


def test_elements_of_several_owners_say_so_and_those_of_none_are_blank() -> None:
    drawing = read_svg(tv_figure(parse("((2,2),2):((0,1),2)"), (2, 3)).svg())
    (panel,) = drawing.panels
    assert panel.words() == {
        (0, 0): ["T0", "V0", "+1"],
        (0, 1): ["T0", "V1", "+1"],
        (0, 2): [],
        (1, 0): ["T2", "V0", "+1"],
        (1, 1): ["T2", "V1", "+1"],
        (1, 2): [],
    }
    assert "T0 V0, T1 V0" in panel.cells[0, 0].remark
    assert panel.cells[1, 2].fill == "#ffffff"
    assert any(caption.startswith("+n:") for caption in drawing.captions)


def test_an_operand_in_shared_memory_is_every_threads() -> None:
    layout = parse("(128,(8,4)):(0,(1,8))")
    (panel,) = read_svg(tv_figure(layout, (8, 4)).svg()).panels
    assert panel.title == "read by every thread"
    assert panel.words() == {(i, j): [f"V{i + 8 * j}"] for i in range(8) for j in range(4)}


def test_mma_figure_places_operands_around_the_result() -> None:
    b, a, c = read_svg(mma_figure(MMA_A, MMA_B, MMA_C, (16, 8, 16)).svg()).panels
    assert a.words() == owners(MMA_A, 16)
    assert b.words() == flipped(owners(MMA_B, 8))
    assert c.words() == owners(MMA_C, 16)
    for row in range(16):
        assert a.cells[row, 0].box[1] == c.cells[row, 0].box[1]  # rows of A run into rows of C
    for column in range(8):
        assert b.cells[0, column].box[0] == c.cells[0, column].box[0]  # columns of B run down into columns of C
    assert b.cells[15, 0].box[1] < c.cells[0, 0].box[1] and a.cells[0, 15].box[0] < c.cells[0, 0].box[0]


def test_a_tiled_mma_is_drawn_as_its_thread_slices_see_it() -> None:
    tiled = make_tiled_mma(MMA_SYNC["SM80_16x8x16_F32F16F16F32_TN"], (2, 2, 1), (32, 32, 16))
    drawing = read_svg(tiled_mma_figure(tiled, (32, 32, 32)).svg())
    assert drawing.title == "tiled MMA of SM80_16x8x16_F32F16F16F32_TN: 32 x 32 x 16 on 32 x 32 x 32"
    b, a, c = drawing.panels
    assert c.words() == owners(tiled.tv_layout_C_tiled, 32)
    tile = cute.make_identity_tensor((32, 32))
    for thread in (0, 5, 37, 127):
        mine = tiled.get_slice(thread).partition_C(tile)
        drawn = {place for place, lines in c.words().items() if lines[0] == f"T{thread}"}
        assert drawn == {mine[index] for index in range(cute.size(mine))}
    (first,) = {cell.remark.partition(": ")[2] for place, cell in a.cells.items() if place in ((0, 0), (0, 16))}
    assert first == "T0 V0, T64 V0"  # two warps along N read the same rows of A, and K repeats after 16
    assert b.words()[0, 0] == ["T0", "V0", "+1"]


def test_a_tiled_copy_is_drawn_as_its_thread_slices_see_it() -> None:
    atom = make_copy_atom(COPIES["SM75_U32x4_LDSM_N"], Float16)
    tiled_mma = make_tiled_mma(MMA_SYNC["SM80_16x8x16_F32F16F16F32_TN"], (2, 2, 1), (32, 32, 16))
    tiled = make_tiled_copy_A(atom, tiled_mma)
    drawing = read_svg(tiled_copy_figure(tiled).svg())
    assert drawing.title == "tiled copy of SM75_U32x4_LDSM_N: 32 x 16 on 32 x 16"
    tile = cute.make_identity_tensor((32, 16))
    for thread in (0, 9, 64, 127):
        slices = tiled.get_slice(thread)
        for panel, mine in zip(drawing.panels, (slices.partition_S(tile), slices.partition_D(tile)), strict=True):
            drawn = {place for place, cell in panel.cells.items() if re.search(rf"\bT{thread} ", cell.remark)}
            assert drawn == {mine[index] for index in range(cute.size(mine))}


def test_a_tile_is_repeated_over_a_larger_one() -> None:
    layout = Layout((4, 4), (4, 1))
    copy = SimpleNamespace(layout_src_tv_tiled=layout, layout_dst_tv_tiled=Layout((4, 4), (1, 4)), tiler_mn=(4, 4))
    source, destination = read_svg(tiled_copy_figure(copy, (8, 4)).svg()).panels
    once = owners(layout, 4)
    assert source.words() == {(i, j): once[i % 4, j] for i in range(8) for j in range(4)}
    assert destination.words()[7, 1] == once[1, 3]


def test_a_copy_atom_has_a_source_row_to_a_line() -> None:
    atom = SimpleNamespace(layout_src_tv=LDSM_SRC, layout_dst_tv=LDSM_DST)
    source, destination = read_svg(copy_atom_figure(atom).svg()).panels
    assert source.words() == {(t, v): [f"T{t}", f"V{v}"] for t in range(32) for v in range(8)}
    # Thread t receives, of each 8x8 matrix, two neighbours in row t // 4.
    assert destination.words()[8 + 3, 2 * 1 + 1] == ["T13", "V3"]


@pytest.mark.parametrize("name", sorted(MMA_SYNC))
def test_every_mma_atom_shows_every_register(name: str) -> None:
    atom = MMA_SYNC[name]
    figure = read_svg(mma_atom_figure(atom).svg())
    assert figure.title == name
    for panel, layout in zip(figure.panels, (atom.layout_b, atom.layout_a, atom.layout_c), strict=True):
        shown = {tuple(cell.lines[:2]) for cell in panel.cells.values()}
        remarks = " ".join(cell.remark for cell in panel.cells.values())
        values = product(layout.shape[1])
        for thread in range(product(layout.shape[0])):
            for value in range(values):
                assert (f"T{thread}", f"V{value}") in shown or f"T{thread} V{value}" in remarks


@pytest.mark.parametrize("name", sorted(COPIES))
def test_every_copy_atom_shows_every_value(name: str) -> None:
    atom = COPIES[name]
    source, destination = read_svg(copy_atom_figure(atom, 8).svg()).panels
    for panel, layout in ((source, atom.src_bits), (destination, atom.dst_bits)):
        remarks = " ".join(cell.remark for cell in panel.cells.values())
        for thread in range(product(layout.shape[0])):
            for value in range(product(layout.shape[1]) // 8):
                assert re.search(rf"\bT{thread} V{value}\b", remarks)


def test_tv_figure_refuses_wrong_layouts() -> None:
    with pytest.raises(ArgumentError, match=r"thread 2, value 1 at \(0, 3\), outside the 4 x 3 tile"):
        tv_figure(Layout((4, 2), (1, 10)), (4, 3))
    with pytest.raises(ArgumentError, match=r"modes \(thread, value\)"):
        tv_figure(Layout((2, 2, 2)), (4, 2))
    with pytest.raises(ArgumentError, match="rank 3"):
        tv_figure(Layout((2, 2)), (2, 2, 1))
    with pytest.raises(ArgumentError, match="tv_layout_A"):
        mma_atom_figure(object())


@pytest.mark.parametrize("name", [name for name in COPIES if "LDSM" in name or "STSM" in name])
def test_the_matrices_of_ldmatrix_and_stmatrix_are_apart(name: str) -> None:
    count = copy_by_name(name).num_matrices
    drawn = copy_atom_figure(copy_by_name(name))
    memory, registers = drawn.panels if "LDSM" in name else drawn.panels[::-1]
    assert len(memory.row_axis.groups) == len(registers.row_axis.groups) == (count if count > 1 else 0)
    for first, last, title in memory.row_axis.groups:
        n = int(title.removeprefix("matrix "))
        held = {word for cell in memory.cells if first <= cell.row < last for word in cell.lines if word[0] == "T"}
        assert held == {f"T{thread}" for thread in range(8 * n, 8 * n + 8)}, "lane 8n + i gives the row i of matrix n"
        held = {word for cell in registers.cells if first <= cell.row < last for word in cell.lines if word[0] == "V"}
        assert held == {f"V{2 * n}", f"V{2 * n + 1}"}


def test_a_picture_of_a_warpgroup_fits_a_screen_and_tells_threads_apart() -> None:
    figure = mma_atom_figure(mma_by_name("SM90_64x64x16_F32F16F16_RS<K,K>"))
    small = figure.small()
    width, height = (float(found) for found in re.findall(r'(?:width|height)="([\d.]+)"', small.svg())[:2])
    assert width < 760 and height < 900
    _, a, c = small.panels
    assert len({cell.fill for cell in a.cells}) == len({cell.fill for cell in c.cells}) == 128
    assert (c.cells[64 + 6].remark, a.cells[16 + 6].remark) == ("(1,6): T7 V0", "(1,6): T7 V0")
    assert [panel.borders for panel in small.panels] == [panel.borders for panel in figure.panels]


def test_operands_of_wgmma_in_shared_memory_have_the_colours_of_what_they_are_for() -> None:
    figure = mma_atom_figure(mma_by_name("SM90_64x16x16_F32F16F16_SS<K,K>"))
    b, a, c = ({(cell.row, cell.column): cell.fill for cell in panel.cells} for panel in figure.panels)
    assert all(a[row, column] == c[row, 0] for row in range(64) for column in range(16))
    assert len({c[row, 0] for row in range(0, 64, 16)}) == 4, "a hue for each warp"
    first, second = b[0, 0], b[8, 0]
    assert first != second
    for (k, n), fill in b.items():
        assert fill == (first if k // 8 == n // 8 else second), "core matrices of 8 x 8 halves"
    assert [note.split(":")[0] for note in figure.notes if note[:2] in ("A:", "B:")] == ["A", "B"]
