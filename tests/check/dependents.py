"""Kernels of one stream that overlap."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.pairs import numbers, pair
from tilewright import cute


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
    factor = scale[0]  # nobody writes it: this may come before the wait
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
