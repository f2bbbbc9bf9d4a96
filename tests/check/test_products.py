"""Loads by wgmma that are noted without a look (checks/pending.py): what the first of them reads does not stand for
what the others read."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
from tests.check.async_proxies import ROW, TILE
from tests.check.warpgroups import ends
from tilewright import cute, sim, utils
from tilewright.cute.nvgpu import OperandMajorMode, warpgroup
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import SimulationError
from tilewright.sim.checks.collect import collecting
from tilewright.utils import hopper_helpers


class Late:
    """Warps 4 to 7 write A and B for the others, which multiply in four steps along K; ``late``: what the last step
    reads of A is written after the barrier."""

    def __init__(self, late: bool) -> None:
        self.late = late

    @cute.jit
    def __call__(self, c: cute.Tensor):
        half, major = cutlass.Float16, OperandMajorMode.K
        tiled_mma = hopper_helpers.make_trivial_tiled_mma(
            half, half, major, major, cutlass.Float32, atom_layout_mnk=(1, 1, 1), tiler_mn=(64, 64)
        )
        self.kernel(c, tiled_mma).launch(grid=(1, 1, 1), block=(256, 1, 1))

    @cute.kernel
    def kernel(self, c: cute.Tensor, tiled_mma: cute.TiledMma):
        t, _, _ = cute.arch.thread_idx()
        smem = utils.SmemAllocator()
        layouts = [
            make(ROW, TILE, cutlass.Float16, 1)
            for make in (hopper_helpers.make_smem_layout_a, hopper_helpers.make_smem_layout_b)
        ]
        sA, sB = [smem.allocate_tensor(cutlass.Float16, x.outer, 1024, swizzle=x.inner) for x in layouts]
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float16, num_bits_per_copy=128)
        threads = cute.make_layout((64, 2), stride=(2, 1))
        copy = cute.make_tiled_copy_tv(atom, threads, cute.make_layout((1, 8))).get_slice(t % 128)
        pA, pB = (copy.partition_D(s[None, None, 0]) for s in (sA, sB))  # (CPY, CPY_M, CPY_K), 16 columns for each k
        ones = cute.make_fragment_like(pA)
        ones.fill(1.0)
        if t >= 128:
            cute.copy(atom, ones, pB)
            for k in cutlass.range_constexpr(3 if self.late else 4):
                cute.copy(atom, ones[None, None, k], pA[None, None, k])
            cute.arch.fence_view_async_shared()
        cute.arch.sync_threads()
        if t >= 128:
            if cutlass.const_expr(self.late):
                cute.copy(atom, ones[None, None, 3], pA[None, None, 3])
        else:
            thread = tiled_mma.get_slice(t)
            fA = tiled_mma.make_fragment_A(thread.partition_A(sA))
            fB = tiled_mma.make_fragment_B(thread.partition_B(sB))
            target = thread.partition_C(c)
            acc = tiled_mma.make_fragment_C(target)
            acc.fill(0.0)
            warpgroup.fence()
            for k in cutlass.range_constexpr(4):
                cute.gemm(tiled_mma, acc, fA[None, None, k, 0], fB[None, None, k, 0], acc)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            cute.autovec_copy(acc, target)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("late", [False, True])
def test_a_step_along_k_that_is_written_too_late(late: bool, seed: int) -> None:
    with sim.options(check="races", seed=seed, arch="sm_90a"), collecting() as report:
        Late(late)(from_dlpack(np.zeros((64, 64), np.float32), assumed_align=16))
    assert report.rules == (["data-race"] if late else [])


def test_a_wait_of_one_warp_is_named_where_the_launch_ends_in_an_error() -> None:
    with sim.options(check="wgmma", arch="sm_90a"), pytest.raises(SimulationError) as caught:
        ends(bug=True, hangs=True)
    text = str(caught.value)
    assert "can never complete" in text and "wgmma-aligned: " in text and "warpgroup.wait_group(0)" in text, text
    with sim.options(check="wgmma", arch="sm_90a"), pytest.raises(SimulationError) as caught:
        ends(bug=False, hangs=True)
    assert "wgmma-aligned" not in str(caught.value)
