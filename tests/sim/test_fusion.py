"""Matrix instructions that are done together give what they give one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, sim
from tilewright.atoms.fma import UniversalFma
from tilewright.atoms.sync import SyncThreads
from tilewright.cute.runtime import from_dlpack
from tilewright.ir.core import Op, Value
from tilewright.ir.types import F32, FragType
from tilewright.sim import fusion
from tilewright.sim.events import Observer, observing
from tilewright.sim.program import BasicBlock, Label, nothing

M, N, K = 2, 3, 4


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many instructions each run had."""
    found: list[int] = []
    runs = fusion._runs

    def noted(ops: Any) -> Any:
        made = runs(ops)
        found.extend(len(run.ops) for run in made)
        return made

    monkeypatch.setattr(fusion, "_runs", noted)
    return found


class Registers:
    """One thread's ``acc (1, M, N)``, ``a (1, M, K)`` and ``b (1, N, K)``, with numbers of its own; ``mul`` adds the
    product of one k block."""

    def __init__(self, t: Any, dtype: Any) -> None:
        self.t = t
        self.mma = cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(dtype))
        self.acc, self.a, self.b = (cute.make_rmem_tensor(shape, dtype) for shape in ((1, M, N), (1, M, K), (1, N, K)))
        self.acc.fill(0)
        for i in range(M * K):
            self.a[i] = (t + i).to(dtype)
        for i in range(N * K):
            self.b[i] = (t % 5 - i).to(dtype)

    def mul(self, k: int) -> None:
        cute.gemm(self.mma, self.acc, self.a[None, None, k], self.b[None, None, k], self.acc)


def run(body: Callable[[Registers], None], dtype: Any = cutlass.Float32, check: str = "none") -> np.ndarray:
    """``[64, M, N]`` the accumulators of each thread after ``body``."""

    @cute.kernel
    def kernel(out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        registers = Registers(t, dtype)
        body(registers)
        for i in cutlass.range_constexpr(M * N):
            out[t, i] = registers.acc[i]

    @cute.jit
    def host(out: cute.Tensor):
        kernel(out).launch(grid=(1, 1, 1), block=(64, 1, 1))

    out = np.zeros((64, M * N), dtype.ir_type.dtype)
    with sim.options(check=check):
        host(from_dlpack(out))
    return out.reshape(64, N, M).transpose(0, 2, 1)


def operands() -> tuple[np.ndarray, np.ndarray]:
    t = np.arange(64)[:, None]
    a = (t + np.arange(M * K)).reshape(64, K, M).transpose(0, 2, 1)
    b = (t % 5 - np.arange(N * K)).reshape(64, K, N).transpose(0, 2, 1)
    return a.astype(float), b.astype(float)


def every(x: Registers) -> None:
    for k in range(K):
        x.mul(k)


@pytest.mark.parametrize("dtype", [cutlass.Float32, cutlass.Float64, cutlass.Int32], ids=str)
def test_fused_product_over_all_of_k(dtype: Any, fused: list[int]) -> None:
    a, b = operands()
    np.testing.assert_array_equal(run(every, dtype), a @ b.transpose(0, 2, 1))
    assert fused == [K]


def test_registers_of_a_later_block_may_be_written_between(fused: list[int]) -> None:
    def body(x: Registers) -> None:
        for k in range(K):
            x.mul(k)
            if k + 1 < K:
                x.a[0, 0, k + 1] = cutlass.Float32(k)

    a, b = operands()
    a[:, 0, 1:] = np.arange(K - 1)
    np.testing.assert_array_equal(run(body), a @ b.transpose(0, 2, 1))
    assert fused == [K]


@pytest.mark.parametrize("which", ["a", "b"])
def test_registers_that_were_read_end_a_run_when_they_are_written(which: str, fused: list[int]) -> None:
    def body(x: Registers) -> None:
        x.mul(0)
        x.mul(1)
        getattr(x, which)[0, 1, 0] = cutlass.Float32(100)
        x.mul(2)

    a, b = operands()
    np.testing.assert_array_equal(run(body), a[..., :3] @ b[..., :3].transpose(0, 2, 1))
    assert fused == [2, 1]


@pytest.mark.parametrize("which", ["a", "b"])
def test_a_store_at_a_run_time_index_ends_a_run(which: str, fused: list[int]) -> None:
    """It may be at any register, whatever the offset that is known of it: here at k block 2 or 3, which were read."""

    def body(x: Registers) -> None:
        x.mul(3)
        x.mul(2)
        getattr(x, which)[0, 0, x.t % 2 ^ 2] = cutlass.Float32(100)
        x.mul(0)

    a, b = operands()
    chosen = [0, 2, 3]
    np.testing.assert_array_equal(run(body), a[..., chosen] @ b[..., chosen].transpose(0, 2, 1))
    assert fused == [2, 1]


def test_accumulators_that_are_read_or_written_end_a_run(fused: list[int]) -> None:
    def body(x: Registers) -> None:
        x.mul(0)
        x.mul(1)
        x.acc.store(x.acc.load() * 2)
        x.mul(2)
        x.mul(3)

    a, b = operands()
    early, late = (a[..., s] @ b[..., s].transpose(0, 2, 1) for s in (slice(0, 2), slice(2, 4)))
    np.testing.assert_array_equal(run(body), 2 * early + late)
    assert fused == [2, 2]


def test_two_sets_of_accumulators_in_turns(fused: list[int]) -> None:
    def body(x: Registers) -> None:
        other = cute.make_rmem_tensor((1, M, N), cutlass.Float32)
        other.fill(0)
        for k in range(K):
            x.mul(k)
            cute.gemm(x.mma, other, x.a[None, None, k], x.b[None, None, k], other)
        x.acc.store(x.acc.load() - other.load() * 3)

    a, b = operands()
    np.testing.assert_array_equal(run(body), -2 * (a @ b.transpose(0, 2, 1)))
    assert fused == [K, K]


def test_under_a_mask() -> None:
    @cute.jit
    def body(x: Any):
        if x.t % 3 == 1:
            for k in cutlass.range_constexpr(K):
                x.mul(k)

    a, b = operands()
    want = (a @ b.transpose(0, 2, 1)) * (np.arange(64) % 3 == 1)[:, None, None]
    np.testing.assert_array_equal(run(body), want)


def test_observers_do_not_change_results() -> None:
    class Everything(Observer):
        def executed(self, group: Any, op: Any) -> None: ...

        def access(self, verb: Any, buffer: Any, group: Any, off: Any, access: Any, mask: Any, values: Any) -> None: ...

    def body(x: Registers) -> None:
        x.a.store(x.a.load() / 7)
        every(x)

    quietly = run(body)
    with observing(lambda name, config: Everything()):
        heard = run(body)
    np.testing.assert_array_equal(quietly, heard)
    np.testing.assert_array_equal(quietly, run(body, check="all"))


# -- across a wait -----------------------------------------------------------------------------------------------------


def sync() -> None:
    cute.arch.sync_threads()


def test_products_behind_a_barrier_join_those_before_it(fused: list[int]) -> None:
    """What the earlier ones have read may be written behind it, what the later ones read before the last of these."""

    def body(x: Registers) -> None:
        x.mul(0)
        x.a[0, 0, 2] = cutlass.Float32(50)
        x.mul(1)
        sync()
        x.a[0, 0, 0] = cutlass.Float32(100)
        x.mul(2)
        sync()
        x.mul(3)

    a, b = operands()
    a[:, 0, 2] = 50
    np.testing.assert_array_equal(run(body), a @ b.transpose(0, 2, 1))
    assert fused == [K]


@pytest.mark.parametrize("which", ["a", "b"])
@pytest.mark.parametrize("early", [True, False])
def test_registers_that_are_written_before_a_later_product_end_a_run(which: str, early: bool, fused: list[int]) -> None:
    def body(x: Registers) -> None:
        x.mul(0)
        if not early:
            sync()
        getattr(x, which)[0, 1, 2] = cutlass.Float32(100)
        if early:
            sync()
        x.mul(2)
        x.mul(3)

    a, b = operands()
    (a if which == "a" else b)[:, 1, 2] = 100
    chosen = [0, 2, 3]
    np.testing.assert_array_equal(run(body), a[..., chosen] @ b[..., chosen].transpose(0, 2, 1))
    assert fused == [1, 2]


def test_a_look_at_the_accumulators_behind_a_barrier_ends_a_run(fused: list[int]) -> None:
    def body(x: Registers) -> None:
        x.mul(0)
        sync()
        x.acc.store(x.acc.load() * 2)
        x.mul(1)

    a, b = operands()
    early, late = (a[..., s] @ b[..., s].transpose(0, 2, 1) for s in (slice(0, 1), slice(1, 2)))
    np.testing.assert_array_equal(run(body), 2 * early + late)
    assert fused == [1, 1]


def test_a_loop_whose_iterations_wait(fused: list[int]) -> None:
    """Products of one iteration are done together, never those of several, nor those before or behind the loop."""

    @cute.jit
    def body(x: Any):
        x.mul(0)
        sync()
        for i in cutlass.range(3, unroll=1):
            x.mul(1)
            sync()
            x.a[0, 0, 1] = (x.t + i).to(cutlass.Float32)
            x.mul(2)
        x.mul(3)

    a, b = operands()
    want = a[..., [0, 2, 2, 2, 3]] @ b[..., [0, 2, 2, 2, 3]].transpose(0, 2, 1)
    for first in (a[:, 0, 1], np.arange(64), np.arange(64) + 1):
        a[:, 0, 1] = first
        want += a[..., 1:2] @ b[..., 1:2].transpose(0, 2, 1)
    np.testing.assert_array_equal(run(body), want)
    assert fused == [1, 2, 1]


def test_one_fragment_as_both_operands(fused: list[int]) -> None:
    """What A reads of it counts, too."""

    def body(x: Registers) -> None:
        square = cute.make_rmem_tensor((1, M, M), cutlass.Float32)
        square.fill(0)
        for k in (0, 1):
            cute.gemm(x.mma, square, x.a[None, None, k], x.a[None, None, k + 2], square)
            x.a[0, 0, 0] = cutlass.Float32(100)
        for i in range(M * M):
            x.acc[i] = square[i]

    a, _ = operands()
    want = np.zeros((64, M * N))
    first, second = (a[..., k : k + 1] @ a[..., k + 2 : k + 3].transpose(0, 2, 1) for k in (0, 1))
    want[:, : M * M] = (first + second).transpose(0, 2, 1).reshape(64, -1)
    np.testing.assert_array_equal(run(body), want.reshape(64, N, M).transpose(0, 2, 1))
    assert fused == [1, 1]


class WorksLater(UniversalFma):
    in_flight = True


@pytest.mark.parametrize("atom, entered, chains", [(UniversalFma, [], 1), (WorksLater, [], 2), (UniversalFma, [1], 2)])
def test_nodes_that_stand_alone(atom: Any, entered: list[int], chains: int) -> None:
    """Where registers come later, and where control comes from elsewhere, too."""

    def call(instruction: Any, *operands: Value) -> Op:
        return Op("call", list(operands), [], {"atom": instruction}, [], None)

    nodes = [BasicBlock(), BasicBlock()]
    for node in nodes:
        node.ops, node.steps = [call(atom(F32), Value(FragType(F32, 4)))], [nothing]
        node.op, node.fallthrough = call(SyncThreads()), True
    end = BasicBlock()
    for pc in entered:
        label = Label()
        label.pc = pc
        end.targets.append(label)
    found = [[place.node for place in chain if place.at >= 0] for chain in fusion._chains([*nodes, end])]
    assert len([chain for chain in found if chain]) == chains
