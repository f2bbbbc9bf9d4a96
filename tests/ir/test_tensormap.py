"""The rules of tensor maps, on the numbers of one launch."""

from __future__ import annotations

import pytest

from tilewright.errors import ArgumentError
from tilewright.ir.runtime import DevicePointer
from tilewright.ir.tensormap import Leaf, ModePart, TensorMap, TensorMapTemplate
from tilewright.ir.types import BF16, F16, U32

COLUMNS = ModePart("mode 0", Leaf(0, 0), Leaf(1), True)
ROWS, PLANES = (ModePart(f"mode {i}", Leaf(0, 2 * i - 1), Leaf(0, 2 * i), False) for i in (1, 2))


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


@pytest.mark.parametrize("rank", range(1, 6))
def test_a_map_is_read_back_from_its_image(rank: int) -> None:
    given = TensorMap(0x1010, BF16, [8, 4, 3, 2, 5][:rank], [16, 64, 192, 384][: rank - 1], [8, 2, 1, 1, 5][:rank], 2)
    assert str(TensorMap.of_image(given.image())) == str(given)


@pytest.mark.parametrize("rank", [0, 1, 5, 6])
@pytest.mark.parametrize("marked", [True, False])
def test_other_memory_is_no_tensor_map(marked: bool, rank: int) -> None:
    words = TensorMap(0, F16, [8], [], [8], 0).image()
    words[1] = (int(words[1]) & ~0xFF | rank) ^ (0 if marked else 1 << 40)
    assert (TensorMap.of_image(words) is not None) == (marked and 1 <= rank <= 5)


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_only_a_map_for_the_simulator_keeps_its_array(device: str) -> None:
    """A map in the memory of launches would keep an array of the GPU alive, which it knows by the address alone."""
    owner = object()
    template = TensorMapTemplate("x", F16, F16, ((COLUMNS,), (ROWS,)), (8, 8), 0)
    pointer = DevicePointer(0x1000, device, 0x1000, 0x2000, owner)
    made = template(pointer, 8, 4, 8)
    assert (made[0].pointer.owner is owner) == (device == "cpu")
    assert (template(pointer, 8, 4, 8) is made) == (device != "cpu")
    assert template(pointer, 8, 4, 16)[0].strides != made[0].strides
    assert template(pointer + 16, 8, 4, 8)[0].address == 0x1010


@pytest.mark.parametrize(
    ("columns", "rows", "stride", "words"),
    [
        (8, 1 << 32, 8, ""),
        (8, (1 << 32) + 1, 8, "is 4294967297, more than 2.32"),
        (8, 0, 8, r"mode 1 .* is less than 1 \(0\)"),
        (0, 4, 8, r"mode 0 .* is less than 1 \(0\)"),
        (8, 4, (1 << 39) - 8, ""),
        (8, 4, 1 << 39, "bytes; TMA takes less than 2.40"),
        (8, 4, -8, r"is negative \(-8\); TMA steps forwards only"),
    ],
)
def test_the_largest_and_the_least(columns: int, rows: int, stride: int, words: str) -> None:
    if not words:
        assert matrix(0x1000, columns, rows, stride) == ((columns, rows), (2 * stride,))
        return
    with pytest.raises(ArgumentError, match=words):
        matrix(0x1000, columns, rows, stride)


@pytest.mark.parametrize("columns", [7, 8])
def test_wider_elements_than_the_tensors(columns: int) -> None:
    template = TensorMapTemplate("x", F16, U32, ((COLUMNS,), (ROWS,)), (4, 8), 0)
    if columns % 2 == 0:
        assert template(0x1000, columns, 4, 8)[0].dims == (columns // 2, 4)
        return
    with pytest.raises(ArgumentError, match=f"the {columns} elements of f16 along mode 0 .* not a whole number of u32"):
        template(0x1000, columns, 4, 8)
