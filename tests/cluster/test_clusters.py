"""Clusters on both machines: indices, distributed shared memory, remote arrivals, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.cluster.programs import SHAPES, Exchange, Indices, Signals
from tests.machines import MACHINES, OnMachine
from tilewright import sim, utils
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, SimulationError, StagingError

EVERY_SHAPE = pytest.mark.parametrize("cluster", SHAPES, ids=lambda c: "x".join(map(str, c)))
SEEDS = pytest.mark.parametrize("seed", range(3))


def clusters_of(grid: tuple[int, ...], cluster: tuple[int, ...]) -> list[list[int]]:
    """The blocks' numbers (x first) of each cluster, by rank."""
    found: dict[tuple[int, ...], list[int]] = {}
    for block in range(int(np.prod(grid))):
        place = (block % grid[0], block // grid[0] % grid[1], block // (grid[0] * grid[1]))
        found.setdefault(tuple(p // c for p, c in zip(place, cluster, strict=True)), []).append(block)
    return list(found.values())


@MACHINES
@EVERY_SHAPE
def test_indices(machine: OnMachine, cluster: tuple[int, int, int]) -> None:
    size, grid = int(np.prod(cluster)), tuple(2 * c for c in cluster)
    out = np.zeros((8 * size, 14), np.int32)
    machine.run(Indices(cluster), out)
    for block, row in enumerate(out.tolist()):
        place = (block % grid[0], block // grid[0] % grid[1], block // (grid[0] * grid[1]))
        within = [p % c for p, c in zip(place, cluster, strict=True)]
        rank = within[0] + cluster[0] * (within[1] + cluster[1] * within[2])
        which = [p // c for p, c in zip(place, cluster, strict=True)]
        assert row == [*which, 2, 2, 2, *within, *cluster, rank, size]


@MACHINES
@EVERY_SHAPE
@SEEDS
def test_blocks_read_write_and_count_in_each_others_memory(
    machine: OnMachine, cluster: tuple[int, int, int], seed: int
) -> None:
    size, threads, grid = int(np.prod(cluster)), 64, (3 * cluster[0], *cluster[1:])
    out, sums = np.zeros((3 * size, size, threads), np.int32), np.zeros(3 * size, np.int32)
    last = np.zeros((3 * size, threads), np.int32)
    with sim.options(seed=seed):
        machine.run(Exchange(cluster, threads), out, sums, last)
    t = np.arange(threads)
    for blocks in clusters_of(grid, cluster):
        for rank, block in enumerate(blocks):
            assert (out[block] == 1000 * np.array(blocks)[:, None] + t).all()
            assert (last[block] == 7 * blocks[rank - 1] + t).all()
    assert (sums == size * threads).all()


@MACHINES
@EVERY_SHAPE
@SEEDS
def test_a_ring_of_remote_arrivals_and_bytes(machine: OnMachine, cluster: tuple[int, int, int], seed: int) -> None:
    size, grid = int(np.prod(cluster)), (2 * cluster[0], *cluster[1:])
    out = np.zeros((2 * size, 32), np.int32)
    with sim.options(seed=seed):
        machine.run(Signals(cluster), out)
    for blocks in clusters_of(grid, cluster):
        assert (out[blocks] == np.arange(32) + np.cumsum(np.arange(size))[:, None]).all()


# -- what is refused ---------------------------------------------------------------------------------------------------


def simulate(
    body: Any, cluster: Any = (2, 1, 1), grid: Any = (2, 1, 1), threads: int = 32, **options: Any
) -> np.ndarray:
    """Run ``body(out, rank, tidx, buffer)`` in clusters; gives ``out[block, thread]``."""

    @cute.kernel
    def kernel(out: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        buffer = utils.SmemAllocator().allocate_tensor(cutlass.Int64, cute.make_layout(threads), 16)
        body(out, cute.arch.block_idx_in_cluster(), tidx, buffer)

    @cute.jit
    def run(out: cute.Tensor):
        kernel(out).launch(grid=grid, block=(threads, 1, 1), cluster=cluster, **options)

    out = np.zeros((int(np.prod(grid)), threads), np.int32)
    run(from_dlpack(out))
    return out


def test_memory_of_a_block_that_has_ended() -> None:
    """The clean twin has a barrier of the cluster at the end."""

    @cute.jit
    def read(out: Any, rank: Any, tidx: Any, buffer: Any, last: cutlass.Constexpr):
        buffer[tidx] = cutlass.Int64(tidx + 100 * rank)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if rank == 1:
            theirs = cute.make_tensor(cute.arch.mapa(buffer.iterator, 0), buffer.layout)
            out[0, tidx] = theirs[tidx].to(cutlass.Int32)
        if cutlass.const_expr(last):
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()

    for seed in range(4):
        with sim.options(seed=seed):
            assert (simulate(lambda *args: read(*args, True))[0] == np.arange(32)).all()
    with pytest.raises(SimulationError, match=r"block 0 of the cluster is touched, but all threads of that block have"):
        for seed in range(8):
            with sim.options(seed=seed):
                simulate(lambda *args: read(*args, False))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (lambda out, rank, tidx, buffer: cute.arch.cluster_wait(), "cluster_wait without a cluster_arrive"),
        (
            lambda out, rank, tidx, buffer: (cute.arch.cluster_arrive(), cute.arch.cluster_arrive()),
            "cluster_arrive a second time",
        ),
    ],
)
def test_wrong_turns_at_the_barrier(body: Any, text: str) -> None:
    with pytest.raises(SimulationError, match=text):
        simulate(body)


def test_two_arrivals_and_two_waits_count_once_without_the_check() -> None:
    @cute.jit
    def body(out: Any, rank: Any, tidx: Any, buffer: Any):
        buffer[tidx] = cutlass.Int64(tidx + 100 * rank)
        for _ in cutlass.range_constexpr(2):
            cute.arch.cluster_arrive()
        for _ in cutlass.range_constexpr(2):
            cute.arch.cluster_wait()
        theirs = cute.make_tensor(cute.arch.mapa(buffer.iterator, rank ^ 1), buffer.layout)
        out[rank, tidx] = theirs[tidx].to(cutlass.Int32)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    for seed in range(4):
        with sim.options(check="default,-divergence", seed=seed):
            assert (simulate(body) == [np.arange(32) + 100, np.arange(32)]).all()
    with pytest.raises(SimulationError, match="'default,-divergence' takes both for one arrival"):
        simulate(body)


def test_a_rank_outside_the_cluster() -> None:
    @cute.jit
    def body(out: Any, rank: Any, tidx: Any, buffer: Any):
        out[rank, tidx] = cute.arch.mapa(buffer, rank + 1)[0].to(cutlass.Int32)

    with pytest.raises(SimulationError, match=r"block 2 of a cluster of 2 blocks does not exist"):
        simulate(body)


def test_a_part_of_a_warp_cannot_arrive_aligned() -> None:
    @cute.jit
    def body(out: Any, rank: Any, tidx: Any, buffer: Any, aligned: cutlass.Constexpr):
        if tidx < 16:
            cute.arch.cluster_arrive(aligned=aligned)
        else:
            cute.arch.cluster_arrive(aligned=aligned)
        cute.arch.cluster_wait()
        out[rank, tidx] = 1

    assert simulate(lambda *args: body(*args, False)).all()
    with pytest.raises(SimulationError, match="only 16 of the warp's threads"):
        simulate(lambda *args: body(*args, True))


def test_a_missing_arrival_is_a_deadlock_that_names_the_warps() -> None:
    @cute.jit
    def body(out: Any, rank: Any, tidx: Any, buffer: Any):
        if rank == 0:
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()
        elif tidx < 32:
            cute.arch.barrier(barrier_id=1, number_of_threads=64)

    with pytest.raises(
        SimulationError, match=r"the barrier of its cluster \(in phase 0: 64 of 96 threads have arrived"
    ):
        simulate(body, threads=64)


def test_threads_that_have_ended_are_not_waited_for() -> None:
    @cute.jit
    def body(out: Any, rank: Any, tidx: Any, buffer: Any):
        if rank == 0:
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()
        out[rank, tidx] = 1

    assert simulate(body).all()


@pytest.mark.parametrize(
    ("cluster", "grid", "text"),
    [
        ((3, 1, 1), (4, 1, 1), r"grid \(4, 1, 1\) is not divisible by the cluster \(3, 1, 1\).*\(6, 1, 1\) would do"),
        ((3, 3, 1), (9, 9, 1), r"has 9 blocks; every GPU with clusters takes 8.*non_portable_cluster=True"),
        ((4, 5, 1), (4, 5, 1), r"has 20 blocks, the most is 16"),
    ],
)
def test_clusters_that_no_launch_can_have(cluster: Any, grid: Any, text: str) -> None:
    with pytest.raises(StagingError, match=text):
        simulate(lambda out, rank, tidx, buffer: None, cluster, grid)


def test_sixteen_blocks_when_allowed() -> None:
    @cute.jit
    def body(out: Any, rank: Any, tidx: Any, buffer: Any):
        out[rank, tidx] = cute.arch.cluster_size()

    assert (simulate(body, (4, 4, 1), (4, 4, 1), non_portable_cluster=True) == 16).all()


def test_only_shared_memory_is_mapped() -> None:
    with pytest.raises(ConstraintError, match="own shared memory"):
        simulate(lambda out, rank, tidx, buffer: cute.arch.mapa(out, 0))
    with pytest.raises(ConstraintError, match="own shared memory"):
        simulate(lambda out, rank, tidx, buffer: cute.arch.mapa(cute.arch.mapa(buffer, 0), 0))


@pytest.mark.parametrize("option", ["use_pdl", "cooperative", "non_portable_cluster"])
def test_options_are_known_while_staging(option: str) -> None:
    assert (simulate(lambda out, rank, tidx, buffer: None, **{option: True}) == 0).all()
    with pytest.raises(StagingError, match=f"{option}='yes'; it is True or False"):
        simulate(lambda out, rank, tidx, buffer: None, **{option: "yes"})


@pytest.mark.parametrize(
    ("program", "wanted"),
    [
        (Signals, ("SYNCS.ARRIVE.TRANS64.RED", "STAS", "UCGABAR_ARV", "UCGABAR_WAIT")),
        (Exchange, ("UCGABAR_WAIT",)),
    ],
)
def test_cluster_programs_compile_to_cluster_instructions(program: Any, wanted: tuple[str, ...]) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilewright.cuda import compile as build

    shapes = {Signals: [(8, 32)], Exchange: [(12, 4, 64), (12,), (12, 64)]}[program]
    executor = cute.compile(program((2, 2, 1)), *(from_dlpack(np.zeros(s, np.int32)) for s in shapes))
    made = build(executor.kernels[0], "sm_90a")
    assert made.spills == 0 and "__cluster_dims__(2, 2, 1)" in made.cuda
    assert all(name in made.sass for name in wanted)
    if program is Signals:  # a remote arrival costs no fence of the GPU: the only one is that of cluster_arrive
        assert made.sass.count("MEMBAR.ALL.GPU") == 1
    with pytest.raises(ConstraintError, match="needs sm_90"):
        build(executor.kernels[0], "sm_80")
