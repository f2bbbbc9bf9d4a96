"""Stream-K's plans: golden lines number for number, every iteration once, the maps in a kernel."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright as cutlass
from tests import golden, golden_decompositions  # noqa: F401 - the second registers its handlers
from tilewright import cute
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.gemm.schedule import streamk, streamk_blocks
from tilewright.gemm.schedule.streamk import StreamK

LINES = [line for line in golden.read(golden.DATA / "streamk.jsonl") if line["op"] == "ThreadblockSwizzleStreamK"]


def wrong_lines() -> list[dict[str, Any]]:
    """The golden lines that are not reproduced."""
    return [line["args"] for line in LINES if golden.check(line)]


def test_golden() -> None:
    assert wrong_lines() == []
    assert len(LINES) == 1601 and sum("detail" in line for line in LINES) == 72


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (streamk_blocks, "WAVE_COST", 3.0),
        (streamk_blocks, "PEER_COST", 1.9),
        (streamk_blocks, "SKEW_COST", 0.021),
        (streamk_blocks, "MIN_COHORT_EFFICIENCY", 0.86),
        (streamk_blocks, "COHORT_M", 4),
        (streamk, "COHORT_M", 4),
        (streamk, "COHORT_N", 8),
    ],
)
def test_the_golden_lines_see_every_constant(
    module: Any, name: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, value)
    assert wrong_lines()


@pytest.mark.parametrize(
    ("tiles", "iters", "multiprocessors", "occupancy", "shared", "blocks"),
    [(25, 602, 84, 1, 25, 84), (106, 2747, 84, 3, 22, 84)],
)
def test_costs_are_float32(
    tiles: int,
    iters: int,
    multiprocessors: int,
    occupancy: int,
    shared: int,
    blocks: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Numbers from the C++ header, for problems where float64 would take fewer or more blocks."""
    assert streamk_blocks.get_blocks(tiles, iters, multiprocessors, occupancy) == (tiles - shared, blocks)
    monkeypatch.setattr(streamk_blocks, "float32", float)
    assert streamk_blocks.get_blocks(tiles, iters, multiprocessors, occupancy) != (tiles - shared, blocks)


def test_too_few_iterations_for_stream_k() -> None:
    one_tile = streamk_blocks.Candidate(tiles=1, waves=1, partial_wave=True)
    assert streamk_blocks.get_sk_blocks(one_tile, 3, 8) == (-1, 0)  # two blocks of two iterations would need four
    assert streamk_blocks.get_sk_blocks(one_tile, 4, 8)[1] == 2


def work(sk: StreamK, x: int) -> list[tuple[int, int, int]]:
    """What hardware block ``x`` does, in its order: (tile, first iteration, end) of each of its tiles."""
    block = sk.get_block_idx(x)
    if sk.dp_start_block_idx <= block < sk.reduce_start_block_idx:
        first, count = sk.dp_tiles(block - sk.dp_start_block_idx)
        tiles = range(first, first + count * sk.avail_sms, sk.avail_sms)
        return [(tile, 0, sk.iters_per_tile) for tile in tiles if sk.is_dp_tile(tile)]
    if block < sk.sk_blocks:
        begin, end = sk.get_iter_extents(block)
        tiles = range(sk.get_sk_tile_idx(end - 1), sk.get_sk_tile_idx(begin) - 1, -1)
        return [(tile, *sk.tile_share(tile, begin, end)) for tile in tiles]
    return []


EXTENTS = st.integers(1, 40)
DECOMPOSITIONS = st.builds(
    lambda m, n, k, **rest: StreamK.of((64 * m - 1, 64 * n, 32 * k - 31), (64, 64, 32), **rest),
    EXTENTS,
    EXTENTS,
    st.integers(1, 60),
    multiprocessors=st.integers(1, 24),
    occupancy=st.integers(1, 4),
    fragments=st.integers(1, 8),
    available=st.one_of(st.none(), st.integers(1, 24)),
    split=st.sampled_from([1, 1, 1, 2, 3, 8]),
)


@settings(max_examples=150)
@given(DECOMPOSITIONS)
def test_every_iteration_of_every_tile_is_done_once(sk: StreamK) -> None:
    tiles_m, tiles_n, _ = sk.tiled_shape
    pieces: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for x in range(sk.num_blocks):
        for tile, begin, end in work(sk, x):
            assert begin < end
            pieces.setdefault(sk.get_tile_offset(tile), []).append((begin, end))
    assert set(pieces) == {(m, n) for m in range(tiles_m) for n in range(tiles_n)}
    for shares in pieces.values():
        ends = [0, *(end for _, end in sorted(shares))]
        assert [begin for begin, _ in sorted(shares)] == ends[:-1] and ends[-1] == sk.iters_per_tile


@settings(max_examples=100)
@given(DECOMPOSITIONS)
def test_blocks_are_permuted_and_own_their_iterations(sk: StreamK) -> None:
    assert sorted(sk.get_block_idx(x) for x in range(sk.num_blocks)) == list(range(sk.num_blocks))
    owner = {i: block for block in range(sk.sk_blocks) for i in range(*sk.get_iter_extents(block))}
    assert len(owner) == sk.sk_tiles * sk.iters_per_tile
    assert all(sk.get_sk_block_idx(i) == block for i, block in owner.items())
    for tile in range(sk.sk_tiles):
        assert sk.get_first_block_idx(tile, -1) == owner[tile * sk.iters_per_tile]
        assert sk.get_last_block_idx(tile) == owner[(tile + 1) * sk.iters_per_tile - 1]
    assert sk.get_first_block_idx(sk.sk_tiles, 77) == 77
    lengths = Counter(end - begin for begin, end in map(sk.get_iter_extents, range(sk.sk_blocks)))
    assert max(lengths, default=0) - min(lengths, default=0) <= 1


def test_workspaces() -> None:
    sk = StreamK.of((384, 384, 2048), (128, 128, 32), multiprocessors=8, occupancy=1, fragments=8)
    assert sk.sk_blocks == 8 and sk.reduction_blocks == 0
    assert sk.barrier_workspace_size == 128
    assert sk.partials_workspace_size(128 * 128 * 4) == 8 * 2 * 128 * 128 * 4
    reduced = StreamK.of((128, 128, 8192), (128, 128, 32), multiprocessors=8, occupancy=2, fragments=40, split=4)
    assert reduced.reduction_blocks == 40 and reduced.barrier_workspace_size == 256
    alone = StreamK.of((128, 128, 8192), (128, 128, 32), multiprocessors=8, occupancy=2, fragments=8, available=1)
    assert alone.barrier_workspace_size == alone.partials_workspace_size(1 << 16) == 0


GOOD = {
    "problem": (512, 512, 512),
    "tile": (128, 128, 32),
    "multiprocessors": 132,
    "occupancy": 1,
    "fragments": 8,
}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"problem": (0, 512, 512)}, ArgumentError, r"problem\[0\] must be a positive integer, got 0"),
        ({"problem": (512, 512, -1)}, ArgumentError, r"problem\[2\] must be a positive integer, got -1"),
        ({"problem": (512, 512)}, ArgumentError, r"problem must be three integers \(M, N, K\), got \(512, 512\)"),
        ({"tile": (128, 0, 32)}, ArgumentError, r"tile\[1\] must be a positive integer"),
        ({"tile": (128, 128.0, 32)}, ArgumentError, r"tile\[1\] must be a positive integer, got 128.0"),
        ({"multiprocessors": 0}, ArgumentError, "multiprocessors must be a positive integer"),
        ({"occupancy": True}, ArgumentError, "occupancy must be a positive integer, got True"),
        ({"fragments": 0}, ArgumentError, "fragments must be a positive integer"),
        ({"split": 0}, ArgumentError, "split must be a positive integer"),
        ({"available": 0}, ArgumentError, "available must be a positive integer, got 0: leave it out for the whole"),
        ({"available": -1}, ArgumentError, "leave it out for the whole device, say 1 for data-parallel"),
        ({"batch": 0}, ArgumentError, "batch must be a positive integer"),
        ({"batch": 2, "split": 2}, ConstraintError, "batched mode never shares a tile"),
        ({"problem": (2**20, 2**20, 2**20), "split": 2}, ConstraintError, "more than 32-bit indices hold"),
    ],
)
def test_bad_input(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        StreamK.of(**(GOOD | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"sk_iters_per_normal_block": 1},
        {"sk_big_blocks_per_region": 1},
        {"sk_tiles": 3},
        {"sk_blocks_per_region": 5},
        {"iters_per_tile": 9},
    ],
)
def test_edited_plans_are_noticed(changes: dict[str, int]) -> None:
    good = StreamK.of((256, 256, 256), (128, 128, 32), multiprocessors=8, occupancy=1, fragments=1, split=2)
    good.check()
    with pytest.raises(ConstraintError, match="the plan deals out .* Make plans with StreamK.of"):
        replace(good, **changes).check()


@settings(max_examples=200)
@given(st.tuples(*[st.integers(1, 5000)] * 3), st.integers(1, 200), st.integers(1, 4), st.integers(1, 9))
def test_plans_deal_out_what_there_is(problem: tuple[int, int, int], sms: int, occupancy: int, split: int) -> None:
    tile = (128, 128, 32)
    StreamK.of(problem, tile, multiprocessors=sms, occupancy=occupancy, fragments=1, split=split).check()


@cute.kernel
def maps_kernel(sk: StreamK, out: cute.Tensor):
    """Row x: the maps at x as a hardware block, as SK block, iteration, DP block and tile."""
    x, _, _ = cute.arch.block_idx()
    begin, end = sk.get_iter_extents(x)
    first, count = sk.dp_tiles(x)
    tile_m, tile_n = sk.get_tile_offset(x)
    out[x, 0] = sk.get_block_idx(x)
    out[x, 1], out[x, 2] = begin, end
    out[x, 3] = sk.get_sk_block_idx(x)
    out[x, 4] = sk.get_sk_tile_idx(x)
    out[x, 5] = sk.get_first_block_idx(x, 1000 + x)
    out[x, 6], out[x, 7] = first, count
    out[x, 8], out[x, 9] = tile_m, tile_n
    out[x, 10] = cutlass.Int32(sk.is_dp_tile(x))
    out[x, 11] = sk.dp_start_block_idx + sk.reduce_start_block_idx + sk.num_active_blocks + sk.num_blocks
    out[x, 12], out[x, 13] = sk.tile_share(x // 3, x, x + 40)


@cute.jit
def launch_maps_of(sk: cutlass.Constexpr, out: cute.Tensor):
    maps_kernel(sk, out).launch(grid=(out.shape[0], 1, 1), block=(1, 1, 1))


@cute.jit
def launch_maps(sk: StreamK, out: cute.Tensor):
    maps_kernel(sk, out).launch(grid=(out.shape[0], 1, 1), block=(1, 1, 1))


def expected_row(sk: StreamK, x: int) -> list[int]:
    blocks = sk.dp_start_block_idx + sk.reduce_start_block_idx + sk.num_active_blocks + sk.num_blocks
    return [
        sk.get_block_idx(x),
        *sk.get_iter_extents(x),
        sk.get_sk_block_idx(x),
        sk.get_sk_tile_idx(x),
        sk.get_first_block_idx(x, 1000 + x),
        *sk.dp_tiles(x),
        *sk.get_tile_offset(x),
        int(sk.is_dp_tile(x)),
        blocks,
        *sk.tile_share(x // 3, x, x + 40),
    ]


def varied() -> list[StreamK]:
    """Data-parallel, split-K, big blocks, remapped, semi-persistent, with cohorts."""
    small: dict[str, Any] = {"tile": (64, 64, 32), "fragments": 4}
    return [
        StreamK.of((192, 64, 64), multiprocessors=3, occupancy=1, **small),
        StreamK.of((128, 192, 480), multiprocessors=8, occupancy=2, split=4, **small),
        StreamK.of((192, 192, 2080), multiprocessors=8, occupancy=1, **small),
        StreamK.of((64, 704, 8192), multiprocessors=8, occupancy=4, **small),
        StreamK.of((1280, 192, 2048), multiprocessors=8, occupancy=3, **small),
        StreamK.of((3669, 1417, 6981), (128, 128, 32), multiprocessors=84, occupancy=2, available=11, fragments=8),
    ]


def test_the_cases_are_varied() -> None:
    plans = varied()
    assert [sk.sk_tiles > 0 for sk in plans] == [False, True, True, True, True, True]
    assert plans[1].sk_regions == 6 and plans[2].sk_big_blocks_per_region > 0 and plans[3].reduction_blocks > 0
    assert [sk.remap_block_indices for sk in plans].count(True) > 0
    assert [sk.dp_first_wave_tiles > 1 for sk in plans].count(True) > 0
    assert plans[5].cohort_raster


def test_maps_in_a_kernel() -> None:
    """On the simulator, the fields run-time values: one compiled program for all decompositions."""
    out = np.zeros((48, 14), np.int32)
    run = cute.compile(launch_maps, varied()[0], out)
    for sk in varied():
        run(sk, out)
        assert out.tolist() == [expected_row(sk, x) for x in range(len(out))]


@pytest.mark.parametrize("case", [2, 3, 5])
def test_maps_of_a_static_decomposition_in_a_kernel(case: int) -> None:
    sk, out = varied()[case], np.zeros((48, 14), np.int32)
    launch_maps_of(sk, out)
    assert out.tolist() == [expected_row(sk, x) for x in range(len(out))]
