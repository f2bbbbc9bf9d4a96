"""MMAs of blocks: which part each has, where operands and scale factors are, in which order MMAs are issued."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests import golden_blackwell_mma  # noqa: F401 - registers its handlers
from tests.golden import DATA, check, read
from tilewright.atoms.scale_factors import ScaleTile
from tilewright.atoms.tcgen05_layouts import cta_layouts, issue_order
from tilewright.atoms.tensor_memory import tmem_columns, tmem_place
from tilewright.errors import ConstraintError
from tilewright.layout import offsets

LINES = list(read(DATA / "blackwell_mma.jsonl"))
COUNTS = {
    "sm100_tiled_mma": 55,
    "sm100_partition": 25,
    "umma_fragment": 32,
    "sm100_gemm_trace": 33,
    "sm100_sf_layout": 24,
}


@pytest.mark.parametrize("op", COUNTS)
def test_every_line(op: str) -> None:
    problems = [f"{line['args']}: {problem}" for line in LINES if line["op"] == op and (problem := check(line))]
    assert not problems, "\n".join(problems)


def test_golden_blackwell_mma_covers_all_lines() -> None:
    assert Counter(line["op"] for line in LINES) == COUNTS


@pytest.mark.parametrize("ctas", [1, 2])
def test_blocks_have_every_element_once(ctas: int) -> None:
    m, n, k = 128, 48, 16
    made = cta_layouts((m, n, k), ctas)
    for layout, count in ((made.a, m * k), (made.b, n * k), (made.c, m * n)):
        assert sorted(offsets(layout).tolist()) == list(range(count))


@pytest.mark.parametrize("a_in_tmem", [False, True])
def test_serpentines_step_one_tile_at_a_time(a_in_tmem: bool) -> None:
    order = list(issue_order(3, 4, a_in_tmem))
    assert sorted(order) == [(m, n) for m in range(3) for n in range(4)]
    assert all(abs(m - i) + abs(n - j) == 1 for (m, n), (i, j) in zip(order, order[1:], strict=False))


@pytest.mark.parametrize(("vec", "mma_k"), [(32, 32), (32, 64), (16, 64)])
@pytest.mark.parametrize("rows", [64, 128, 192])
def test_the_copies_put_factors_where_the_layouts_say(rows: int, vec: int, mma_k: int) -> None:
    """Byte 16*r + 4*c + f of a block goes to lane r, column c, byte f, whichever MMA takes it."""
    tile = ScaleTile(rows, 8 * vec, vec, mma_k)
    smem, tmem = tile.smem_layout(), tile.tmem_layout()
    assert tile.columns == tmem_columns(tmem, 8) == 4 * tile.blocks
    for i in range(tile.k // mma_k):
        at_k = (i % (4 // tile.factors), i // (4 // tile.factors))
        for row in range(0, 128 * tile.row_blocks, 5):
            for f in range(tile.factors):
                r = ((row % 32, row // 32 % 4), row // 128)
                block, byte = divmod(smem(((r, (0, f)), 0, at_k)), 512)
                lane, column, sub = tmem_place(tmem(((((row % 32, row // 32), 0), (0, f)), 0, at_k)), 8)
                assert (lane, column, sub) == (byte // 16, 4 * block + byte // 4 % 4, byte % 4)
        address = tile.address(0, i)
        assert tmem_place(tmem(((((0, 0), 0), (0, 0)), 0, at_k)), 8) == (0, address & 0xFFFF, address >> 30)


def test_the_factors_are_there_for_all_warps() -> None:
    tmem = ScaleTile(128, 128, 32, 32).tmem_layout()
    places = [tmem_place(tmem(((((3, 1), warp), (0, 0)), 0, (2, 0))), 8) for warp in range(4)]
    assert places == [(3 + 32 * warp, 1, 2) for warp in range(4)]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: cta_layouts((128, 64, 16), 3), "not the work of 3 blocks"),
        (lambda: cta_layouts((128, 63, 16), 2), "2 halve M and N"),
        (lambda: ScaleTile(128, 64, 32, 32).smem_layout(), "make K of the tile a multiple of 128"),
        (lambda: ScaleTile(128, 256, 32, 96).tmem_layout(), "an MMA takes 1, 2 or 4"),
    ],
)
def test_refusals(make: Callable[[], object], why: str) -> None:
    with pytest.raises(ConstraintError, match=why):
        make()
