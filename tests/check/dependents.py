"""Kernels of one stream that overlap."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import numbers, pair
from tilewright import cute, utils
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack


@cute.kernel
def first(x: cute.Tensor, d: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    cute.arch.griddepcontrol_launch_dependents()
    d[t] = x[t] + 1


@cute.kernel
def second(
    scale: cute.Tensor, d: cute.Tensor, y: cute.Tensor, waits: cutlass.Constexpr, first_of_all: cutlass.Constexpr
):
    t, _, _ = cute.arch.thread_idx()
    factor = scale[0]  # no kernel writes it: this may come before the wait
    if cutlass.const_expr(waits and first_of_all):
        cute.arch.griddepcontrol_wait()
    value = d[63 - t]
    if cutlass.const_expr(waits and not first_of_all):
        cute.arch.griddepcontrol_wait()
    y[t] = value * factor


def follow(waits: bool = True, first_of_all: bool = True, overlap: bool = True) -> None:
    @cute.jit
    def host(x: cute.Tensor, d: cute.Tensor, y: cute.Tensor) -> None:
        first(x, d).launch(grid=(1, 1, 1), block=(64, 1, 1))
        second(x, d, y, waits, first_of_all).launch(grid=(1, 1, 1), block=(64, 1, 1), use_pdl=overlap)

    host(numbers(64), np.zeros(64, np.float32), np.zeros(64, np.float32))


READ, EARLY = "value = d[63 - t]", "cute.arch.griddepcontrol_launch_dependents()"


@pair("griddepcontrol-wait", READ, EARLY)
def a_kernel_that_does_not_wait_for_the_one_before(bug: bool) -> None:
    follow(waits=not bug)


@pair("griddepcontrol-wait", READ, EARLY)
def a_kernel_that_waits_after_it_has_read(bug: bool) -> None:
    follow(first_of_all=not bug)


@pair("griddepcontrol-wait", READ, EARLY)
def a_kernel_that_may_begin_early_and_does_not_wait(bug: bool) -> None:
    follow(waits=False, overlap=bug)


@cute.kernel
def between(z: cute.Tensor, waits: cutlass.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    cute.arch.griddepcontrol_launch_dependents()
    z[t] = 1.0
    if cutlass.const_expr(waits):
        cute.arch.griddepcontrol_wait()


@cute.kernel
def third(d: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    cute.arch.griddepcontrol_wait()
    value = d[63 - t]
    y[t] = value


def chain(waits: bool, overlap: bool = True) -> None:
    @cute.jit
    def host(x: cute.Tensor, d: cute.Tensor, y: cute.Tensor, z: cute.Tensor) -> None:
        first(x, d).launch(grid=(1, 1, 1), block=(64, 1, 1))
        between(z, waits).launch(grid=(1, 1, 1), block=(64, 1, 1), use_pdl=overlap)
        third(d, y).launch(grid=(1, 1, 1), block=(64, 1, 1), use_pdl=True)

    host(*(numbers(64) for _ in range(4)))


@pair("griddepcontrol-wait", READ, EARLY)
def a_kernel_between_two_that_does_not_wait_for_the_first(bug: bool) -> None:
    chain(waits=not bug)


@pair("griddepcontrol-wait", READ, EARLY)
def a_kernel_between_two_that_may_begin_early_and_does_not_wait(bug: bool) -> None:
    chain(waits=False, overlap=bug)


@cute.kernel
def bulk_second(source: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    smem = utils.SmemAllocator()
    full, tile = smem.allocate_array(cutlass.Int64, 1), smem.allocate_tensor(cutlass.Float32, cute.make_layout(64), 16)
    if t == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(full, 256)
        cute.copy(cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cutlass.Float32), source, tile, mbar_ptr=full)
    cute.arch.sync_threads()
    cute.arch.mbarrier_wait(full, 0)
    cute.arch.griddepcontrol_wait()
    y[t] = tile[t]


@pair("griddepcontrol-wait", "cute.copy(cute.make_copy_atom(cpasync.CopyBulkG2SOp()", EARLY)
def a_bulk_copy_before_the_wait_of_what_the_kernel_before_writes(bug: bool) -> None:
    """What that kernel only reads may be copied."""

    @cute.jit
    def host(x: cute.Tensor, d: cute.Tensor, y: cute.Tensor) -> None:
        first(x, d).launch(grid=(1, 1, 1), block=(64, 1, 1))
        bulk_second(d if cutlass.const_expr(bug) else x, y).launch(grid=(1, 1, 1), block=(64, 1, 1), use_pdl=True)

    host(*(from_dlpack(numbers(64), assumed_align=16) for _ in range(3)))
