"""``tcgen05.shift``: rows of tensor memory move by one, in the simulator and as CUDA text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cuda
from tests.blackwell.test_tensor_memory import allocated
from tests.check.pairs import launch
from tests.cuda.build import needs_nvrtc
from tilewright import cute
from tilewright._mlir.dialects import llvm
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import SimulationError
from tilewright.experimental import primitives as prims

SHIFTED = "tcgen05.shift.cta_group::1.down [$0];"


def shifting(
    how: str = "primitive", lanes: tuple[int, ...] = (0, 64), column: int = 4, wait: bool = True, stored: bool = True
) -> Any:
    """A kernel that shifts columns 4 to 11 of warps 0 and 2; cell (lane, column) held 100 * lane + column."""

    @cute.kernel
    def kernel(y: cute.Tensor):
        base, warp = allocated(32, cutlass.Int32)
        t, _, _ = cute.arch.thread_idx()
        done = cute.arch.alloc_smem(cutlass.Int64, 1)
        if t == 0:
            cute.arch.mbarrier_init(done, 1)
        cute.arch.mbarrier_init_fence()
        own = prims.make_tmem_ptr(base.toint() + (warp << 21), cutlass.Int32)
        prims.tcgen05_st(
            "32x32b", own, cutlass.Vector.from_elements(tuple(100 * t + i for i in range(16)), cutlass.Int32)
        )
        if cutlass.const_expr(stored):
            prims.tcgen05_wait("store")
        prims.tcgen05_fence("before_thread_sync")
        cute.arch.sync_threads()
        prims.tcgen05_fence("after_thread_sync")
        if warp == 0:
            if prims.elect_sync():
                for lane in lanes:
                    place = base.toint() + (lane << 16) + column
                    if cutlass.const_expr(how == "primitive"):
                        prims.tcgen05_shift(prims.make_tmem_ptr(place, cutlass.Int32))
                    else:
                        llvm.inline_asm(None, [place.ir_value()], SHIFTED, "r", has_side_effects=True)
                prims.tcgen05_commit(done)
        if cutlass.const_expr(wait):
            cute.arch.mbarrier_wait(done, 0)
        prims.tcgen05_fence("after_thread_sync")
        found = prims.tcgen05_ld("32x32b", own, num=16)
        prims.tcgen05_wait("load")
        for i in cutlass.range_constexpr(16):
            y[t, i] = found[i]
        cute.arch.sync_threads()
        if warp == 0:
            cute.arch.dealloc_tmem(base, 32)

    return kernel


@pytest.mark.parametrize("how", ["primitive", "inline PTX"])
def test_rows_move_by_one(how: str) -> None:
    y = np.zeros((128, 16), np.int32)
    launch(shifting(how), from_dlpack(y), block=128)
    expected = 100 * np.arange(128)[:, None] + np.arange(16)
    for first in (0, 64):
        expected[first : first + 31, 4:12] += 100
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"lanes": (16,)}, "takes lane 16; it shifts the lanes that one warp reaches"),
        ({"column": 30}, "tensor memory, which is not allocated"),
        ({"stored": False}, "uses tensor memory to which a tcgen05.st is still on its way"),
        ({"wait": False}, "touches accumulators of a tcgen05.mma that is not done|nothing orders these two accesses"),
    ],
)
def test_mistakes(how: Any, message: str) -> None:
    with pytest.raises(SimulationError, match=message):
        launch(shifting(**how), from_dlpack(np.zeros((128, 16), np.int32)), block=128)


def test_its_text() -> None:
    needs_nvrtc()
    kernel = shifting()

    @cute.jit
    def host(y: cute.Tensor):
        kernel(y).launch(grid=(1, 1, 1), block=(128, 1, 1))

    compiled = tilewright.cuda.compile(
        cute.compile(host, from_dlpack(np.zeros((128, 16), np.int32))).kernels[0], "sm_100a"
    )
    assert compiled.ptx.count("tcgen05.shift.cta_group::1.down [") == 2
