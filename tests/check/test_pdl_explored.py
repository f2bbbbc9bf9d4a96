"""Kernels that overlap, under exploration: a launch that is run again does not overlap with itself."""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
from tests.check.dependents import first
from tests.check.pairs import numbers
from tilewright import cute, sim


@cute.kernel
def writes_then_waits(d: cute.Tensor, y: cute.Tensor, waits: cutlass.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    cute.arch.griddepcontrol_launch_dependents()
    y[t] = 1.0
    if cutlass.const_expr(waits):
        cute.arch.griddepcontrol_wait()
    y[t] = d[63 - t]


def explored(waits: bool) -> Any:
    @cute.jit
    def host(x: cute.Tensor, d: cute.Tensor, y: cute.Tensor) -> None:
        first(x, d).launch(grid=(1, 1, 1), block=(64, 1, 1))
        writes_then_waits(d, y, waits).launch(grid=(1, 1, 1), block=(64, 1, 1), use_pdl=True)

    arrays = [numbers(64) for _ in range(3)]
    return sim.explore(lambda: host(*arrays), schedules=4)


def test_a_kernel_that_is_run_again_does_not_overlap_with_itself() -> None:
    assert explored(waits=True)


def test_every_run_overlaps_with_the_kernel_before() -> None:
    failure = explored(waits=False).failure
    assert failure is not None and failure.kind == "griddepcontrol-wait"
