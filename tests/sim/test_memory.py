"""Memories and fragments: widths, masks, uniform accesses, pointers of every origin, atomics, poison."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.sim.build import Kernel, c, gptr
from tilewright import sim
from tilewright.atoms.atomic import Atomic, OrderedLoad, OrderedStore
from tilewright.ir.types import (
    BF16,
    BOOL,
    E4M3,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U32,
    U64,
    MemSpace,
    PtrType,
    ScalarType,
)
from tilewright.sim.memory import AddressSpace

pytestmark = pytest.mark.usefixtures("values_unchecked")

TYPES = [I8, U8, I16, F16, BF16, I32, F32, I64, F64, E4M3]


@pytest.mark.parametrize("elem", TYPES, ids=str)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 8, 16, 32])
@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("masked", [False, True])
def test_vector_accesses_of_every_width(elem: ScalarType, count: int, space: str, masked: bool) -> None:
    align = min(16, elem.bytes * (count & -count))
    n = 64 * count
    k = Kernel(gptr(elem, align), gptr(elem, align), smem_bytes=n * elem.bytes)
    t = k.tid()
    s = k.smem_alloc(0, n * elem.bytes, 16, elem)

    def body() -> None:
        there = k.binary("sub", c(63), t)
        v = k.load(k.ptr_add(k.args[0], k.mul(there, count), align=align), count)
        if space == "shared":
            k.store(k.ptr_add(s, k.mul(t, count), align=align), v)
            v = k.load(k.ptr_add(s, k.mul(t, count), align=align), count)
        k.store(k.ptr_add(k.args[1], k.mul(t, count), align=align), v)

    if masked:
        with k.if_(k.compare("ne", k.binary("rem", t, c(3)), c(1))):
            body()
    else:
        body()
    x = np.random.default_rng(0).integers(0, 100, n).astype(elem.dtype)
    y = np.zeros(n, elem.dtype)
    k.run(x, y, block=64)
    want = x.reshape(64, count)[::-1].copy()
    if masked:
        want[np.arange(64) % 3 == 1] = 0
    assert np.array_equal(y.view(np.uint8), want.reshape(-1).view(np.uint8))


def test_the_same_address_for_all_lanes() -> None:
    k = Kernel(gptr(F32, 16), gptr(F32, 16), smem_bytes=16)
    s = k.smem_alloc(0, 16, 16, F32)
    v = k.load(k.args[0], 4)
    k.store(s, v)
    k.sync()
    w = k.load(s, 4)
    k.store(k.ptr_add(k.args[1], k.mul(k.global_id(), 4), align=16), w)
    x, y = np.arange(4, dtype=np.float32), np.zeros((128, 4), np.float32)
    k.run(x, y, grid=2, block=64)
    assert (y == x).all()


@pytest.mark.tilewright_check("none")  # a race on purpose
def test_lanes_that_store_to_one_address_leave_one_value() -> None:
    k = Kernel(gptr(I32))
    k.store(k.args[0], k.tid())
    y = np.full(1, -1, np.int32)
    k.run(y, block=64)
    assert 0 <= y[0] < 64


def test_a_uniform_shared_load_differs_between_blocks() -> None:
    k = Kernel(gptr(I32), smem_bytes=4)
    s = k.smem_alloc(0, 4, 4, I32)
    k.store(s, k.sreg("ctaid.x"))
    k.sync()
    k.store(k.at(k.args[0], k.global_id()), k.load(s))
    y = np.zeros(8 * 32, np.int32)
    k.run(y, grid=8)
    assert (y == np.repeat(np.arange(8), 32)).all()


def test_a_vector_as_wide_as_the_group_of_lanes() -> None:
    """32 elements and 32 lanes: a uniform vector is not taken for one value per lane."""
    k = Kernel(gptr(F32, 16), gptr(F32, 16))
    v = k.load(k.args[0], 32)
    doubled = k.binary("add", v, v)
    k.store(k.ptr_add(k.args[1], k.mul(k.tid(), 32), align=16), doubled)
    x, y = np.arange(32, dtype=np.float32), np.zeros((32, 32), np.float32)
    k.run(x, y)
    assert (y == 2 * x).all()


def test_fresh_memory_and_registers_are_poisoned() -> None:
    k = Kernel(gptr(F32), gptr(I32), smem_bytes=256)
    s, i = k.smem_alloc(0, 128, 16, F32), k.smem_alloc(128, 128, 16, I32)
    t = k.tid()
    k.store(k.at(k.args[0], t), k.load(k.at(s, t)))
    k.store(k.at(k.args[1], t), k.load(k.at(i, t)))
    f, g = k.frag_alloc(F16, 2), k.frag_alloc(U32, 2)
    k.store(k.at(k.args[0], k.add(t, 32)), k.cast(k.frag_load(f, [0], scalar=True), F32))
    k.store(k.at(k.args[1], k.add(t, 32)), k.bitcast(k.frag_load(g, [1], scalar=True), I32))
    x, y = np.zeros(64, np.float32), np.zeros(64, np.int32)
    k.run(x, y)
    assert np.isnan(x).all() and (y.view(np.uint32) == 0xCDCDCDCD).all()


@pytest.mark.tilewright_check("none")  # a race on purpose
def test_poison_returns_with_every_wave() -> None:
    k = Kernel(gptr(F32), smem_bytes=4)
    s = k.smem_alloc(0, 4, 4, F32)
    k.store(k.at(k.args[0], k.sreg("ctaid.x")), k.load(s))
    k.store(s, c(1.0, F32))
    y = np.zeros(4, np.float32)
    with sim.options(lanes=32):
        k.run(y, grid=4)
    assert np.isnan(y).all()


def test_fragments_by_slices_gathers_masks_and_runtime_index() -> None:
    k = Kernel(gptr(I32))
    t = k.tid()
    f = k.frag_alloc(I32, 8)
    for j in range(8):
        k.frag_store(f, k.add(k.mul(t, 100), j), [j])
    before = k.frag_load(f, [0, 1, 2, 3])
    with k.if_(k.compare("lt", t, c(16))):
        k.frag_store(f, k.splat(c(-5), 3), [0, 2, 4])
        k.frag_store(f, k.build([c(-6), c(-7)]), [7, 5])
        k.frag_store(f, k.shuffle(before, [3, 2]), [0, 3], k.binary("and", t, c(3)))
    dynamic = k.frag_load(f, [1], k.binary("and", t, c(3)), scalar=True)
    rest = k.frag_load(f, [7, 0, 5, 2])
    parts = [dynamic, *(k.extract(before, j) for j in range(4)), *(k.extract(rest, j) for j in range(4))]
    for j, value in enumerate(parts):
        k.store(k.at(k.args[0], k.add(k.mul(t, 9), j)), value)
    y = np.zeros((32, 9), np.int32)
    k.run(y)
    for t in range(32):
        f = [100 * t + j for j in range(8)]
        first = f[:4]
        if t < 16:
            f[0] = f[2] = f[4] = -5
            f[7], f[5] = -6, -7
            f[t & 3], f[(t & 3) + 3] = first[3], first[2]
        assert y[t].tolist() == [f[(t & 3) + 1], *first, f[7], f[0], f[5], f[2]]


# -- pointers ----------------------------------------------------------------------------------------------------------


def test_pointers_chosen_per_lane_among_arrays_and_shared_memory() -> None:
    k = Kernel(gptr(I32), gptr(I32), gptr(I32), smem_bytes=256)
    t = k.tid()
    s = k.smem_alloc(0, 256, 16, I32)
    k.store(k.at(s, t), k.add(t, 1000))
    generic = PtrType(I32, MemSpace.GENERIC, 4)
    a, b, shared = (k.ptr_cast(p, generic) for p in (k.args[0], k.args[1], s))
    p = k.select(k.compare("eq", k.binary("and", t, c(1)), c(0)), a, b)
    p = k.select(k.compare("lt", t, c(10)), shared, p)
    v = k.load(k.at(p, t))
    k.store(k.at(p, t), c(-1))
    k.store(k.at(k.args[2], t), v)
    x, z, y = np.arange(64, dtype=np.int32), np.arange(64, dtype=np.int32) + 500, np.zeros(64, np.int32)
    k.run(x, z, y, block=64)
    i = np.arange(64)
    assert (y == np.where(i < 10, i + 1000, np.where(i % 2 == 0, i, i + 500))).all()
    assert (x == np.where((i >= 10) & (i % 2 == 0), -1, i)).all() and (
        z == np.where((i >= 10) & (i % 2 == 1), -1, i + 500)
    ).all()


def test_pointers_through_integers_and_memory() -> None:
    """A table of addresses, one per block, as batched kernels have it."""
    arrays = [np.arange(32, dtype=np.int32) * (i + 1) for i in range(3)]
    table = np.array([a.__array_interface__["data"][0] for a in arrays], np.int64)
    k = Kernel(gptr(I64), gptr(I32))
    b = k.sreg("ctaid.x")
    p = k.emit("ptr.fromint", (k.load(k.at(k.args[0], b)),), (gptr(I32),)).result
    number = k.emit("ptr.toint", (k.at(p, k.tid()),), (I64,)).result
    again = k.emit("ptr.fromint", (number,), (gptr(I32),)).result
    k.store(k.at(k.args[1], k.global_id()), k.load(again))
    y = np.zeros(96, np.int32)
    for a in arrays:
        sim.expose(a)
    try:
        k.run(table, y, grid=3)
    finally:
        for a in arrays:
            sim.conceal(a)
    assert (y == np.concatenate(arrays)).all()


def test_arrays_may_be_concealed_while_they_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which the collector of garbage does, at any moment."""
    arrays = [sim.expose(np.zeros(4)) for _ in range(2)]
    space, one = AddressSpace(), AddressSpace.buffer

    def concealing(self: AddressSpace, low: int, high: int) -> Any:
        for array in arrays:
            sim.conceal(array)
        return one(self, low, high)

    monkeypatch.setattr(AddressSpace, "buffer", concealing)
    assert len(space.exposed()) >= 2


@pytest.mark.tilewright_check("none")  # all lanes store one value and read it
def test_shared_pointers_as_integers_are_offsets() -> None:
    k = Kernel(gptr(I32), smem_bytes=128)
    s = k.smem_alloc(64, 64, 16, I32)
    number = k.emit("ptr.toint", (k.at(s, 3),), (I32,)).result
    k.store(k.args[0], number)
    p = k.emit("ptr.fromint", (number,), (PtrType(I32, MemSpace.SMEM, 4),)).result
    k.store(p, c(5))
    k.store(k.at(k.args[0], 1), k.load(k.at(s, 3)))
    k.store(k.at(k.args[0], 2), k.cast(k.compare("eq", p, k.at(s, 3)), I32))
    y = np.zeros(3, np.int32)
    k.run(y)
    assert y.tolist() == [76, 5, 1]


def test_pointers_carried_through_loops_and_branches() -> None:
    k = Kernel(gptr(I32), gptr(I32))
    t = k.tid()
    kind = k.args[0].type
    (p,) = k.loop(0, t, lambda i, p: [k.at(p, 2)], [k.args[0]])
    (q,) = k.choose(k.compare("gt", t, c(5)), lambda: [k.at(p, 1)], lambda: [p], [kind])
    k.store(k.at(k.args[1], t), k.load(q))
    x, y = np.arange(70, dtype=np.int32), np.zeros(32, np.int32)
    k.run(x, y)
    i = np.arange(32)
    assert (y == 2 * i + (i > 5)).all()


# -- atomics -----------------------------------------------------------------------------------------------------------


def atomic(
    kind: str, elem: ScalarType, start: list[Any], values: np.ndarray, places: np.ndarray, old: bool
) -> tuple[np.ndarray, np.ndarray]:
    k = Kernel(gptr(elem), gptr(elem), gptr(I32), gptr(elem))
    t = k.tid()
    p, v = k.at(k.args[0], k.load(k.at(k.args[2], t))), k.load(k.at(k.args[1], t))
    results = k.call(Atomic(kind), [p, v], [elem] if old else [])
    if old:
        k.store(k.at(k.args[3], t), results[0])
    memory, out = np.array(start, elem.dtype), np.zeros(values.size, elem.dtype)
    k.run(memory, values, places.astype(np.int32), out, block=values.size)
    return memory, out


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("elem", [I32, U32, I64, U64, F32, F64, F16, BF16], ids=str)
def test_atomic_add_sums_all_lanes(elem: ScalarType, old: bool) -> None:
    rng = np.random.default_rng(0)
    values, places = rng.integers(0, 4, 96).astype(elem.dtype), rng.integers(0, 5, 96)
    memory, olds = atomic("add", elem, [10] * 5, values, places, old)
    for place in range(5):
        assert memory[place] == 10 + values[places == place].astype(float).sum()
        if old:  # some order of the lanes explains the old values
            mine = sorted(olds[places == place].astype(float))
            assert mine[0] == 10 and mine[-1] <= memory[place]


@pytest.mark.parametrize(
    ("kind", "fold"),
    [("min", min), ("max", max), ("and", lambda a, b: a & b), ("or", lambda a, b: a | b), ("xor", lambda a, b: a ^ b)],
)
@pytest.mark.parametrize("old", [False, True])
def test_atomic_folds(kind: str, fold: Any, old: bool) -> None:
    rng = np.random.default_rng(1)
    values, places = rng.integers(-1000, 1000, 64).astype(np.int32), rng.integers(0, 3, 64)
    memory, _ = atomic(kind, I32, [7, 7, 7], values, places, old)
    for place in range(3):
        want = 7
        for v in values[places == place].tolist():
            want = fold(want, v)
        assert memory[place] == want


def test_atomic_old_values_give_unique_tickets_and_inc_wraps() -> None:
    memory, olds = atomic("add", I32, [0], np.ones(256, np.int32), np.zeros(256), True)
    assert memory[0] == 256 and sorted(olds.tolist()) == list(range(256))
    memory, olds = atomic("inc", U32, [0], np.full(8, 5, np.uint32), np.zeros(8), True)
    assert memory[0] == 2 and sorted(olds.tolist()) == [0, 0, 1, 1, 2, 3, 4, 5]
    memory, olds = atomic("exch", I32, [-1], np.arange(32, dtype=np.int32), np.zeros(32), True)
    assert sorted([*olds.tolist(), int(memory[0])]) == list(range(-1, 32))


def test_compare_and_swap_elects_one_lane_per_block_in_shared_memory() -> None:
    k = Kernel(gptr(I32), smem_bytes=4)
    s, t = k.smem_alloc(0, 4, 4, I32), k.tid()
    with k.if_(k.compare("eq", t, c(0))):
        k.store(s, c(-1))
    k.sync()
    (old,) = k.call(Atomic("cas"), [s, c(-1), t], [I32])
    k.store(k.at(k.args[0], k.global_id()), old)
    y = np.zeros((4, 64), np.int32)
    k.run(y, grid=4, block=64)
    for row in y:
        winner = row[row != -1][0]
        assert (row == -1).sum() == 1 and (row[row != -1] == winner).all() and row[winner] == -1


def test_compare_and_swap_compares_bits() -> None:
    """As the machine does: a NaN is found again, and -0.0 is not 0.0."""
    k = Kernel(gptr(F32))
    for i in range(2):
        at = k.at(k.args[0], i)
        k.call(Atomic("cas"), [at, k.load(k.at(k.args[0], i + 2)), c(5.0, F32)], [F32])
    x = np.array([np.nan, -0.0, np.nan, 0.0], np.float32)
    k.run(x, block=1)
    assert x[0] == 5 and x[1] == 0 and np.signbit(x[1])


def test_atomic_pairs_of_halves() -> None:
    k = Kernel(gptr(F16, 4))
    k.call(Atomic("add"), [k.args[0], k.build([c(1.0, F16), c(2.0, F16)])])
    y = np.zeros(2, np.float16)
    k.run(y)
    assert y.tolist() == [32, 64]


def test_ordered_loads_and_stores() -> None:
    k = Kernel(gptr(I32), gptr(I32))
    t = k.tid()
    (v,) = k.call(OrderedLoad("acquire", "gpu"), [k.at(k.args[0], t)], [I32])
    k.call(OrderedStore("release", "gpu"), [k.at(k.args[1], t), k.add(v, 1)])
    x, y = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    k.run(x, y)
    assert (y == x + 1).all()


def test_booleans_in_memory() -> None:
    k = Kernel(gptr(BOOL), gptr(BOOL, 4))
    t = k.tid()
    v = k.load(k.ptr_add(k.args[1], k.mul(t, 4), align=4), 4)
    k.store(
        k.at(k.args[0], t),
        k.reduce(k.select(v, k.splat(c(True, BOOL), 4), k.splat(c(False, BOOL), 4)), "max", [range(4)]),
    )
    x = np.random.default_rng(0).random((32, 4)) < 0.3
    y = np.zeros(32, bool)
    k.run(y, x)
    assert (y == x.any(1)).all()
