"""mbarriers on the simulator: phases, parities, bytes, and every misuse that it must name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.sim.build import Kernel, c, gptr
from tilewright import sim
from tilewright.atoms.cp_async import CpAsync
from tilewright.atoms.mbarrier import (
    CpAsyncMbarrierArrive,
    FenceMbarrierInit,
    MbarrierArrive,
    MbarrierCompleteTx,
    MbarrierExpectTx,
    MbarrierInit,
    MbarrierInval,
    MbarrierTest,
    MbarrierWait,
)
from tilewright.errors import ConstraintError, SimulationError
from tilewright.ir.core import Value
from tilewright.ir.types import BOOL, F32, I32, I64

SEEDS = pytest.mark.parametrize("seed", range(6))


class Barriers(Kernel):
    """A kernel with mbarriers at the start of shared memory and ``data`` behind them."""

    def __init__(self, *params: Any, count: int = 1, arrivals: Any = 32, sync: bool = True) -> None:
        super().__init__(*params, smem_bytes=128 + 4096)
        self.bar = self.smem_alloc(0, 128, 128, I64)
        self.data = self.smem_alloc(128, 4096, 128, F32)
        self.t = self.tid()
        self.warp = self.binary("div", self.t, c(32))
        with self.if_(self.compare("eq", self.t, c(0))):
            for i in range(count):
                self.call(MbarrierInit(), [self.at(self.bar, i), c(arrivals)])
            self.call(FenceMbarrierInit(), [])
        if sync:
            self.sync()

    def arrive(self, bar: Value | None = None, **how: Any) -> None:
        self.call(MbarrierArrive(**how), [bar or self.bar])

    def wait(self, parity: Any = 0, bar: Value | None = None) -> None:
        self.call(MbarrierWait(), [bar or self.bar, c(parity) if isinstance(parity, int) else parity])

    def in_warp(self, n: int) -> Any:
        return self.if_(self.compare("eq", self.warp, c(n)))

    def elected(self) -> Any:
        return self.if_(self.compare("eq", self.binary("rem", self.t, c(32)), c(0)))


@SEEDS
@pytest.mark.parametrize("blocks", [1, 3])
def test_a_wait_orders_the_memory_of_two_warps(seed: int, blocks: int) -> None:
    """Warp 0 produces 7 tiles through one buffer, warp 1 consumes them; full and empty flip their parities."""
    k = Barriers(gptr(F32), count=2)
    full, empty, lane = k.bar, k.at(k.bar, 1), k.binary("rem", k.t, c(32))
    block = k.sreg("ctaid.x")

    def produce(i: Value) -> None:
        k.wait(k.binary("xor", k.binary("and", i, c(1)), c(1)), empty)
        k.store(k.at(k.data, lane), k.cast(k.add(k.mul(i, 100), lane), F32))
        k.arrive(full)

    def consume(i: Value) -> None:
        k.wait(k.binary("and", i, c(1)), full)
        value = k.load(k.at(k.data, lane))
        k.arrive(empty)
        k.store(k.at(k.args[0], k.add(k.mul(k.add(k.mul(block, 7), i), 32), lane)), value)

    with k.in_warp(0):
        k.loop(0, 7, lambda i: produce(i))
    with k.in_warp(1):
        k.loop(0, 7, lambda i: consume(i))
    out = np.zeros((blocks, 7, 32), np.float32)
    with sim.options(seed=seed):
        k.run(out, grid=blocks, block=64)
    assert (out == np.arange(7)[:, None] * 100 + np.arange(32)).all()


def test_the_parity_before_the_first_phase_counts_as_complete() -> None:
    k = Barriers(gptr(I32), arrivals=2)
    for i, step in enumerate([None, True, True, True, True]):
        with k.if_(k.compare("eq", k.t, c(0))):
            if step:
                k.arrive()
            for parity in (0, 1):
                (done,) = k.call(MbarrierTest(hint=bool(parity)), [k.bar, c(parity)], [BOOL])
                k.store(k.at(k.args[0], 2 * i + parity), k.cast(done, I32))
    out = np.zeros((5, 2), np.int32)
    k.run(out)
    assert out.tolist() == [[0, 1], [0, 1], [1, 0], [1, 0], [0, 1]]


@pytest.mark.tilewright_check("none")  # complete_tx stands for a copy here: nothing orders the stores
@SEEDS
def test_bytes_keep_a_phase_open(seed: int) -> None:
    """The arrivals are there at once; the phase completes with the last byte, whichever order they come in."""
    k = Barriers(gptr(F32), arrivals=1)
    with k.in_warp(0), k.elected():
        k.call(MbarrierExpectTx(arrive=True), [k.bar, c(96)])
    with k.in_warp(1), k.elected():
        k.call(MbarrierExpectTx(), [k.bar, c(32)])
        k.store(k.data, c(1.5, F32))
        k.call(MbarrierCompleteTx(), [k.bar, c(64)])
        k.store(k.at(k.data, 1), c(2.5, F32))
        k.call(MbarrierCompleteTx(), [k.bar, c(64)])
    with k.in_warp(2):
        k.wait(0)
        k.store(k.args[0], k.load(k.data))
        k.store(k.at(k.args[0], 1), k.load(k.at(k.data, 1)))
    out = np.zeros(2, np.float32)
    with sim.options(seed=seed):
        k.run(out, block=96)
    assert out.tolist() == [1.5, 2.5]


@SEEDS
@pytest.mark.parametrize("noinc", [True, False])
def test_cp_async_arrives_when_its_bytes_have_landed(seed: int, noinc: bool) -> None:
    """With noinc the copies make the 32 arrivals of the phase; without, the phase waits for them besides the 32."""
    k = Barriers(gptr(F32, 16), gptr(F32))
    lane = k.binary("rem", k.t, c(32))
    with k.in_warp(0):
        for part in range(2):
            offset = k.add(k.mul(lane, 4), 128 * part)
            k.call(
                CpAsync(128),
                [k.ptr_add(k.args[0], offset, 16), k.ptr_add(k.data, offset, 16)],
                count=1,
                predicated=False,
            )
        k.call(CpAsyncMbarrierArrive(noinc), [k.bar])
        if not noinc:
            k.arrive()
    with k.in_warp(1):
        k.wait(0)
        for part in range(8):
            k.store(k.at(k.args[1], k.add(lane, 32 * part)), k.load(k.at(k.data, k.add(lane, 32 * part))))
    x, out = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    with sim.options(seed=seed):
        k.run(x, out, block=64)
    assert (out == x).all()


def test_spinning_on_try_wait_lets_the_others_run() -> None:
    k = Barriers(gptr(I32), arrivals=1)
    with k.in_warp(0), k.elected():
        k.store(k.data, c(7.0, F32))
        k.arrive()
    with k.in_warp(1):

        def unfinished(*_: Value) -> list[Value]:
            (done,) = k.call(MbarrierTest(), [k.bar, c(0)], [BOOL])
            return [k.binary("xor", done, c(True, BOOL))]

        k.while_([], unfinished, lambda: [])
        k.store(k.args[0], k.cast(k.load(k.data), I32))
    out = np.zeros(1, np.int32)
    k.run(out, block=64)
    assert out[0] == 7


@pytest.mark.tilewright_check("none")  # no barrier of the cluster after the init
def test_arrivals_at_another_block_of_the_cluster() -> None:
    """Every block arrives at its neighbour's mbarrier and waits for its own."""
    k = Barriers(gptr(I32), arrivals=3)
    rank = k.sreg("cluster_ctarank")
    other = k.binary("xor", rank, c(1))
    with k.if_(k.compare("eq", k.t, c(0))):
        k.call(MbarrierArrive(arrivals=2, remote=True), [k.bar, other])
        k.call(MbarrierExpectTx(arrive=True, remote=True), [k.bar, c(0), other])
        k.call(MbarrierWait(), [k.bar, c(0)])
    k.store(k.at(k.args[0], k.sreg("ctaid.x")), k.add(rank, 1))
    out = np.zeros(4, np.int32)
    with sim.options(schedule="lockstep"):  # nothing else orders one block's init before another's arrival here
        k.run(out, grid=4, cluster=(2, 1, 1))
    assert out.tolist() == [1, 2, 1, 2]


# -- misuse ------------------------------------------------------------------------------------------------------------


def refused(k: Kernel, *args: Any, block: int = 64) -> str:
    messages = set()
    for seed in range(3):
        with sim.options(seed=seed), pytest.raises(SimulationError) as caught:
            k.run(*args, block=block)
        messages.add(str(caught.value).split("\n")[0])
        assert "test_mbarrier.py:" in str(caught.value) and "to fix: " in str(caught.value)
    return "\n".join(messages)


def test_more_arrivals_than_counted_in_one_instruction() -> None:
    k = Barriers(arrivals=1)
    with k.in_warp(1):
        k.arrive()
    assert "mbarrier.arrive: 32 more arrivals than it expects" in refused(k)


def test_more_arrivals_than_counted_by_several_warps() -> None:
    k = Barriers(arrivals=1)
    with k.elected():
        k.arrive()
    k.wait(0)
    assert all("more arrivals" in m or "deadlock" in m for m in refused(k).split("\n"))


def test_a_phase_without_a_wait() -> None:
    k = Barriers(arrivals=1)
    with k.elected():
        k.arrive()
    with k.in_warp(1):
        k.bar_sync(1, 64)
        k.wait(0)
    with k.in_warp(0):
        k.bar_sync(1, 64)
        k.wait(0)
    assert all("more arrivals" in m or "completes again before any thread" in m for m in refused(k).split("\n"))


def test_an_mbarrier_that_is_not_initialised() -> None:
    k = Barriers()
    k.wait(0, k.at(k.bar, 1))
    assert "mbarrier.wait on shared-memory offset 8, where no mbarrier has been initialised" in refused(k)


def test_threads_that_do_not_synchronise_after_the_initialisation() -> None:
    k = Barriers(arrivals=64, sync=False)
    k.arrive()
    k.wait(0)
    assert "where no mbarrier has been initialised" in refused(k)


def test_a_second_initialisation() -> None:
    k = Barriers()
    with k.in_warp(0), k.elected():
        k.call(MbarrierInit(), [k.bar, c(1)])
    assert "which is in use" in refused(k)


def test_initialisation_by_two_warps() -> None:
    k = Barriers(count=0)
    k.call(MbarrierInit(), [k.bar, c(1)])
    with sim.options(schedule="lockstep"):
        assert "by several warps" in refused(k)


def test_memory_of_an_invalidated_mbarrier_can_be_reused() -> None:
    k = Barriers(arrivals=1)
    with k.if_(k.compare("eq", k.t, c(0))):
        k.call(MbarrierInval(), [k.bar])
        k.call(MbarrierInit(), [k.bar, c(2)])
        k.arrive()
        k.call(MbarrierInval(), [k.bar])
        k.arrive()
    assert "where no mbarrier has been initialised" in refused(k)


def test_a_second_life_begins_with_phase_0() -> None:
    k = Barriers(gptr(I32), arrivals=64)
    k.arrive()
    k.wait(0)
    k.sync()
    with k.if_(k.compare("eq", k.t, c(0))):
        k.call(MbarrierInval(), [k.bar])
        k.call(MbarrierInit(), [k.bar, c(64)])
        k.call(FenceMbarrierInit(), [])
    k.sync()
    k.store(k.at(k.args[0], k.t), k.cast(k.call(MbarrierTest(), [k.bar, c(0)], [BOOL])[0], I32))
    k.sync()
    k.arrive()
    k.wait(0)
    early = np.full(64, -1, np.int32)
    k.run(early, block=64)
    assert (early == 0).all()  # no thread has arrived in the new phase 0


def test_the_lowest_bit_of_a_parity_counts() -> None:
    k = Barriers(gptr(I32))
    for parity in (3, -1):  # as 1: the phase before the first one
        k.wait(parity)
    for i, parity in enumerate((2, -2, 5)):
        (done,) = k.call(MbarrierTest(), [k.bar, c(parity)], [BOOL])
        with k.if_(k.compare("eq", k.t, c(0))):
            k.store(k.at(k.args[0], i), k.cast(done, I32))
    found = np.full(3, -1, np.int32)
    k.run(found)
    assert found.tolist() == [0, 0, 1]


def test_a_deadlock_report_says_what_the_mbarrier_lacks() -> None:
    k = Barriers(arrivals=33)
    with k.in_warp(1):
        k.call(MbarrierExpectTx(arrive=True), [k.bar, c(16)])
    with k.in_warp(0):
        k.wait(0)
    with sim.options(seed=0), pytest.raises(SimulationError) as caught:
        k.run(block=64)
    text = str(caught.value)
    assert "warp 0 (threads 0-31): waiting for the phase of parity 0 of the mbarrier at shared-memory offset 0" in text
    assert "(in phase 0: 32 of 33 arrivals, 512 bytes outstanding)" in text and "test_mbarrier.py:" in text


def test_mbarrier_instructions_refuse_wrong_operands_while_staging() -> None:
    k = Barriers(gptr(I64))
    with pytest.raises(ConstraintError, match="must be in shared memory"):
        k.call(MbarrierArrive(), [k.args[0]])
    with pytest.raises(ConstraintError, match="not known to be aligned to 8 bytes"):
        k.call(MbarrierArrive(), [k.smem_alloc(4, 8, 4, I32)])
    with pytest.raises(ConstraintError, match=r"takes \(mbarrier, parity: i32\)"):
        k.call(MbarrierWait(), [k.bar])
    with pytest.raises(ConstraintError, match="a count of 0 arrivals"):
        k.call(MbarrierInit(), [k.bar, c(0)])
    with pytest.raises(ConstraintError, match="0 arrivals; a static count"):
        MbarrierArrive(arrivals=0)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_the_text_assembles(arch: str) -> None:
    cuda = pytest.importorskip("tilewright.cuda.compiler")
    pytest.importorskip("cuda.bindings.nvrtc")
    k = Barriers(gptr(I32), gptr(F32, 16))
    k.call(CpAsync(128), [k.args[1], k.data], count=1, predicated=False)
    for noinc in (True, False):
        k.call(CpAsyncMbarrierArrive(noinc), [k.bar])
    k.arrive()
    for hint in (True, False):
        (done,) = k.call(MbarrierTest(hint), [k.bar, k.t], [BOOL])
        k.store(k.args[0], k.cast(done, I32))
    k.wait(k.t)
    expected = ["mbarrier.init.shared", "mbarrier.arrive.shared", "mbarrier.test_wait.parity", "mbarrier.inval"]
    if arch == "sm_90a":
        expected += ["mbarrier.try_wait.parity", "fence.mbarrier_init.release.cluster", "mapa.shared::cluster"]
        k.arrive(arrivals=2)
        k.call(MbarrierArrive(3, True), [k.bar, k.t])
        k.call(MbarrierCompleteTx(), [k.bar, k.t])
        for order, scope in (("relaxed", None), ("release", "cluster")):
            k.call(MbarrierArrive(order=order, scope=scope), [k.bar])
            k.call(MbarrierArrive(2, True, order, scope), [k.bar, k.t])
            k.call(MbarrierExpectTx(True, False, order, scope), [k.bar, k.t])
        for atom in (MbarrierTest(order="relaxed"), MbarrierTest(scope="cluster", limited=True)):
            k.call(atom, [k.bar, k.t, k.t][: 1 + len(atom.takes)], [BOOL])
        expected += ["mbarrier.arrive.relaxed.cta.shared::cta", "mbarrier.arrive.release.cluster.shared::cluster"]
        expected += ["mbarrier.arrive.expect_tx.relaxed.cta", "try_wait.parity.relaxed.cta", "parity.acquire.cluster"]
        for arrive in (True, False):
            k.call(MbarrierExpectTx(arrive), [k.bar, k.t])
            k.call(MbarrierExpectTx(arrive, True), [k.bar, k.t, k.t])
    k.call(MbarrierInval(), [k.bar])
    made = cuda.compile(k.function, arch)
    assert made.cubin and [text for text in expected if text not in made.cuda] == []
    assert ("try_wait" in made.cuda) == (arch == "sm_90a")
