"""Pictures of tcgen05: blocks, lanes and columns as PTX has them ("Data Path Layout Organization", "Scale factors")."""

from __future__ import annotations

import pytest

from tilewright.atoms.tcgen05_names import EXAMPLES
from tilewright.errors import ArgumentError
from tilewright.explorer.instructions import find, names, summary
from tilewright.viz import (
    Panel,
    copy_atom_figure,
    figure_of,
    mma_atom_figure,
    scale_factors_figure,
    tensor_memory_figure,
)

ONE, _, PAIR, MXF8, NVF4, *_ = EXAMPLES
HALF = "SM100_64x32x16_F32F16F16_SS<K,K>"
SMALL_PAIR = "SM100_128x64x16_F32BF16BF16_2x1SM_SS<K,K>"


def cells(panel: Panel) -> dict[tuple[int, int], tuple[str, ...]]:
    return {(cell.row, cell.column): cell.lines for cell in panel.cells}


def test_each_instruction_of_sm_100_is_found_and_drawn() -> None:
    listed = [name for name in names() if name.startswith("SM100_")]
    assert len(listed) == len(EXAMPLES) + 2 * 5 + 2 * 6
    for name in listed:
        atom = find(name)
        assert atom.cute_name == name and figure_of(atom).panels
    assert summary(find(PAIR)) == "256 x 64 x 16 by a pair of blocks"
    for wrong in ("SM100_128x64x8_F32BF16BF16_SS<K,K>", "SM100_TMEM_LOAD_32x32b3x"):
        with pytest.raises(ArgumentError, match="there is no atom"):
            find(wrong)


def test_operands_of_a_pair() -> None:
    b, a, c = mma_atom_figure(find(PAIR)).panels
    assert all(text == (f"s{row // 128}",) for (row, _), text in cells(a).items())
    assert all(text == (f"s{column // 32}",) for (_, column), text in cells(b).items())
    assert all(text == (f"{row % 128}:{column}",) for (row, column), text in cells(c).items())
    assert {row for row, _ in cells(a)} == {row for row, _ in cells(c)}
    assert {column for _, column in cells(b)} == {column for _, column in cells(c)}


def test_a_pair_with_64_rows_each_has_halves_of_n_in_lanes_of_their_own() -> None:
    found = tensor_memory_figure(find(SMALL_PAIR)).panels
    for block, panel in enumerate(found):
        for (lane, column), text in cells(panel).items():
            assert text == (f"{64 * block + lane % 64},{column + 32 * (lane // 64)}",)


def test_64_rows_leave_every_other_16_lanes_free() -> None:
    figure = tensor_memory_figure(find(HALF), find("SM100_TMEM_LOAD_16x256b1x"))
    for (lane, column), text in cells(figure.panels[0]).items():
        warp, within = divmod(lane, 32)
        # PTX ISA, "Matrix fragments for shape .16x256b": a thread has two columns of lane t / 4 and of 8 lanes below.
        thread, register = 32 * warp + within % 8 * 4 + column % 8 // 2, column % 2 + 2 * (within // 8)
        expected = (f"{16 * warp + within},{column}", f"T{thread}", f"r{register}")
        assert text == (expected if within < 16 else ())
    with pytest.raises(ArgumentError, match="lane 16, column 0, where there is no accumulator"):
        tensor_memory_figure(find(HALF), find("SM100_TMEM_LOAD_32x32b8x"))


def test_loads_and_copies() -> None:
    held = cells(copy_atom_figure(find("SM100_TMEM_LOAD_32x32b2x_16b")).panels[0])
    assert held[5, 3] == ("T5", "r1", "hi") and held[5, 2] == ("T5", "r1", "lo") and len(held) == 32 * 4
    own = copy_atom_figure(find("SM100_TMEM_STORE_32x32b4x"), thread=7)
    assert {place: text for place, text in cells(own.panels[0]).items() if text} == {
        (7, register): ("T7", f"r{register}") for register in range(4)
    }
    source, copied = copy_atom_figure(find("SM100_UTCCP_4x32dp128bit_1cta")).panels
    assert all(text == (f"{lane % 32}.{word}",) for (lane, word), text in cells(copied).items())
    assert cells(source)[31, 2] == ("31.2",)


@pytest.mark.parametrize(("name", "operand", "vec"), [(MXF8, "A", 32), (NVF4, "B", 16)])
def test_scale_factors(name: str, operand: str, vec: int) -> None:
    blocks = 2
    figure = scale_factors_figure(find(name), operand, 4 * vec * blocks)
    shared, memory = map(cells, figure.panels)
    for block in range(blocks):
        for row in (0, 2, 31, 33, 98, 127):
            for factor in range(4):
                text = (str(row), f"f{4 * block + factor}")
                assert shared[32 * block + row % 32, row // 32 * 4 + factor] == text
                assert memory[row % 32, 16 * block + row // 32 * 4 + factor] == text
    assert any("64 rows" in note for note in figure.notes) == (operand == "B")


def test_threads_are_not_asked_for() -> None:
    for draw, name in ((mma_atom_figure, ONE), (copy_atom_figure, "SM100_UTCCP_128dp256bit_1cta")):
        with pytest.raises(ArgumentError, match="in shared and tensor memory, not in threads"):
            draw(find(name), thread=0)
    with pytest.raises(ArgumentError, match="has no scale factors"):
        scale_factors_figure(find(ONE))
    with pytest.raises(ArgumentError, match="it is not a tcgen05.mma"):
        tensor_memory_figure(find("SM80_16x8x16_F32F16F16F32_TN"))
