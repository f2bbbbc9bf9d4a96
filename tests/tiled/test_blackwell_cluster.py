"""Clusters of sm_100: who shares operands, which tile a block has, which atom an operand gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests import golden_blackwell_cluster  # noqa: F401 - registers its handlers
from tests.golden import DATA, check, read
from tilewright.cute.nvgpu import tcgen05, warpgroup
from tilewright.errors import ConstraintError
from tilewright.lang.numbers.numeric import Float16
from tilewright.tiled.tma.cluster import cluster_layout_vmnk, commit_arrivals, commit_mask, operand_mask
from tilewright.utils.clc_schedule import PersistentScheduleSm100

LINES = list(read(DATA / "blackwell_cluster.jsonl"))
COUNTS = {"sm100_multicast_mask": 77, "sm100_schedule": 35, "sm100_smem_selector": 45}
OTHER_KIND: Any = warpgroup.SmemLayoutAtomKind.K_SW128


@pytest.mark.parametrize("op", COUNTS)
def test_every_line(op: str) -> None:
    problems = [f"{line['args']}: {problem}" for line in LINES if line["op"] == op and (problem := check(line))]
    assert not problems, "\n".join(problems)


def test_golden_blackwell_clusters_cover_all_lines() -> None:
    assert Counter(line["op"] for line in LINES) == COUNTS


@pytest.mark.parametrize(("cluster", "ctas"), [((4, 2, 1), 1), ((4, 2, 1), 2), ((2, 3, 1), 2), ((8, 2, 1), 2)])
def test_commit_arrives_at_all_loading_blocks(cluster: tuple[int, int, int], ctas: int) -> None:
    """Block c hears of the MMAs that read what c loads for others, and waits for as many commits."""
    layout = cluster_layout_vmnk(cluster, ctas)
    blocks = range(cluster[0] * cluster[1])
    coords = {block: layout.get_flat_coord(block) for block in blocks}
    for block in blocks:
        readers = operand_mask(layout, coords[block], "A") | operand_mask(layout, coords[block], "B")
        mmas = {coords[other][1:] for other in blocks if readers >> other & 1}
        leaders = [other for other in blocks if coords[other][0] == 0]
        tellers = {coords[leader][1:] for leader in leaders if commit_mask(layout, coords[leader]) >> block & 1}
        assert tellers == mmas and len(tellers) == commit_arrivals(layout)


@pytest.mark.parametrize("swizzle", [1, 2, 3, 8])
@pytest.mark.parametrize("raster", ["AlongM", "AlongN"])
def test_every_tile_has_one_block(swizzle: int, raster: str) -> None:
    made = PersistentScheduleSm100.create((1000, 1900, 2), (64, 128), (2, 1), swizzle, raster)
    m, n, batch = made.tiles_mnl
    assert sorted(made.blocks()) == [(i, j, k) for i in range(m) for j in range(n) for k in range(batch)]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: cluster_layout_vmnk((3, 2, 1), 2), "does not consist of MMAs of 2 blocks"),
        (lambda: operand_mask(cluster_layout_vmnk((2, 2, 1), 1), (0, 0, 0, 0), "C"), "it is A, B, SFA or SFB"),
        (lambda: PersistentScheduleSm100.create((64, 64, 1), (64, 64), raster_order="M"), "AlongM or AlongN"),
        (lambda: PersistentScheduleSm100.create((64, 0, 1), (64, 64)), "ints of at least 1"),
        (lambda: tcgen05.make_smem_layout_atom(OTHER_KIND, Float16), "SmemLayoutAtomKind of tcgen05"),
    ],
)
def test_refusals(make: Callable[[], object], why: str) -> None:
    with pytest.raises(ConstraintError, match=why):
        make()
