"""Control flow: uniform, divergent inside warps, divergent between warps around barriers, waves, spinning."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.build import Kernel, c, gptr
from tilewright import sim
from tilewright.errors import SimulationError
from tilewright.ir.types import BOOL, F32, I32, FragType
from tilewright.sim.values import PTR, join_rows

BOTH = pytest.mark.parametrize("schedule", ["seeded", "lockstep"])


def out(n: int) -> np.ndarray:
    return np.full(n, -1, np.int32)


def test_if_results_differ_per_lane() -> None:
    k = Kernel(gptr(I32))
    t = k.global_id()
    even = k.compare("eq", k.binary("and", t, c(1)), c(0))
    (v,) = k.choose(even, lambda: [k.mul(t, 10)], lambda: [c(7)], [I32])
    k.store(k.at(k.args[0], t), v)
    y = out(128)
    k.run(y, grid=2, block=64)
    i = np.arange(128)
    assert (y == np.where(i % 2 == 0, i * 10, 7)).all()


def test_nested_if_and_stores_under_masks() -> None:
    k = Kernel(gptr(I32))
    t = k.tid()
    with k.if_(k.compare("lt", t, c(40))):
        with k.if_(k.compare("gt", t, c(10))):
            k.store(k.at(k.args[0], t), c(1))
        k.store(k.at(k.args[0], k.add(t, 64)), c(2))
    y = out(128)
    k.run(y, block=64)
    i = np.arange(64)
    assert (y[:64] == np.where((i < 40) & (i > 10), 1, -1)).all()
    assert (y[64:] == np.where(i < 40, 2, -1)).all()


def test_loop_with_trip_counts_that_differ_per_lane() -> None:
    k = Kernel(gptr(I32))
    t = k.tid()
    (total,) = k.loop(0, t, lambda i, acc: [k.binary("add", acc, i)], [c(0)])
    k.store(k.at(k.args[0], t), total)
    y = out(96)
    k.run(y, block=96)
    i = np.arange(96)
    assert (y == i * (i - 1) // 2).all()


def test_negative_and_runtime_steps() -> None:
    k = Kernel(gptr(I32), I32)
    (down,) = k.loop(10, 0, lambda i, acc: [k.binary("add", k.mul(acc, 3), i)], [c(0)], step=-3)
    (dyn,) = k.loop(10, 0, lambda i, acc: [k.binary("add", k.mul(acc, 3), i)], [c(0)], step=k.args[1])
    k.store(k.at(k.args[0], 0), down)
    k.store(k.at(k.args[0], 1), dyn)
    y = out(2)
    k.run(y, -3, block=32)
    want = 0
    for i in range(10, 0, -3):
        want = want * 3 + i
    assert y.tolist() == [want, want]


def test_carried_values_swap_in_parallel() -> None:
    k = Kernel(gptr(I32))
    a, b = k.loop(0, 5, lambda i, a, b: [b, a], [c(1), c(2)])
    k.store(k.at(k.args[0], 0), a)
    k.store(k.at(k.args[0], 1), b)
    y = out(2)
    k.run(y)
    assert y.tolist() == [2, 1]


def test_while_collatz_differs_per_lane() -> None:
    k = Kernel(gptr(I32))
    t = k.global_id()

    def before(n, steps):
        return [k.compare("gt", n, c(1)), n, steps]

    def after(n, steps):
        odd = k.compare("eq", k.binary("and", n, c(1)), c(1))
        return [k.select(odd, k.add(k.mul(n, 3), 1), k.binary("shr", n, c(1))), k.add(steps, 1)]

    n, steps = k.while_([k.add(t, 1), c(0)], before, after)
    k.store(k.at(k.args[0], t), k.add(k.mul(steps, 2), n))
    y = out(256)
    k.run(y, grid=2, block=128)
    for i in range(256):
        n, steps = i + 1, 0
        while n > 1:
            n, steps = (3 * n + 1 if n & 1 else n >> 1), steps + 1
        assert y[i] == 2 * steps + n


def test_while_inside_a_loop_forgets_earlier_results() -> None:
    k = Kernel(gptr(I32))
    t = k.tid()

    def body(i, acc):
        (n,) = k.while_([c(0)], lambda n: [k.compare("lt", n, k.binary("add", t, i)), n], lambda n: [k.add(n, 1)])
        return [k.binary("add", acc, n)]

    (total,) = k.loop(0, 3, body, [c(0)])
    k.store(k.at(k.args[0], t), total)
    y = out(32)
    k.run(y)
    assert (y == 3 * np.arange(32) + 3).all()


@BOTH
def test_barrier_in_a_loop_whose_trip_count_differs_per_block(schedule: str) -> None:
    """Blocks leave the loop at different times and still meet their own barriers."""
    k = Kernel(gptr(I32), smem_bytes=512)
    t, b = k.tid(), k.sreg("ctaid.x")
    s = k.smem_alloc(0, 512, 16, I32)
    frag = k.frag_alloc(I32, 2)
    k.frag_store(frag, c(0), [0])

    def body(i, acc):
        k.store(k.at(s, t), k.binary("add", t, i))
        k.sync()
        other = k.load(k.at(s, k.binary("sub", c(127), t)))
        k.sync()
        k.frag_store(frag, k.binary("add", k.frag_load(frag, [0], scalar=True), other), [0])
        return [k.binary("add", acc, other)]

    (acc,) = k.loop(0, k.add(b, 1), body, [c(0)])
    kept = k.frag_load(frag, [0], scalar=True)
    k.store(k.at(k.args[0], k.global_id()), k.binary("add", acc, kept))
    y = out(128 * 6)
    with sim.options(schedule=schedule):
        k.run(y, grid=6, block=128)
    t = np.arange(128)
    for b in range(6):
        assert (y[b * 128 : b * 128 + 128] == 2 * sum(127 - t + i for i in range(b + 1))).all()


@pytest.mark.tilewright_check("none")  # one barrier is used again at once
@BOTH
def test_warps_that_take_different_sides_around_barriers(schedule: str) -> None:
    """A producer warp and three consumers over two named barriers, eight turns."""
    k = Kernel(gptr(I32), smem_bytes=128)
    warp, lane = k.sreg("warpid"), k.sreg("laneid")
    s = k.smem_alloc(0, 128, 16, I32)

    def produce():
        def turn(i):
            k.store(k.at(s, lane), k.add(k.mul(i, 100), 0))
            k.bar_sync(1, 128)
            k.bar_sync(2, 128)

        k.loop(0, 8, turn)
        return [c(0)]

    def consume():
        def turn(i, acc):
            k.bar_sync(1, 128)
            v = k.load(k.at(s, lane))
            k.bar_arrive(2, 128)
            return [k.binary("add", acc, v)]

        (acc,) = k.loop(0, 8, turn, [c(0)])
        return [acc]

    (r,) = k.choose(k.compare("eq", warp, c(0)), produce, consume, [I32])
    k.store(k.at(k.args[0], k.global_id()), r)
    y = out(512)
    with sim.options(schedule=schedule):
        k.run(y, grid=4, block=128)
    y = y.reshape(4, 4, 32)
    assert (y[:, 0] == 0).all()
    assert (y[:, 1:] == 2800).all()


def test_blocks_beyond_the_lane_budget_run_in_waves() -> None:
    k = Kernel(gptr(I32))
    k.store(k.at(k.args[0], k.global_id()), k.sreg("ctaid.x"))
    y = out(100 * 64)
    with sim.options(lanes=256):
        k.run(y, grid=100, block=64)
    assert (y == np.repeat(np.arange(100), 64)).all()


@pytest.mark.tilewright_check("none")  # the flag is a plain one
@pytest.mark.parametrize("lanes", [16384, 64])
def test_a_block_may_spin_on_the_flag_of_another(lanes: int) -> None:
    """Block b waits for block b + 1: in one group of lanes, and when it is not even resident yet."""
    k = Kernel(gptr(I32), gptr(I32))
    b, t = k.sreg("ctaid.x"), k.tid()
    last = k.compare("eq", b, k.add(k.sreg("nctaid.x"), -1))
    leader = k.compare("eq", t, c(0))
    with k.if_(k.binary("and", leader, k.unary("not", last))):
        k.while_(
            [c(0)],
            lambda n: [k.compare("eq", k.load(k.at(k.args[0], k.add(b, 1))), c(0)), n],
            lambda n: [k.add(n, 1)],
        )
    k.sync()
    with k.if_(leader):
        k.store(k.at(k.args[1], b), k.add(k.load(k.at(k.args[1], k.add(b, 1))), 1))
        k.store(k.at(k.args[0], b), c(1))
    flags, chain = np.zeros(9, np.int32), np.zeros(9, np.int32)
    with sim.options(lanes=lanes):
        k.run(flags, chain, grid=8, block=64)
    assert chain.tolist() == [8, 7, 6, 5, 4, 3, 2, 1, 0]


def test_a_flag_that_is_never_set_is_reported_as_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.sim.engine.STUCK", 20)
    k = Kernel(gptr(I32))
    k.while_([c(0)], lambda n: [k.compare("eq", k.load(k.args[0]), c(0)), n], lambda n: [k.add(n, 1)])
    with pytest.raises(SimulationError, match=r"hangs.*\n.*block \(0, 0, 0\):\n.*spinning at .*test_control.py"):
        k.run(np.zeros(1, np.int32))


def test_blocks_that_are_not_whole_warps() -> None:
    k = Kernel(gptr(I32), smem_bytes=256)
    s = k.smem_alloc(0, 256, 4, I32)
    t = k.tid()
    k.store(k.at(s, t), t)
    k.sync()
    k.store(k.at(k.args[0], k.global_id()), k.load(k.at(s, k.binary("sub", c(39), t))))
    y = out(120)
    k.run(y, grid=3, block=40)
    assert (y == np.tile(39 - np.arange(40), 3)).all()


def test_three_dimensional_blocks_and_grids() -> None:
    k = Kernel(gptr(I32))
    x, y, z = (k.sreg(f"tid.{a}") for a in "xyz")
    bx, by, bz = (k.sreg(f"ctaid.{a}") for a in "xyz")
    linear = k.add(k.mul(k.add(k.mul(z, 4), 0), 1), 0)
    linear = k.binary("add", x, k.mul(k.binary("add", y, linear), 8))
    block = k.binary("add", bx, k.mul(k.binary("add", by, k.mul(bz, 3)), 2))
    k.store(k.at(k.args[0], k.binary("add", k.mul(block, 64), linear)), k.binary("add", k.mul(block, 1000), linear))
    out_ = out(64 * 12)
    k.run(out_, grid=(2, 3, 2), block=(8, 4, 2))
    assert (out_ == (np.arange(12)[:, None] * 1000 + np.arange(64)).reshape(-1)).all()


def test_a_fragment_choice_by_uniform_condition_keeps_its_identity() -> None:
    k = Kernel(gptr(F32), BOOL)
    a, b = k.frag_alloc(F32, 1), k.frag_alloc(F32, 1)
    k.frag_store(a, c(1.0, F32), [0])
    k.frag_store(b, c(2.0, F32), [0])
    (chosen,) = k.choose(k.args[1], lambda: [a], lambda: [b], [FragType(F32, 1)])
    k.frag_store(chosen, c(5.0, F32), [0])
    k.store(k.at(k.args[0], 0), k.frag_load(a, [0], scalar=True))
    k.store(k.at(k.args[0], 1), k.frag_load(b, [0], scalar=True))
    y = np.zeros(2, np.float32)
    k.run(y, False)
    assert y.tolist() == [1.0, 5.0]


def test_a_pointer_that_no_group_has_set_joins_to_nothing() -> None:
    order = np.arange(64)
    assert join_rows([None, None], PTR, [32, 32], order, {}) is None
