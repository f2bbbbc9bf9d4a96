"""PipelineTmaAsync in clusters of 2 to 8 blocks and PipelineOrder on both machines, and a planted bug for each rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.covering import covering
from tests.machines import MACHINES, OnMachine
from tests.pipeline.hopper_programs import Broadcast, OneRole, Turns
from tilewright import pipeline, sim, utils
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, TilewrightError
from tilewright.pipeline import Agent, CooperativeGroup

SEEDS = pytest.mark.parametrize("seed", range(2))


def expected(program: Broadcast, blocks: int) -> np.ndarray:
    """What each block gets: the sum over the blocks of its cluster that share with it."""
    (m, n), width = program.cluster, blocks // program.cluster[1]
    i, lane = np.ogrid[: program.tiles, :32]
    out = np.zeros((blocks, program.warps, program.tiles, 32), np.int64)
    for block in range(blocks):
        x, y = block % width, block // width
        for sender in range(blocks):
            u, v = sender % width, sender // width
            if x // m != u // m or y // n != v // n:
                continue
            row, column = x == u and program.mcast[0], y == v and program.mcast[1]
            if sender == block or row or column:
                out[block] += 1000 * sender + 10 * i + lane
    return out


def broadcast(machine: OnMachine, program: Broadcast) -> tuple[np.ndarray, np.ndarray]:
    blocks = 2 * program.size
    out = np.full((blocks, program.warps, program.tiles, 32), -1, np.int32)
    machine.run(program, out)
    return out, expected(program, blocks)


WAYS = [
    *[(cluster, 2, 2, "warps") for cluster in [(2, 1), (1, 2), (2, 2), (4, 2)]],
    *[(cluster, 2, 4, "wgmma") for cluster in [(2, 1), (2, 2), (4, 2)]],
    *[((2, 2), 3, 1, "arrivals"), ((2, 1), 1, 3, "arrivals")],
]


@MACHINES
@pytest.mark.parametrize(("way", "seed"), covering(WAYS, range(2), strength=1), ids=str)
def test_stages_are_shared_by_rows_and_columns(machine: OnMachine, way: Any, seed: int) -> None:
    with sim.options(seed=seed):
        found, wanted = broadcast(machine, Broadcast(*way))
    assert (found == wanted).all()


@MACHINES
@pytest.mark.parametrize("mcast", [(0, 0), (1, 0), (0, 1)], ids=["none", "rows", "columns"])
def test_multicast_along_one_mode(machine: OnMachine, mcast: tuple[int, int]) -> None:
    found, wanted = broadcast(machine, Broadcast((2, 4), mcast=mcast))
    assert (found == wanted).all()


@MACHINES
@pytest.mark.parametrize("groups", [2, 3])
@SEEDS
def test_groups_take_turns(machine: OnMachine, groups: int, seed: int) -> None:
    out = np.full((2, 5 * groups), -1, np.int32)
    with sim.options(seed=seed):
        machine.run(Turns(groups), out)
    assert (out == np.tile(np.arange(groups), 5) + [[0], [100]]).all()


@MACHINES
@pytest.mark.parametrize(("stages", "ahead"), [(3, 3), (4, 2), (1, 1)])
def test_one_role_that_fetches_ahead(machine: OnMachine, stages: int, ahead: int) -> None:
    out = np.full((2, 8, 32), -1, np.int32)
    machine.run(OneRole(stages, ahead), out)
    assert (out == 1000 * np.arange(2)[:, None, None] + 10 * np.arange(8)[:, None] + np.arange(32)).all()


# -- planted bugs: the clean twins pass above --------------------------------------------------------------------------


def outcome(program: Any, shape: tuple[int, ...], wanted: Any = None) -> str:
    """The error that some seed gives, "wrong result", or "right"."""
    for seed in range(6):
        out = np.full(shape, -1, np.int32)
        try:
            with sim.options(seed=seed):
                program(from_dlpack(out))
        except TilewrightError as error:
            return str(error)
        if wanted is not None and not (out == wanted).all():
            return "wrong result"
    return "right"


@pytest.mark.parametrize(
    ("bug", "texts"),
    [
        ("", ["right"]),
        ("no release", ["deadlock", r"waiting for the phase of parity", "0 of 6 arrivals"]),
        ("early release", ["wrong result"]),
        ("too many bytes", ["deadlock", "of 1 arrivals, 4 bytes outstanding"]),
        ("too few bytes", ["deadlock", "-4 bytes outstanding"]),
        ("wrong phase", ["more arrivals than it expects"]),
        ("no wait", ["more arrivals than it expects"]),
        ("no tail", ["all threads of that block have ended"]),
        ("no sync", ["no mbarrier has been initialised"]),
        ("no such warp", ["no mbarrier has been initialised"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_rule_has_its_planted_bug(bug: str, texts: list[str]) -> None:
    program = Broadcast((2, 2), stages=1 if bug == "early release" else 2, warps=2, bug=bug)
    found = outcome(program, (8, 2, 7, 32), expected(program, 8))
    assert all(text in found for text in texts), found


def test_more_fetched_ahead_than_there_are_stages() -> None:
    found = outcome(OneRole(stages=2, ahead=3), (2, 8, 32))
    assert "deadlock" in found and "0 of 1 arrivals" in found and "pipe.producer_acquire(write)" in found


def test_asynchronous_stores_need_a_cluster() -> None:
    assert "st.async in a launch without clusters" in outcome(Broadcast((1, 1)), (2, 1, 7, 32))


def test_a_turn_that_is_not_passed_on() -> None:
    found = outcome(Turns(2, bug="no arrive"), (2, 10))
    assert "deadlock" in found and "order.wait()" in found


# -- counts ------------------------------------------------------------------------------------------------------------


def create(block: int = 384, **options: Any) -> pipeline.PipelineTmaAsync:
    """A pipeline made in a kernel of one block of ``block`` threads."""
    made: list[Any] = []
    layout = options.get("cta_layout_vmnk")
    cluster = (1, 1, 1) if layout is None else (layout.shape[1], layout.shape[2], 1)

    @cute.kernel
    def kernel():
        tensors = options.pop("shapes", None)
        if tensors is not None:
            smem = utils.SmemAllocator()
            options["stage_tensors"] = [smem.allocate_tensor(cutlass.Float16, cute.make_layout(s)) for s in tensors]
        made.append(pipeline.PipelineTmaAsync.create(**({"num_stages": 3} | options)))

    @cute.jit
    def run():
        kernel().launch(grid=cluster, block=(block, 1, 1), cluster=cluster)

    cute.compile(run)
    return made[0]


CLUSTER = cute.make_layout((1, 2, 4, 1))


@pytest.mark.parametrize(
    ("group", "arrivals"),
    [
        (CooperativeGroup(Agent.Warp, 8), 40),
        (CooperativeGroup(Agent.Thread, 40), 40),
        (CooperativeGroup(Agent.ThreadBlock), 60),
    ],
)
def test_arrivals_follow_from_the_cluster_and_the_consumers(group: CooperativeGroup, arrivals: int) -> None:
    pipe = create(consumer_group=group, tx_count=1024, cta_layout_vmnk=CLUSTER)
    assert pipe.sync_object_empty.group.size == arrivals
    assert pipe.sync_object_full.group.size == 1 and pipe.sync_object_full.tx_count == 1024


def test_bytes_follow_from_the_tensors() -> None:
    one = CooperativeGroup(Agent.Warp, 4)
    shapes = [(128, 64, 3), ((8, 16), 64, (1, 3))]
    assert create(consumer_group=one, shapes=shapes).sync_object_full.tx_count == 2 * 128 * 64 * 2
    assert create(consumer_group=one, shapes=shapes, tx_count=32768).sync_object_full.tx_count == 32768


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            dict(consumer_group=CooperativeGroup(Agent.Thread, 8), tx_count=64, cta_layout_vmnk=CLUSTER),
            r"counts 8 arrivals, but a stage is released by 5 blocks.*give 5 x consumer warps",
        ),
        (dict(consumer_group=CooperativeGroup(Agent.Thread, 500), tx_count=64), "at most 12 times with blocks of 384"),
        (dict(consumer_group=CooperativeGroup(Agent.Thread, 128), tx_count=64), "counts 128 arrivals, but"),
        (dict(consumer_group=CooperativeGroup(Agent.Warp, 16), tx_count=64), "16 warps, but the block has 384 threads"),
        (dict(consumer_group=CooperativeGroup(Agent.Warp, 4)), "needs the bytes that fill a stage"),
        (dict(consumer_group=CooperativeGroup(Agent.Warp, 4), tx_count=1 << 20), "counts 1 to 1048575 bytes"),
        (
            dict(consumer_group=CooperativeGroup(Agent.Warp, 4), tx_count=100, shapes=[(64, 3)]),
            r"tx_count is 100, but one stage of the tensors has 128 bytes.*complete before the copies",
        ),
        (dict(consumer_group=CooperativeGroup(Agent.Warp, 4), tx_count=130, shapes=[(64, 3)]), "never complete"),
        (
            dict(consumer_group=CooperativeGroup(Agent.Warp, 4), shapes=[(64, 2)]),
            r"the last mode of \(64,2\):\(1,64\) is the stage, and has 2 of them where the pipeline has 3",
        ),
        (dict(consumer_group=4, tx_count=64), "a CooperativeGroup, TiledMma or TiledCopy is needed"),
        (
            dict(consumer_group=CooperativeGroup(Agent.Warp, 4), tx_count=64, cta_layout_vmnk=cute.make_layout((2, 1))),
            r"the modes \(V, M, N, K\)",
        ),
        (dict(consumer_group=CooperativeGroup(Agent.Warp, 4), tx_count=64, mcast_mode_mn=(2, 0)), "of 0 or 1"),
        (dict(consumer_group=CooperativeGroup(Agent.Warp, 4), tx_count=64, num_stages=0), "at least 1"),
        (
            dict(
                consumer_group=CooperativeGroup(Agent.Warp, 4),
                tx_count=64,
                producer_group=CooperativeGroup(Agent.ThreadBlock),
            ),
            "the producer warps",
        ),
    ],
)
def test_wrong_pipeline_arguments_are_errors_with_the_rule(options: dict[str, Any], text: str) -> None:
    if "cta_layout_vmnk" in options and len(options["cta_layout_vmnk"]) != 4:
        options = options | {"block": 384}
        with pytest.raises(ConstraintError, match=text):
            pipeline.counts.check_cluster(options["cta_layout_vmnk"], (1, 1))
        return
    with pytest.raises(TilewrightError, match=text):
        create(**options)


def test_pipeline_state_reverse_undoes_advance() -> None:
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 3)
    places = []
    for _ in range(7):
        places.append((state.count, state.index, state.phase))
        state.advance()
    for place in reversed(places):
        state.reverse()
        assert [int(x.value) for x in (state.count, state.index, state.phase)] == [int(x.value) for x in place]


def test_a_state_of_no_stages_names_an_index_and_a_phase() -> None:
    state = pipeline.PipelineState(stages=0, count=cutlass.Int32(0), index=cutlass.Int32(2), phase=cutlass.Int32(1))
    assert (state.stages, int(state.index.value), int(state.phase.value)) == (0, 2, 1)
    for move in (state.advance, state.reverse):
        with pytest.raises(ConstraintError, match=r"stages=0\) names one index and phase"):
            move()
    with pytest.raises(ConstraintError, match="-1 stages"):
        pipeline.PipelineState(-1, 0, 0, 0)


def test_a_release_in_a_cluster_is_one_predicated_instruction() -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilewright.cuda import compile as build

    program = Broadcast((2, 1), warps=4, how="wgmma", stages=4)
    executor = cute.compile(program, from_dlpack(np.zeros((4, 4, 7, 32), np.int32)))
    made = build(executor.kernels[0], "sm_90a")
    assert made.spills == 0
    assert "SYNCS.ARRIVE.TRANS64.RED.A1T0" in made.sass and "MEMBAR.ALL.GPU" not in made.sass
    assert "SYNCS.PHASECHK.TRANS64.TRYWAIT" in made.sass and "SYNCS.ARRIVE.TRANS64 " in made.sass


def test_syncs_of_blocks_and_clusters() -> None:
    with pytest.raises(ConstraintError, match="agent_sync waits for a ThreadBlock"):
        pipeline.agent_sync(Agent.Thread)


def test_arrivals_follow_from_the_threads_of_a_block() -> None:
    """``enable_multicast_signaling`` counts warps of the threads, once for each block that shares a stage."""
    made: list[Any] = []

    @cute.kernel
    def kernel():
        for threads, cluster in ((128, None), (100, None), (64, cute.make_layout((1, 2, 4, 1)))):
            pipe = pipeline.PipelineTmaAsync.create(
                num_stages=2,
                consumer_group=CooperativeGroup(Agent.Thread, threads),
                tx_count=64,
                cta_layout_vmnk=cluster,
                enable_multicast_signaling=True,
            )
            made.append(pipe.sync_object_empty.group.size)
            handle = pipe.make_consumer().current_handle()
            assert handle.barrier.alignment == pipe.consumer_get_barrier(handle.state).alignment

    @cute.jit
    def run():
        kernel().launch(grid=(2, 4, 1), block=(160, 1, 1), cluster=(2, 4, 1))

    cute.compile(run)
    assert made == [4, 4, 2 * 5]
