"""The picture of a TMA box: where chunks land, by the layout that the copy's shared memory has; what is refused."""

from __future__ import annotations

import pytest

from tilewright.errors import ArgumentError, ConstraintError
from tilewright.ir.types import F16, F32, ScalarType
from tilewright.layout import ComposedLayout, Layout, Swizzle
from tilewright.viz import tma_box_figure


@pytest.mark.parametrize(("swizzle", "bits", "line"), [(0, 0, 64), (32, 1, 16), (64, 2, 32), (128, 3, 64)])
@pytest.mark.parametrize("rows", [True, False])
def test_chunks_lie_where_the_layout_of_shared_memory_has_them(swizzle: int, bits: int, line: int, rows: bool) -> None:
    tensor = Layout((100, 72), (72, 1)) if rows else Layout((72, 100), (1, 72))
    box = (16, line) if rows else (line, 16)
    at = (92, 32) if rows else (32, 92)
    smem = ComposedLayout(Swizzle(bits, 3, 3), 0, Layout(box, (line, 1) if rows else (1, line)))
    memory = tma_box_figure(tensor, box, at, F16, swizzle=swizzle).panels[1]
    seen = {(cell.row * 8 + cell.column): cell.lines[0] for cell in memory.cells}
    assert len(seen) == 16 * line // 8
    for i in range(16):
        for j in range(0, line, 8):
            offset = smem((i, j) if rows else (j, i))
            inside = 92 + i < 100 and 32 + j < 72
            assert offset % 8 == 0 and seen[offset // 8] == (f"{92 + i}:{32 + j}" if inside else "0")


def test_a_chunk_that_is_partly_outside() -> None:
    figure = tma_box_figure(Layout((4, 68), (68, 1)), (4, 16), (0, 56), F32)
    assert "192 lie outside" not in figure.notes[0] and "64 lie outside" in figure.notes[0]
    figure = tma_box_figure(Layout((4, 68), (72, 1)), (4, 16), (-1, 56), F16)
    assert "4 outside: zeros" in next(cell.remark for cell in figure.panels[0].cells if cell.lines == ("0:64",))
    assert f"{2 * (16 + 3 * 4)} lie outside" in figure.notes[0]


@pytest.mark.parametrize(
    ("tensor", "box", "at", "element", "swizzle", "message"),
    [
        (Layout((8, 8), (16, 2)), (8, 8), (0, 0), F16, 0, "no matrix|not a matrix"),
        (Layout((64, 64), (64, 1)), (8, 64), (0, 0), F16, 48, "TMA swizzles 32, 64 or 128"),
        (Layout((64, 128), (128, 1)), (8, 128), (0, 0), F16, 128, "permutes 128"),
        (Layout((64, 64), (64, 1)), (8, 64), (0, 3), F16, 128, "not whole"),
        (Layout((64, 70), (70, 1)), (8, 64), (0, 0), F16, 128, "140"),
        (Layout((512, 64), (72, 1)), (512, 64), (0, 0), F16, 0, "512"),
    ],
)
def test_refusals(
    tensor: Layout, box: tuple[int, int], at: tuple[int, int], element: ScalarType, swizzle: int, message: str
) -> None:
    with pytest.raises((ArgumentError, ConstraintError), match=message):
        tma_box_figure(tensor, box, at, element, swizzle=swizzle)
