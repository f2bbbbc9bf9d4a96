"""SyncObject and its kinds, and named barriers whose warps need not come together."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, pipeline, utils
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError


@cute.kernel
def pass_on(out: cute.Tensor, functions: cutlass.Constexpr) -> None:
    """Warp 0 writes, warp 1 reads what it wrote."""
    t, _, _ = cute.arch.thread_idx()
    buffer = utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout(32))
    if t < 32:
        buffer[t] = t * t
        if cutlass.const_expr(functions):
            pipeline.arrive_unaligned(2, 64)
        else:
            pipeline.NamedBarrier(2, 64).arrive_unaligned()
    else:
        if cutlass.const_expr(functions):
            pipeline.wait_unaligned(2, 64)
        else:
            pipeline.NamedBarrier(2, 64).wait_unaligned()
        out[t - 32] = buffer[63 - t]


@cute.jit
def host(out: cute.Tensor, functions: cutlass.Constexpr) -> None:
    pass_on(out, functions).launch(grid=(1, 1, 1), block=(64, 1, 1))


@pytest.mark.parametrize("functions", [True, False])
def test_unaligned_barriers(functions: bool) -> None:
    out = np.zeros(32, np.int32)
    host(from_dlpack(out), functions)
    assert out.tolist() == [i * i for i in range(31, -1, -1)]


@pytest.mark.gpu
def test_unaligned_barriers_on_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    out = torch.zeros(32, dtype=torch.int32, device="cuda")
    host(from_dlpack(out), True)
    assert out.tolist() == [i * i for i in range(31, -1, -1)]


def test_the_machine_code_of_unaligned_barriers() -> None:
    program = cute.compile(host, from_dlpack(np.zeros(32, np.int32)), True)
    artifact = cutlass.cuda.compile(program.kernels[0], "sm_90a")
    assert "barrier.arrive %0, %1;" in artifact.cuda and "barrier.sync %0, %1;" in artifact.cuda
    assert artifact.spills == 0 and re.search(r"barrier\.(cta\.)?arrive", artifact.ptx)


def test_sync_object_base_class() -> None:
    barrier = pipeline.NamedBarrier(1, 64)
    fence = pipeline.PipelineTmaStore.create(num_stages=2).sync_object
    assert isinstance(barrier, pipeline.SyncObject) and isinstance(fence, pipeline.SyncObject)
    assert issubclass(pipeline.MbarrierArray, pipeline.SyncObject)
    assert (barrier.get_barrier(), barrier.max(), fence.get_barrier(), fence.max()) == (1, 16, None, None)
    with pytest.raises(TypeError, match="abstract"):
        pipeline.SyncObject()
    for thing in (barrier, fence):
        with pytest.raises(ConstraintError, match="threads cannot leave"):
            thing.arrive_and_drop()


def test_a_stage_is_asked_for_without_a_wait() -> None:
    @cute.kernel
    def kernel(out: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        group = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
        places = cute.arch.alloc_smem(cutlass.Int64, 2, 8)
        bars = pipeline.MbarrierArray(places, 2, (pipeline.PipelineOp.AsyncThread, group))
        cute.arch.sync_threads()
        out[0, t] = cutlass.Int32(bars.test_wait(1, 0))
        cute.arch.sync_threads()
        bars.arrive(1)
        bars.wait(1, 0)
        out[1, t], out[2, t] = cutlass.Int32(bars.test_wait(1, 0)), cutlass.Int32(bars.test_wait(0, 0))

    @cute.jit
    def run(out: cute.Tensor) -> None:
        kernel(out).launch(grid=(1, 1, 1), block=(32, 1, 1))

    out = np.full((3, 32), 7, np.int32)
    run(from_dlpack(out))
    assert out.tolist() == [[0] * 32, [1] * 32, [0] * 32]
