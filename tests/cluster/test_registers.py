"""Fences, registers passed between warpgroups, and dependent launches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.machines import MACHINES, OnMachine
from tilewright import sim
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, SimulationError, TilewrightError


class Registers:
    """The first warpgroup gives registers back, the others take them; out[t] is what each thread had computed."""

    def __init__(self, few: int = 40, many: int = 232, groups: int = 3) -> None:
        self.few, self.many, self.threads = few, many, 128 * groups

    @cute.jit
    def __call__(self, out: cute.Tensor):
        self.kernel(out).launch(grid=(2, 1, 1), block=(self.threads, 1, 1))

    @cute.kernel
    def kernel(self, out: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, _, _ = cute.arch.block_idx()
        group = cute.arch.make_warp_uniform(tidx // 128)
        if group == 0:
            cute.arch.setmaxregister_decrease(self.few)
            out[bidx, tidx] = -tidx
        else:
            cute.arch.setmaxregister_increase(self.many)
            out[bidx, tidx] = tidx * (bidx + 1)


@MACHINES
def test_registers_are_passed_on(machine: OnMachine) -> None:
    out = np.zeros((2, 384), np.int32)
    machine.run(Registers(), out)
    t = np.arange(384)
    assert (out == np.where(t < 128, -t, t * [[1], [2]])).all()


def test_more_registers_than_the_block_has_is_a_deadlock() -> None:
    with pytest.raises(
        SimulationError, match=r"waiting for 72 more registers a thread \(it has 168\), 2304 for its warp"
    ) as caught:
        Registers(40, 240)(from_dlpack(np.zeros((2, 384), np.int32)))
    assert "to fix: give back more registers (setmaxregister_decrease" in str(caught.value)
    assert "let every thread that the barrier counts" not in str(caught.value)


def test_a_launch_may_let_pass_a_warp_that_leaves_it_out() -> None:
    @cute.kernel
    def kernel(out: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        if tidx < 96:
            cute.arch.setmaxregister_decrease(40)
        out[tidx] = tidx

    @cute.jit
    def run(out: cute.Tensor):
        kernel(out).launch(grid=(1, 1, 1), block=(128, 1, 1))

    out = np.zeros(128, np.int32)
    with pytest.raises(SimulationError, match="all four warps of a warpgroup must"):
        run(from_dlpack(out))
    with sim.options(check="default,-divergence"):
        run(from_dlpack(out))
    assert (out == np.arange(128)).all()


def test_warps_that_give_back_different_numbers_are_found_when_all_is_checked() -> None:
    """PTX calls it undefined, GPUs do it, and published programs rely on it."""

    @cute.kernel
    def kernel(out: cute.Tensor, other: cutlass.Constexpr):
        tidx, _, _ = cute.arch.thread_idx()
        if tidx < 32:
            cute.arch.setmaxregister_decrease(40)
        else:
            cute.arch.setmaxregister_decrease(other)
        out[tidx] = tidx

    @cute.jit
    def run(out: cute.Tensor, other: cutlass.Constexpr):
        kernel(out, other).launch(grid=(1, 1, 1), block=(128, 1, 1))

    out = np.zeros(128, np.int32)
    run(from_dlpack(out), 96)
    for check in ("all", "divergence"):
        with sim.options(check=check):
            with pytest.raises(SimulationError, match=r"executes it and warp \d executes another one"):
                run(from_dlpack(out), 96)
    with sim.options(check="all,-divergence"):
        run(from_dlpack(out), 96)


def test_increase_to_less_and_decrease_to_more() -> None:
    with pytest.raises(
        SimulationError, match=r"dec.200 by a warp that has 168 registers.*\n.*\n.*\n.*increase to have more"
    ):
        Registers(200, 232)(from_dlpack(np.zeros((2, 384), np.int32)))


@pytest.mark.parametrize(("few", "groups", "text"), [(20, 3, "multiple of 8 from 24 to 256"), (44, 3, "multiple of 8")])
def test_counts(few: int, groups: int, text: str) -> None:
    with pytest.raises(ConstraintError, match=text):
        Registers(few, 232, groups)(from_dlpack(np.zeros((2, 128 * groups), np.int32)))


def kernel_of(body: Any, **launch: Any) -> Any:
    """The staged kernel of ``body(out)``."""

    @cute.kernel
    def kernel(out: cute.Tensor):
        body(out)

    @cute.jit
    def run(out: cute.Tensor):
        kernel(out).launch(grid=(1, 1, 1), **({"block": (128, 1, 1)} | launch))

    return cute.compile(run, from_dlpack(np.zeros(128, np.int32)))


def test_blocks_of_whole_warpgroups_of_a_known_size() -> None:
    with pytest.raises(ConstraintError, match="a block of 96 threads is not made of them"):
        kernel_of(lambda out: cute.arch.setmaxregister_decrease(24), block=(96, 1, 1))

    @cute.kernel
    def kernel(out: cute.Tensor):
        cute.arch.setmaxregister_decrease(24)

    @cute.jit
    def run(out: cute.Tensor, n: cutlass.Int32):
        kernel(out).launch(grid=(1, 1, 1), block=(n, 1, 1))

    with pytest.raises(ConstraintError, match="block of Python ints"):
        cute.compile(run, from_dlpack(np.zeros(128, np.int32)), cutlass.Int32(128))


def test_the_compiler_honours_setmaxnreg() -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilewright.cuda import compile as build

    made = build(cute.compile(Registers(), from_dlpack(np.zeros((2, 384), np.int32))).kernels[0], "sm_90a")
    assert "__launch_bounds__(384, 1)" in made.cuda  # without the 1 the compiler says so and drops them
    assert made.ptx.count("setmaxnreg.") == 2 and made.spills == 0


FENCES = {
    "fence.proxy.async.shared::cta;": lambda: cute.arch.fence_proxy("async.shared", space="cta"),
    "fence.proxy.async.shared::cluster;": lambda: cute.arch.fence_proxy(
        cute.arch.ProxyKind.async_shared, space=cute.arch.SharedSpace.shared_cluster
    ),
    "fence.proxy.async.global;": lambda: cute.arch.fence_proxy("async.global"),
    "fence.proxy.async;": lambda: cute.arch.fence_proxy(cute.arch.ProxyKind.async_),
    "fence.proxy.alias;": lambda: cute.arch.fence_proxy("alias"),
    "fence.acq_rel.cta;": lambda: cute.arch.fence_acq_rel_cta(),
    "fence.acq_rel.cluster;": lambda: cute.arch.fence_acq_rel_cluster(),
    "fence.acq_rel.gpu;": lambda: cute.arch.fence_acq_rel_gpu(),
    "fence.acq_rel.sys;": lambda: cute.arch.fence_acq_rel_sys(),
    "griddepcontrol.wait;": lambda: cute.arch.griddepcontrol_wait(),
    "griddepcontrol.launch_dependents;": lambda: cute.arch.griddepcontrol_launch_dependents(),
}


def test_every_fence_is_the_ptx_instruction_of_its_name() -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilewright.cuda import compile as build

    executor = kernel_of(lambda out: [fence() for fence in FENCES.values()])
    made = build(executor.kernels[0], "sm_90a")
    for text in FENCES:
        assert made.cuda.count(f'"{text}"') == 1 and text in made.ptx
    executor(from_dlpack(np.zeros(128, np.int32)))


def test_fence_view_async_shared_is_that_of_the_block() -> None:
    text = str(kernel_of(lambda out: cute.arch.fence_view_async_shared()).kernels[0])
    assert "fence.proxy.async.shared::cta" in text


@pytest.mark.parametrize("arguments", [("generic",), ("async.global", "cta"), ("async.shared", "gpu")])
def test_fences_that_do_not_exist(arguments: tuple[str, ...]) -> None:
    with pytest.raises(ConstraintError, match="fence_proxy"):
        kernel_of(lambda out: cute.arch.fence_proxy(arguments[0], space=(*arguments, None)[1]))


class Dependent:
    """Two kernels in a stream: the second, which may begin early, adds to what the first wrote. Ten times."""

    @cute.jit
    def __call__(self, x: cute.Tensor, y: cute.Tensor):
        n = x.shape[0]
        for _ in cutlass.range_constexpr(10):
            self.first(x).launch(grid=(n // 128, 1, 1), block=(128, 1, 1), use_pdl=True)
            self.second(x, y).launch(grid=(n // 128, 1, 1), block=(128, 1, 1), use_pdl=True)

    @cute.kernel
    def first(self, x: cute.Tensor):
        i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
        cute.arch.griddepcontrol_wait()
        cute.arch.griddepcontrol_launch_dependents()
        x[i] = x[i] + i

    @cute.kernel
    def second(self, x: cute.Tensor, y: cute.Tensor):
        i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
        cute.arch.griddepcontrol_launch_dependents()
        cute.arch.griddepcontrol_wait()
        y[i] = y[i] + x[x.shape[0] - 1 - i]


@MACHINES
def test_dependent_launches_see_what_was_written(machine: OnMachine) -> None:
    n = 1 << 14
    x, y = np.zeros((2, n), np.int32)
    machine.run(Dependent(), x, y)
    i = np.arange(n)
    assert (x == 10 * i).all() and (y == 55 * (n - 1 - i)).all()


def test_elect_one_takes_the_whole_warp() -> None:
    @cute.jit
    def body(out: cute.Tensor, limit: cutlass.Constexpr):
        tidx, _, _ = cute.arch.thread_idx()
        if tidx % 32 < limit:
            with cute.arch.elect_one():
                out[tidx] = 1

    out = np.zeros(128, np.int32)
    kernel_of(lambda out: body(out, 32))(from_dlpack(out))
    assert out.tolist() == [1, *[0] * 31] * 4
    with pytest.raises(TilewrightError, match=r"elect.sync: its member mask 0xffffffff names lane 8"):
        kernel_of(lambda out: body(out, 8))(from_dlpack(out))
