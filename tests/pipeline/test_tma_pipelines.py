"""Pipelines with TMA at both ends on both machines: multicast loads in clusters, stores out of a ring of buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.machines import MACHINES, OnMachine
from tests.pipeline.tma_programs import Doubled
from tilewright import pipeline, sim
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, SimulationError, TilewrightError


def arrays(copies: int) -> tuple[Any, Any, Any]:
    """a (64, 320), b as (copies, 64, 320) and what it becomes."""
    a = np.random.default_rng(0).integers(-50, 50, (64, 320)).astype(np.float32)
    return a, np.full((copies, 64, 320), -1, np.float32), 2 * a + np.arange(copies)[:, None, None]


def run(machine: OnMachine, program: Doubled) -> tuple[Any, Any]:
    a, b, wanted = arrays(program.copies)
    if machine.name == "cpu":
        program(from_dlpack(a, assumed_align=16), from_dlpack(b.transpose(1, 2, 0), assumed_align=16))
        return b, wanted
    torch = pytest.importorskip("torch")
    x, y = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
    program(from_dlpack(x, assumed_align=16), from_dlpack(y.permute(1, 2, 0), assumed_align=16))
    return y.cpu().numpy(), wanted


@MACHINES
@pytest.mark.parametrize(
    ("copies", "stages", "buffers", "seed"), [(1, 2, 1, 0), (2, 2, 2, 1), (4, 3, 3, 0), (8, 1, 2, 1)]
)
def test_tiles_go_through_both_pipelines(machine: OnMachine, copies: int, stages: int, buffers: int, seed: int) -> None:
    with sim.options(seed=seed):
        found, wanted = run(machine, Doubled(copies, stages, buffers))
    assert (found == wanted).all()


@MACHINES
def test_a_release_by_an_elected_lane_waits_for_no_other_lane(machine: OnMachine) -> None:
    with sim.options(check="all"):
        found, wanted = run(machine, Doubled(1, elected=True))
    assert (found == wanted).all()


@pytest.mark.tilewright_check("none")  # a race on purpose
def test_a_buffer_that_is_written_before_it_was_read() -> None:
    found, wanted = run(OnMachine("cpu"), Doubled(bug="no acquire"))
    assert not (found == wanted).all()


def test_a_buffer_that_is_not_fenced() -> None:
    with sim.options(check="proxies"), pytest.raises(SimulationError, match="proxy-fence: TMA reads shared memory"):
        run(OnMachine("cpu"), Doubled(bug="no fence"))


def test_tma_store_pipeline_refuses_wrong_arguments() -> None:
    with pytest.raises(ConstraintError, match="a Python int of at least 1"):
        pipeline.PipelineTmaStore.create(num_stages=0)
    with pytest.raises(TilewrightError, match="no CooperativeGroup"):
        pipeline.PipelineTmaStore.create(num_stages=2, producer_group=128)


def test_tma_pipelines_compile_to_mbarrier_instructions() -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilewright import cute
    from tilewright.cuda import compile as build

    a, b, _ = arrays(2)
    executor = cute.compile(
        Doubled(), from_dlpack(a, assumed_align=16), from_dlpack(b.transpose(1, 2, 0), assumed_align=16)
    )
    made = build(executor.kernels[0], "sm_90a")
    assert made.spills == 0
    assert "UTMALDG.2D.MULTICAST" in made.sass and "UTMASTG" in made.sass and "MEMBAR.ALL.GPU" not in made.sass
