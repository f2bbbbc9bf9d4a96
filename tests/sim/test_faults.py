"""Faults of the program: each message names the kernel, the user's line, the block and thread, and how to fix it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.sim.build import Kernel, c, gptr
from tilewright import sim
from tilewright.errors import ArgumentError, SimulationError
from tilewright.ir.instruction import Instruction
from tilewright.ir.runtime import DevicePointer
from tilewright.ir.types import F16, F32, I32, I64


def fault(k: Kernel, *args: object, **config: object) -> str:
    with pytest.raises(SimulationError) as caught:
        k.run(*args, **config)
    return str(caught.value)


def test_out_of_bounds_load_names_everything() -> None:
    k = Kernel(gptr(F32), name="reads_too_far")
    k.load(k.at(k.args[0], k.global_id()))
    line = k.function.body.ops[-1].loc.line
    with sim.options(schedule="lockstep"):
        text = fault(k, np.zeros(100, np.float32), grid=2, block=64)
    assert "global load of f32 (4 bytes) out of bounds: byte offset 400 in an array of 400 bytes (100 x f32)" in text
    assert f"in kernel 'reads_too_far' at {__file__}:{line}:  k.load(" in text
    assert "block (1, 0, 0), thread (36, 0, 0) (warp 1, lane 4)" in text
    assert "28 of 128 active threads are outside" in text
    assert "to fix: predicate the access" in text


def test_out_of_bounds_store_below_and_a_predicated_twin() -> None:
    x = np.zeros(64, np.float32)
    k = Kernel(gptr(F32))
    k.store(k.at(k.args[0], k.binary("sub", k.tid(), c(1))), c(1.0, F32))
    assert "byte offset -4" in fault(k, x, block=64)
    x[:] = 0
    k = Kernel(gptr(F32))
    t = k.tid()
    with k.if_(k.compare("gt", t, c(0))):
        k.store(k.at(k.args[0], k.binary("sub", t, c(1))), c(1.0, F32))
    k.run(x, block=64)
    assert x.sum() == 63


def test_uniform_pointer_out_of_bounds() -> None:
    k = Kernel(gptr(F32), I32)
    k.store(k.at(k.args[0], k.args[1]), c(1.0, F32))
    assert "byte offset 16" in fault(k, np.zeros(4, np.float32), 4)


def test_views_of_an_array_are_bounded_by_the_view() -> None:
    k = Kernel(gptr(F32))
    k.load(k.at(k.args[0], k.tid()))
    whole = np.zeros(64, np.float32)
    assert "out of bounds" in fault(k, whole[3:20], block=32)
    k.run(whole[3:40], block=32)


def test_misaligned_vector_load() -> None:
    k = Kernel(gptr(F16, 16))
    k.load(k.ptr_add(k.args[0], k.mul(k.tid(), 4), align=16), 8)
    text = fault(k, np.zeros(1024, np.float16))
    assert (
        "misaligned global load of 8 x f16 (16 bytes)" in text
        and "not a multiple of 16" in text
        and "thread (1, 0, 0)" in text
    )


def test_a_less_aligned_vector_load_is_several_accesses() -> None:
    k = Kernel(gptr(F16, 8), gptr(F16, 2))
    t = k.tid()
    v = k.load(k.ptr_add(k.args[0], k.mul(t, 4), align=8), 8)
    k.store(k.ptr_add(k.args[1], k.mul(t, 9)), v)
    x, y = np.arange(256).astype(np.float16), np.zeros(9 * 32, np.float16)
    k.run(x, y)
    for i in range(32):
        assert (y[9 * i : 9 * i + 8] == x[4 * i : 4 * i + 8]).all()


def test_shared_memory_bounds_and_alignment() -> None:
    k = Kernel(smem_bytes=128)
    s = k.smem_alloc(0, 128, 16, F32)
    k.store(k.at(s, k.tid()), c(0.0, F32))
    text = fault(k, block=64)
    assert "shared store of f32 (4 bytes) out of bounds: byte offset 128 in 128 bytes of dynamic shared memory" in text
    k = Kernel(smem_bytes=128)
    s = k.smem_alloc(0, 128, 16, F32)
    k.store(k.ptr_add(s, 1, align=16), k.build([c(0.0, F32)] * 4))
    assert "misaligned shared store" in fault(k)


def test_smem_larger_than_the_allocations() -> None:
    k = Kernel(gptr(F32), smem_bytes=16)
    s = k.smem_alloc(0, 16, 16, F32)
    k.store(k.at(s, k.tid()), c(1.0, F32))
    k.run(np.zeros(1, np.float32), smem=128)
    assert "its own" not in fault(k, np.zeros(1, np.float32), smem=64)
    assert "own allocations need 16" in fault(k, np.zeros(1, np.float32), smem=8)


def test_a_fragment_index_out_of_range() -> None:
    k = Kernel(gptr(F32))
    f = k.frag_alloc(F32, 8)
    t = k.tid()
    with k.if_(k.compare("lt", t, c(20))):
        k.frag_store(f, c(1.0, F32), [1], t)
    text = fault(k, np.zeros(1, np.float32))
    assert "register 8 of a fragment of 8 registers" in text and "thread (7, 0, 0)" in text


@pytest.mark.parametrize("opcode", ["div", "rem", "floordiv", "floormod"])
def test_integer_division_by_zero_only_in_active_lanes(opcode: str) -> None:
    k = Kernel(gptr(I32))
    t = k.tid()
    with k.if_(k.compare("gt", t, c(0))):
        k.store(k.at(k.args[0], t), k.binary(opcode, c(100), t))
    y = np.zeros(32, np.int32)
    k.run(y)
    assert y[1] == (100 if "div" in opcode else 0)
    k = Kernel(gptr(I32))
    k.store(k.args[0], k.binary(opcode, c(100), k.binary("sub", k.tid(), c(5))))
    assert "by zero" in (text := fault(k, y)) and "thread (5, 0, 0)" in text


def test_asserts_and_their_messages() -> None:
    k = Kernel()
    k.emit("assert", (k.compare("lt", k.tid(), c(33)),), (), {"message": "too many threads"})
    assert "assertion failed: too many threads" in (text := fault(k, block=64)) and "thread (33, 0, 0)" in text
    k.run(block=32)


def test_launch_limits() -> None:
    k = Kernel(max_threads=128)
    assert "at most 1024" in fault(k, block=(32, 33))
    assert "launch bounds say 128" in fault(k, block=256)
    assert "every extent must be at least 1" in fault(k, grid=0)
    assert "(227 KB)" in fault(k, smem=300_000)
    assert "is not divisible by the cluster" in fault(k, grid=3, cluster=(2, 1, 1))


def test_arguments() -> None:
    k = Kernel(gptr(F32), I32)
    with pytest.raises(ArgumentError, match="takes 2 arguments, 1 given"):
        k.run(np.zeros(1, np.float32))
    with pytest.raises(ArgumentError, match="is on cuda:0"):
        k.run(DevicePointer(0, "cuda:0", 0, 4, None), 1)


def test_an_address_in_no_known_array() -> None:
    x = np.zeros(4, np.float32)
    hidden = np.full(4, 7, np.float32)
    k = Kernel(gptr(F32), I64)
    p = k.emit("ptr.fromint", (k.args[1],), (gptr(F32),)).result
    k.store(k.args[0], k.load(p))
    address = hidden.__array_interface__["data"][0]
    assert "is in no array that this launch knows" in (text := fault(k, x, address)) and "sim.expose" in text
    sim.expose(hidden)
    try:
        k.run(x, address)
    finally:
        sim.conceal(hidden)
    assert x[0] == 7


@pytest.mark.tilewright_check("none")  # lanes store one value
@pytest.mark.parametrize("first", ["view", "array"])
def test_an_array_and_a_read_only_view_of_it(first: str) -> None:
    """The same bytes twice: what may be written is a matter of the argument, whichever came first."""
    x = np.arange(4, dtype=np.float32)
    view = x[:]
    view.flags.writeable = False
    arrays = (view, x) if first == "view" else (x, view)
    for place, array in enumerate(arrays):
        k = Kernel(gptr(F32), gptr(F32))
        k.load(k.args[0])
        k.store(k.args[place], k.load(k.at(k.args[1 - place], 3)))
        if array is x:
            k.run(*arrays)
            assert x[0] == 3
        else:
            assert "read-only" in fault(k, *arrays)


def test_exposing_an_empty_array_makes_nothing_known() -> None:
    x, around = np.zeros(4, np.float32), np.full(8, 7, np.float32)
    k = Kernel(gptr(F32), I64)
    k.store(k.args[0], k.load(k.emit("ptr.fromint", (k.args[1],), (gptr(F32),)).result))
    empty = around.reshape(4, 2)[2:2]
    sim.expose(empty)
    try:
        for place in (around[2:], around[4:]):
            assert "is in no array" in fault(k, x, place.__array_interface__["data"][0])
    finally:
        sim.conceal(empty)


class Broken(Instruction):
    name = "test.broken"

    def simulate(self, lanes: Any, op: Any, operands: list[Any]) -> tuple[Any, ...]:
        return (np.zeros(3) + np.zeros(4),)

    def emit(self, out: Any, op: Any) -> None:
        raise NotImplementedError


def test_no_numpy_error_reaches_the_user() -> None:
    k = Kernel()
    k.call(Broken(), [])
    line = k.function.body.ops[-1].loc.line
    text = fault(k)
    assert "the simulator cannot run test.broken: ValueError: operands could not be broadcast" in text
    assert f"test_faults.py:{line}" in text


def test_checks_can_be_switched_off() -> None:
    k = Kernel(gptr(F16, 16))
    k.load(k.ptr_add(k.args[0], k.mul(k.tid(), 4), align=16), 8)
    with sim.options(checks=False):
        k.run(np.zeros(1024, np.float16))


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ArgumentError, match="unknown simulator option 'sed'"), sim.options(sed=1):
        pass
    with pytest.raises(ArgumentError, match="schedule='fast'"):
        sim.set_options(schedule="fast")
