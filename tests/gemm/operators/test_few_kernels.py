"""Numbers of rows that pass by share few kernels, with the same result; what is repeated gets its best kernel."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.gemm.operators.test_rows import HOPPER
from tilewright import sim
from tilewright.gemm import matmul
from tilewright.gemm.choice.choose import KernelOptions
from tilewright.gemm.choice.registry import kernels
from tilewright.gemm.family.hopper_cost import FIXED_US
from tilewright.gemm.host import handle
from tilewright.gemm.operators import meanwhile, planned, repeated, rows
from tilewright.gemm.operators.meanwhile import adds_in_order
from tilewright.gemm.operators.planned import PASSING, few_options
from tilewright.gemm.operators.rows import planned_rows
from tilewright.sim.machine import SimKernel

torch = pytest.importorskip("torch")
MODULE = sys.modules[matmul.__module__]
H200 = (132, 232448)


@pytest.mark.parametrize(("n", "k", "half"), [(4096, 4096, 0.6), (28672, 8192, 0.45), (1024, 1024, 0.75)])
def test_few_kernels_lose_little_by_the_model(n: int, k: int, half: float) -> None:
    options = KernelOptions.of(kernels()["hopper_bf16"], H200)
    few, taken, best, slower = list(few_options(options, n, k)), set(), set(), []
    for m in range(1, 1500):
        times = options.times((planned_rows(m), n, k, 1), "data_parallel")[0] + FIXED_US
        taken.add(min(few, key=times.__getitem__))
        best.add(int(times.argmin()))
        slower.append(times[few].min() / times.min())
    assert max(slower) <= PASSING and np.mean(slower) < 1.025
    assert len(taken) < half * len(best)


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The simulator's kernels count as those of a GPU, none is compiled, and no process runs."""
    for module in (meanwhile, planned):
        monkeypatch.setattr(module, "COMPILING", ("cpu",))
    monkeypatch.setenv("TILEWRIGHT_COMPILE_AHEAD", "0")
    for module, name in ((handle, "_COMPILED"), (MODULE, "REPEATED_PRODUCTS"), (MODULE, "_ROWS")):
        monkeypatch.setattr(module, name, {})
    with sim.options(**HOPPER | {"sms": 132}):
        yield


def drawn(*shape: int) -> Any:
    """Integers: the simulator adds up in an order that depends on the tile."""
    return torch.from_numpy(np.random.default_rng(5).integers(-3, 4, shape).astype(np.float16))


@pytest.mark.unchecked
def test_what_passes_by_has_the_same_numbers_by_fewer_kernels(compiling: None, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w, seen = drawn(300, 64), drawn(64, 256), range(8, 300, 16)

    def loop() -> tuple[list[Any], int]:
        for found in (handle._COMPILED, MODULE.REPEATED_PRODUCTS, MODULE._ROWS):
            found.clear()
        return [matmul(x[:m], w) for m in seen], len(handle._COMPILED)

    few, count = loop()
    monkeypatch.setattr(rows, "VARIED", 1 << 30)
    best, most = loop()
    assert count < most
    expected = x.double() @ w.double()
    assert all(torch.equal(a.double(), expected[: len(a)]) for a in (*few, *best))


@pytest.mark.unchecked
def test_a_repeated_number_of_rows_gets_its_best_kernel(compiling: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated, "OFTEN", 3)
    x, w = drawn(300, 64), drawn(64, 256)
    for m in range(8, 300, 16):
        matmul(x[:m], w)
    (kept,) = MODULE._ROWS.values()
    passing = [end for end, is_so in kept.passing.items() if is_so]
    assert len(passing) > 3 and not any(map(kept.passing.get, list(kept.plans)[: rows.VARIED]))
    m = next(m for m in range(8, 300, 16) if planned_rows(m) == passing[-1])
    (product,) = (p for p in MODULE.REPEATED_PRODUCTS.values() if p.shape[0] == m)
    best = kept.plan(kept.problem.with_rows(planned_rows(m)))
    assert adds_in_order(best) and product.prepared.plan.config != best.config
    results = [matmul(x[:m], w) for _ in range(5)]
    (product,) = (p for p in MODULE.REPEATED_PRODUCTS.values() if p.shape[0] == m)
    assert product.prepared.plan.config == best.config and product.until is None
    assert not kept.passing[planned_rows(m)]
    assert all(torch.equal(one.double(), x[:m].double() @ w.double()) for one in results)
    matmul(x[: m - 1], w)  # of the same range, seen for the first time
    (other,) = (p for p in MODULE.REPEATED_PRODUCTS.values() if p.shape[0] == m - 1)
    assert other.prepared.plan.config == best.config


@pytest.mark.unchecked
def test_a_kernel_that_is_here_is_taken(compiling: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimKernel, "run", lambda *args: None)  # no number is looked at
    x, w = drawn(300, 64), drawn(64, 256)
    for m in range(8, 300, 16):  # each alone, as ``warm_up`` does
        MODULE._ROWS.clear()
        matmul(x[:m], w)
    MODULE.REPEATED_PRODUCTS.clear()
    MODULE._ROWS.clear()
    before = list(handle._COMPILED)
    for m in range(8, 300, 16):
        matmul(x[:m], w)
    assert list(handle._COMPILED) == before
    (kept,) = MODULE._ROWS.values()
    assert not any(kept.passing.values())
