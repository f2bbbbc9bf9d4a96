"""The rules of tensor maps, on the numbers of one launch."""

from __future__ import annotations

import pytest

from tilewright.errors import ArgumentError
from tilewright.ir.tensormap import Leaf, Part, TensorMapTemplate
from tilewright.ir.types import F16

COLUMNS = Part("mode 0", Leaf(0, 0), Leaf(1), True)
ROWS, PLANES = (Part(f"mode {i}", Leaf(0, 2 * i - 1), Leaf(0, 2 * i), False) for i in (1, 2))


def matrix(address: int, columns: int, rows: int, stride: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Extents and strides (in bytes) of the map for f16 elements; ``stride`` counts elements."""
    made, *_ = TensorMapTemplate("x", F16, F16, ((COLUMNS,), (ROWS,)), (8, 8), 0)(address, columns, rows, stride)
    return tuple(made.dims), tuple(made.strides)


def test_a_row_begins_at_a_multiple_of_16_bytes() -> None:
    for stride in (8, 24, 64):
        assert matrix(0x1010, 8, 4, stride) == ((8, 4), (2 * stride,))
    for stride in (4, 12, 63):
        with pytest.raises(ArgumentError, match=f"not a multiple of 16 bytes: {2 * stride} bytes; pad it to"):
            matrix(0x1010, 8, 4, stride)
    with pytest.raises(ArgumentError, match="pad it to 16 elements of f16"):
        matrix(0x1010, 8, 4, 9)


@pytest.mark.parametrize("offset", [2, 8])
def test_the_address_is_a_multiple_of_16_bytes(offset: int) -> None:
    with pytest.raises(ArgumentError, match="is not a multiple of 16 bytes, which TMA needs"):
        matrix(0x1000 + offset, 8, 4, 8)


def test_nothing_steps_along_an_extent_of_one() -> None:
    assert matrix(0x1000, 8, 1, 9) == ((8, 1), (16,))
    assert matrix(0x1000, 8, 1, 24) == ((8, 1), (48,))


@pytest.mark.parametrize(
    ("rows", "planes", "steps"),
    [((4, 32), (3, 128), 4), ((4, 32), (3, 96), 3), ((4, 8), (1, 8), 1), ((1, 8), (3, 32), 4), ((1, 0), (1, 4), 1)],
)
def test_parts_that_share_a_mode_count_its_steps(rows: tuple[int, int], planes: tuple[int, int], steps: int) -> None:
    """How many steps of the shared mode one step of PLANES is: a step is 16 bytes at least."""
    template = TensorMapTemplate("x", F16, F16, ((COLUMNS,), (ROWS, PLANES)), (8, 8), 0, scales=(PLANES,))
    made, scale = template(0x1000, 8, *rows, *planes)
    if rows[0] > 1 and planes[0] > 1:
        assert scale * made.strides[0] == 2 * planes[1]
    assert scale == steps
