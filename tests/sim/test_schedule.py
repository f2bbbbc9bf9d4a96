"""Bugs that the schedule must expose (each beside its repaired twin), async groups, deadlocks and barrier mistakes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.sim.build import Kernel, c, gptr
from tilewright import sim
from tilewright.errors import SimulationError
from tilewright.ir.core import Op
from tilewright.ir.instruction import Instruction
from tilewright.ir.types import F32, I32

pytestmark = pytest.mark.usefixtures("values_unchecked")

SEEDS = pytest.mark.parametrize("seed", range(8))


def reverse(barrier: bool, blocks: int, threads: int) -> np.ndarray:
    k = Kernel(gptr(F32), smem_bytes=threads * 4)
    s, t = k.smem_alloc(0, threads * 4, 16, F32), k.tid()
    k.store(k.at(s, t), k.cast(t, F32))
    if barrier:
        k.sync()
    k.store(k.at(k.args[0], k.global_id()), k.load(k.at(s, k.binary("sub", c(threads - 1), t))))
    y = np.zeros(blocks * threads, np.float32)
    k.run(y, grid=blocks, block=threads)
    return y.reshape(blocks, threads)


@pytest.mark.tilewright_check("none")  # races on purpose
@SEEDS
@pytest.mark.parametrize(("blocks", "threads"), [(1, 64), (1, 128), (4, 256), (1, 1024)])
def test_a_missing_barrier_shows_as_poison(seed: int, blocks: int, threads: int) -> None:
    want = np.arange(threads)[::-1]
    with sim.options(seed=seed):
        assert np.isnan(reverse(False, blocks, threads)).any()
        assert (reverse(True, blocks, threads) == want).all()


@pytest.mark.tilewright_check("none")  # races on purpose
@SEEDS
def test_a_broadcast_from_warp_0_without_barrier_shows(seed: int) -> None:
    def run(barrier: bool) -> np.ndarray:
        k = Kernel(gptr(I32), smem_bytes=4)
        s, t = k.smem_alloc(0, 4, 4, I32), k.tid()
        with k.if_(k.compare("eq", t, c(0))):
            k.store(s, c(42))
        if barrier:
            k.sync()
        k.store(k.at(k.args[0], t), k.load(s))
        y = np.zeros(128, np.int32)
        k.run(y, block=128)
        return y

    with sim.options(seed=seed):
        assert (run(False) != 42).any()
        assert (run(True) == 42).all()


@pytest.mark.tilewright_check("none")  # races on purpose
@SEEDS
def test_a_missing_second_barrier_in_a_loop_shows(seed: int) -> None:
    """The buffer is written again while other warps still read it."""

    def run(second: bool) -> bool:
        k = Kernel(gptr(I32), smem_bytes=512)
        s, t = k.smem_alloc(0, 512, 16, I32), k.tid()

        def body(i, acc):
            k.store(k.at(s, t), k.binary("add", t, k.mul(i, 1000)))
            k.sync()
            v = k.load(k.at(s, k.binary("xor", t, c(96))))
            if second:
                k.sync()
            return [k.binary("add", acc, v)]

        (acc,) = k.loop(0, 10, body, [c(0)])
        k.store(k.at(k.args[0], t), acc)
        y = np.zeros(128, np.int32)
        k.run(y, block=128)
        return bool((y == 45000 + 10 * (np.arange(128) ^ 96)).all())

    with sim.options(seed=seed):
        assert not run(False)
        assert run(True)


@pytest.mark.tilewright_check("none")  # races on purpose
def test_one_seed_gives_one_schedule() -> None:
    with sim.options(seed=5):
        first, second = reverse(False, 4, 128), reverse(False, 4, 128)
    with sim.options(seed=6):
        third = reverse(False, 4, 128)
    assert np.array_equal(first, second, equal_nan=True)
    assert not np.array_equal(first, third, equal_nan=True)


# -- asynchronous groups -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CopyLater(Instruction):
    """A cp.async of one element."""

    name = "test.cp"

    def simulate(self, lanes: Any, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        source, target = operands
        lanes.defer("cp.async", lambda: lanes.store(target, lanes.load(source, 1)))
        return ()

    def emit(self, out: Any, op: Op) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class Commit(Instruction):
    name = "test.commit"

    def simulate(self, lanes: Any, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        lanes.commit("cp.async")
        return ()

    emit = CopyLater.emit


@dataclass(frozen=True)
class Wait(Instruction):
    pending: int
    name = "test.wait"

    def simulate(self, lanes: Any, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        lanes.wait("cp.async", self.pending)
        return ()

    emit = CopyLater.emit


def staged(waits: list[int], schedule: str = "seeded") -> np.ndarray:
    """Three committed groups; after each wait the three slots are read."""
    k = Kernel(gptr(F32), gptr(F32), smem_bytes=3 * 256)
    s, t = k.smem_alloc(0, 3 * 256, 16, F32), k.tid()
    for stage in range(3):
        k.call(CopyLater(), [k.at(k.args[0], k.add(t, 64 * stage)), k.at(s, k.add(t, 64 * stage))])
        k.call(Commit(), [])
    for turn, pending in enumerate(waits):
        k.call(Wait(pending), [])
        for stage in range(3):
            place = k.add(t, 64 * (3 * turn + stage))
            k.store(k.at(k.args[1], place), k.load(k.at(s, k.add(t, 64 * stage))))
    x, y = np.ones(192, np.float32), np.zeros(192 * len(waits), np.float32)
    with sim.options(schedule=schedule):
        k.run(x, y, block=64)
    return y.reshape(len(waits), 3, 64)


@pytest.mark.tilewright_check("none")  # races on purpose
def test_a_wait_lands_exactly_the_groups_it_names() -> None:
    y = staged([3, 2, 1, 0])
    assert np.isnan(y[0]).all()
    for turn in range(1, 4):
        assert (y[turn, :turn] == 1).all() and np.isnan(y[turn, turn:]).all()


@pytest.mark.tilewright_check("none")  # races on purpose
@SEEDS
@pytest.mark.parametrize("committed", [True, False])
def test_copy_not_waited_for_reaches_no_other_warp(seed: int, committed: bool) -> None:
    """Not even after the warp that copied has ended."""
    k = Kernel(gptr(F32), gptr(F32), smem_bytes=512)
    s, t = k.smem_alloc(0, 512, 16, F32), k.tid()
    k.call(CopyLater(), [k.at(k.args[0], t), k.at(s, t)])
    if committed:
        k.call(Commit(), [])
    k.call(Wait(1 if committed else 0), [])
    k.sync()
    k.store(k.at(k.args[1], t), k.load(k.at(s, k.binary("xor", t, c(96)))))
    x, y = np.ones(128, np.float32), np.zeros(128, np.float32)
    with sim.options(seed=seed):
        k.run(x, y, block=128)
    assert np.isnan(y).all()


def test_an_effect_under_a_mask_keeps_its_mask() -> None:
    k = Kernel(gptr(F32), gptr(F32), smem_bytes=256)
    s, t = k.smem_alloc(0, 256, 16, F32), k.tid()
    with k.if_(k.compare("lt", t, c(20))):
        k.call(CopyLater(), [k.at(k.args[0], t), k.at(s, t)])
    k.call(Commit(), [])
    k.call(Wait(0), [])
    k.store(k.at(k.args[1], t), k.load(k.at(s, t)))
    x, y = np.arange(20, dtype=np.float32), np.zeros(64, np.float32)
    k.run(x, y, block=64)
    assert (y[:20] == x).all() and np.isnan(y[20:]).all()


def test_a_fault_in_an_effect_names_the_issuing_line() -> None:
    k = Kernel(gptr(F32), smem_bytes=256)
    s, t = k.smem_alloc(0, 256, 16, F32), k.tid()
    k.call(CopyLater(), [k.at(k.args[0], t), k.at(s, t)])
    issued = k.function.body.ops[-1].loc
    k.call(Commit(), [])
    k.call(Wait(0), [])
    with pytest.raises(
        SimulationError, match=f"global load.*out of bounds(.|\n)*:{issued.line}(.|\n)*thread \\(50, 0, 0\\)"
    ):
        k.run(np.zeros(50, np.float32), block=64)


@dataclass(frozen=True)
class AddLater(Instruction):
    """A wgmma in small: adds one to a fragment some time before the wait."""

    name = "test.add"

    def simulate(self, lanes: Any, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        rows = np.flatnonzero(lanes.active().reshape(-1, 32).any(1))
        held = lanes.hold(operands[0], rows)

        def effect() -> None:
            for warp in held:
                warp.values[...] += 1
                warp.release()

        lanes.defer("cp.async", effect)
        return ()

    emit = CopyLater.emit


def test_effects_on_registers_survive_splits_and_merges() -> None:
    """Odd warps go another way, around a barrier, between the issue and the wait; what they do there to the registers
    comes before the effects, which are late."""
    k = Kernel(gptr(I32))
    t, warp = k.tid(), k.sreg("warpid")
    f = k.frag_alloc(I32, 1)
    k.frag_store(f, t, [0])
    k.call(AddLater(), [f])
    k.call(Commit(), [])
    with k.if_(k.compare("eq", k.binary("and", warp, c(1)), c(1))):
        k.call(AddLater(), [f])
        k.bar_sync(1, 64)
    k.call(Commit(), [])
    k.call(AddLater(), [f])
    k.sync()
    k.call(Commit(), [])
    k.frag_store(f, k.mul(k.frag_load(f, [0], scalar=True), 2), [0])
    k.call(Wait(0), [])
    k.store(k.at(k.args[0], k.global_id()), k.frag_load(f, [0], scalar=True))
    y = np.zeros((3, 128), np.int32)
    k.run(y, grid=3, block=128)
    t = np.arange(128)
    assert (y == 2 * t + 2 + (t // 32 % 2)).all()


@dataclass(frozen=True)
class SetLater(Instruction):
    """Sets a flag and wakes those that wait for it, some time later (what TMA and its mbarrier do)."""

    state: Any
    name = "test.set"
    __hash__ = object.__hash__

    def simulate(self, lanes: Any, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        lanes.eventually(lambda: self.state.append(1))
        return ()

    emit = CopyLater.emit


@dataclass(frozen=True)
class WaitForState(Instruction):
    state: Any
    arrivals: int
    name = "test.wait_state"
    blocking = True
    __hash__ = object.__hash__

    def simulate(self, lanes: Any, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        lanes.wait_until(lambda: np.full(lanes.warps, len(self.state) >= self.arrivals), f"{self.arrivals} arrivals")
        return ()

    emit = CopyLater.emit


def test_effects_without_a_wait_land_when_no_warp_can_go_on() -> None:
    state: list[int] = []
    k = Kernel(gptr(I32))
    k.call(SetLater(state), [])
    with k.if_(k.compare("eq", k.sreg("warpid"), c(1))):
        k.call(WaitForState(state, 1), [])
    k.store(k.at(k.args[0], k.tid()), c(1))
    y = np.zeros(64, np.int32)
    k.run(y, block=64)
    assert (y == 1).all()


def test_waiting_for_what_never_comes_is_a_deadlock_with_its_reason() -> None:
    k = Kernel()
    k.call(WaitForState([], 1), [])
    with pytest.raises(SimulationError, match=r"deadlock(.|\n)*warps 0-1 \(threads 0-63\): waiting for 1 arrivals"):
        k.run(block=64)


# -- barrier mistakes --------------------------------------------------------------------------------------------------


def test_a_barrier_that_not_all_warps_reach() -> None:
    k = Kernel()
    with k.if_(k.compare("lt", k.sreg("warpid"), c(2))):
        k.sync()
    with pytest.raises(SimulationError) as caught:
        k.run(grid=3, block=128)
    text = str(caught.value)
    assert "deadlock in kernel 'kernel'" in text and "barrier 0, where 64 of 128 threads have arrived" in text
    assert "warps 0-1 (threads 0-63)" in text and "warps 2-3 (threads 64-127): no longer in the kernel" in text
    assert "test_schedule.py:" in text


def test_warps_at_different_barriers_deadlock_and_both_are_named() -> None:
    k = Kernel()
    k.choose(
        k.compare("eq", k.sreg("warpid"), c(0)),
        lambda: (k.bar_sync(1, 64), [c(0)])[1],
        lambda: (k.bar_sync(2, 64), [c(0)])[1],
        [I32],
    )
    with pytest.raises(SimulationError, match=r"warp 0 (.|\n)*barrier 1(.|\n)*warp 1 (.|\n)*barrier 2"):
        k.run(block=64)


def test_a_barrier_in_a_branch_that_divides_a_warp() -> None:
    k = Kernel()
    with k.if_(k.compare("lt", k.tid(), c(40))):
        k.sync()
    with pytest.raises(SimulationError, match=r"only 8 of the warp's threads take \(lanes 0-7\)(.|\n)*to fix"):
        k.run(block=64)


def test_barriers_with_clashing_counts_bad_ids_and_bad_counts() -> None:
    k = Kernel()
    k.bar_sync(1, k.select(k.compare("eq", k.sreg("warpid"), c(0)), c(64), c(128)))
    with pytest.raises(SimulationError, match="is used with .* threads here and .* threads elsewhere"):
        k.run(block=128)
    for barrier, count, text in (
        (16, 64, "barrier 16 does not exist"),
        (1, 40, "multiple of 32"),
        (1, 256, "can never complete"),
    ):
        k = Kernel(I32, I32)
        k.bar_sync(k.args[0], k.args[1])
        with pytest.raises(SimulationError, match=text):
            k.run(barrier, count, block=64)


@pytest.mark.tilewright_check("none")  # warps that nothing keeps apart use one barrier
def test_one_barrier_completes_twice_in_one_step() -> None:
    """Pairs of warps meet at the same barrier one after another."""
    k = Kernel(gptr(I32))
    k.bar_sync(3, 64)
    k.store(k.at(k.args[0], k.tid()), c(1))
    y = np.zeros(128, np.int32)
    with sim.options(schedule="lockstep"):
        k.run(y, block=128)
    assert (y == 1).all()


@pytest.mark.tilewright_check("none")  # warps that nothing keeps apart use one barrier
def test_a_barrier_may_meet_with_another_count_once_it_is_complete() -> None:
    k = Kernel(gptr(I32))
    k.bar_sync(3, 128)
    k.bar_sync(3, 64)
    k.store(k.at(k.args[0], k.tid()), c(1))
    y = np.zeros(128, np.int32)
    with sim.options(schedule="lockstep"):
        k.run(y, block=128)
    assert (y == 1).all()


def test_options_of_threads_that_end_in_another_order() -> None:
    """What the first one found is there again, not what the second one found."""
    before = sim.current_options()
    first, second = sim.options(arch="sm_80"), sim.options(sms=3)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sim.current_options().sms == 3
    second.__exit__(None, None, None)
    assert sim.current_options() == before
