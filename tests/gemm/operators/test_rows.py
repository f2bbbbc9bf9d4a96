"""Products that differ in their number of rows only: launched from each other's, exact, and planned as if alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from tilewright import Float16, sim
from tilewright.errors import ArgumentError
from tilewright.gemm import matmul
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.choice.registry import KERNELS
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.operators.repeated import RepeatedProduct
from tilewright.gemm.operators.rows import (
    LaunchesByRows,
    holds,
    launch_key,
    plan_for_rows,
    planned_rows,
    reach_of,
    rows_are_free,
    rows_key,
    wide_operands,
)
from tilewright.gemm.tuning import store
from tilewright.lang.arguments.arrays import Array

torch = pytest.importorskip("torch")

MODULE = sys.modules[matmul.__module__]
HOPPER = {"arch": "sm_90a", "sizes": "gpu", "sms": 4}


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "REPEATED_PRODUCTS", {})
    monkeypatch.setattr(MODULE, "_ROWS", {})


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that were launched from another product's launch."""
    found: list[int] = []
    product = LaunchesByRows.product

    def spy(self: LaunchesByRows, rows: int, shape: Any) -> Any:
        made = product(self, rows, shape)
        found.extend([rows] if made is not None else [])
        return made

    monkeypatch.setattr(LaunchesByRows, "product", spy)
    return found


def integers(seed: int, *shape: int) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float16))


def check(a: Any, b: Any, **how: Any) -> None:
    """One call against float64; with an ``out`` inside a larger tensor nothing beside it changes."""
    expected = a.double() @ b.double() + sum(how[name].double() for name in ("c", "bias") if name in how)
    if how.get("activation"):
        expected = expected.clamp(min=0)
    found = matmul(a, b, **how)
    assert found.shape == expected.shape
    assert torch.equal(found.double(), expected)


# -- results -----------------------------------------------------------------------------------------------------------

ROWS = (24, 31, 8, 64, 2, 65, 40, 130)
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "as chosen": ({}, {}),
    "Hopper": (HOPPER, {}),
    "drawn tiles": (HOPPER, {"kernel": "hopper_f16", "decomposition": "dynamic"}),
    "shared tiles": ({"sms": 4}, {"kernel": "tensorop_f16", "decomposition": "stream_k"}),
}


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        *(("as chosen", extra) for extra in ("", "bias", "c", "out", "stack")),
        *(("Hopper", extra) for extra in ("bias", "c", "out")),  # what is stored by TMA
        ("drawn tiles", "out"),
        ("drawn tiles", "stack"),
        ("shared tiles", "bias"),
        ("shared tiles", "c"),
    ],
)
def test_any_number_of_rows(kind: str, extra: str, short: list[int]) -> None:
    options, how = KINDS[kind]
    k, n = 72, 40
    b = integers(0, k, n)
    with sim.options(**options):
        for seed, rows in enumerate(ROWS, 1):
            a = integers(seed, rows, k)
            words = dict(how)
            if extra == "bias":
                words |= {"bias": integers(-seed % 99, n), "activation": "relu"}
            elif extra == "c":
                words |= {"c": integers(seed + 50, rows, n), "beta": 1.0}
            if extra == "out":
                whole = torch.full((rows + 2, n + 16), -7.0).half()
                check(a, b, out=whole[1:-1, 8:-8], **words)
                whole[1:-1, 8:-8] = -7
                assert (whole == -7).all()
            else:
                check(a.view(-1, 1, k) if extra == "stack" else a, b, **words)
    assert short, "no launch was derived from another"


def test_row_strides_of_slices_are_respected(short: list[int]) -> None:
    whole, b = integers(0, 200, 96), integers(1, 48, 24)
    for rows in (16, 24, 32):
        check(whole[:rows, 8:56], b)
        check(whole[: 2 * rows : 2, 8:56], b)
    assert short == [24, 24, 32, 32]


def test_a_second_call_of_the_same_rows_is_remembered(short: list[int]) -> None:
    b = integers(1, 48, 24)
    for rows in (16, 24, 24, 16):
        check(integers(rows, rows, 48), b)
    assert short == [24]


@pytest.mark.unchecked
@pytest.mark.parametrize("kind", ["as chosen", "Hopper"])
def test_results_do_not_depend_on_what_was_seen_before(kind: str) -> None:
    """Bit for bit: plan and kernel of a number of rows are the same by either way."""
    rng = np.random.default_rng(3)
    a, b = (torch.from_numpy(rng.normal(size=s).astype(np.float16)) for s in ((100, 200), (200, 40)))
    with sim.options(**KINDS[kind][0]):
        alone = []
        for rows in (20, 45, 100):
            MODULE.REPEATED_PRODUCTS.clear()
            MODULE._ROWS.clear()
            alone.append(matmul(a[:rows], b))
        MODULE.REPEATED_PRODUCTS.clear()
        together = [matmul(a[:rows], b) for rows in (100, 45, 20)][::-1]
    assert all(torch.equal(x, y) for x, y in zip(alone, together, strict=True))


# -- what is not derived -----------------------------------------------------------------------------------------------


def changed(name: str) -> dict[str, Any]:
    """Operands of 24 rows that differ from those of 16 in more than the rows."""
    a, b, out, bias = integers(1, 24, 48), integers(2, 48, 24), torch.zeros(24, 24).half(), integers(3, 24)
    flat = torch.zeros(24 * 64 + 64).half()
    changes: dict[str, Callable[[], dict[str, Any]]] = {
        "dtype": lambda: {"a": a.float(), "b": b.float(), "out": out.float(), "bias": bias.float()},
        "k": lambda: {"a": integers(1, 24, 40), "b": integers(2, 40, 24)},
        "row stride of a": lambda: {"a": integers(1, 24, 64)[:, :48]},
        "a transposed": lambda: {"a": integers(1, 48, 24).T},
        "alignment of a": lambda: {"a": flat[1 : 1 + 24 * 48].view(24, 48).copy_(a)},
        "n": lambda: {"b": integers(2, 48, 40), "out": torch.zeros(24, 40).half(), "bias": integers(3, 40)},
        "stride of b": lambda: {"b": integers(2, 24, 48).T},
        "alignment of b": lambda: {"b": flat[1 : 1 + 48 * 24].view(48, 24).copy_(b)},
        "row stride of out": lambda: {"out": torch.zeros(24, 64).half()[:, :24]},
        "out transposed": lambda: {"out": torch.zeros(24, 24).half().T},
        "alignment of out": lambda: {"out": flat[1 : 1 + 24 * 24].view(24, 24)},
        "no out": lambda: {"out": None},
        "no bias": lambda: {"bias": None},
        "stride of the bias": lambda: {"bias": integers(3, 48)[::2]},
        "a negative view": lambda: {"a": torch._neg_view(a)},
    }
    return {"a": a, "b": b, "out": out, "bias": bias} | changes[name]()


CHANGES = (
    "dtype",
    "k",
    "row stride of a",
    "a transposed",
    "alignment of a",
    "n",
    "stride of b",
    "alignment of b",
    "row stride of out",
    "out transposed",
    "alignment of out",
    "no out",
    "no bias",
    "stride of the bias",
    "a negative view",
)


@pytest.mark.parametrize("name", CHANGES)
def test_another_geometry_is_another_key(name: str, short: list[int]) -> None:
    first = {"a": integers(1, 16, 48), "b": integers(2, 48, 24), "bias": integers(3, 24)}
    first["out"] = torch.zeros(16, 24).half()
    matmul(**first)
    given = changed(name)
    keys = [rows_key(x["a"], x["b"], x["out"], None, x["bias"]) for x in (first, given)]
    assert keys[0] is not None
    assert keys[0] != keys[1]
    bias = 0 if given["bias"] is None else given["bias"].double()
    assert torch.equal(matmul(**given).double(), given["a"].double() @ given["b"].double() + bias)
    assert not short


@pytest.mark.parametrize(
    "how",
    [{"alpha": 2.0}, {"activation": "relu"}, {"out_dtype": torch.float32}, {"kernel": "tensorop_f16_f16"}],
    ids=str,
)
def test_another_call_is_another_key(how: dict[str, Any], short: list[int]) -> None:
    b = integers(2, 48, 24)
    matmul(integers(1, 16, 48), b)
    a = integers(1, 24, 48)
    expected = how.get("alpha", 1) * a.double() @ b.double()
    found = matmul(a, b, **how)
    assert torch.equal(found.double(), expected.clamp(min=0) if "activation" in how else expected)
    assert found.dtype == how.get("out_dtype", torch.float16)
    assert not short


LONG = [((1, 48), (48, 24)), ((48,), (48, 24)), ((16, 48), (48,)), ((2, 16, 48), (2, 48, 24)), ((16, 1), (1, 24))]


@pytest.mark.parametrize("shapes", LONG, ids=str)
def test_one_row_vectors_and_batches_are_not_kept_by_rows(shapes: tuple[Any, Any], short: list[int]) -> None:
    a, b = (integers(i, *shape) for i, shape in enumerate(shapes))
    for _ in range(2):
        assert torch.equal(matmul(a, b).double(), a.double() @ b.double())
    assert not short


def test_stacks_are_matrices_only_where_they_are_contiguous(short: list[int]) -> None:
    whole, b = integers(0, 2, 44, 48), integers(1, 48, 24)
    for stack in (integers(2, 2, 40, 48), whole[:, :24], whole.transpose(0, 1)[:24], whole):
        assert torch.equal(matmul(stack, b).double(), stack.double() @ b.double())
    assert short == [88]
    out = torch.zeros(3, 40, 24).half()
    for rows in (16, 24):
        matmul(whole[:, :rows].contiguous(), b, out=out[:2, :rows])
        assert torch.equal(out[:2, :rows].double(), whole[:, :rows].double() @ b.double())
        assert not out[2].any()
    assert short == [88]


def test_operands_of_64_bit_offsets_have_a_kernel_of_their_own() -> None:
    matmul(integers(0, 16, 48), integers(1, 48, 24))
    kept: Any = next(iter(MODULE._ROWS.values()))
    (bound,) = kept.bound.values()
    small, large = 1 << 20, 1 << 26
    for rows in (small, large):
        plan = kept.plan(kept.problem.with_rows(rows))
        kept.bound[launch_key(plan), wide_operands(kept.problem)] = bound
    assert kept.product(small, (small, 24)) is not None
    assert kept.product(large, (large, 24)) is None


@pytest.mark.parametrize("step", [0, 1, 24, 1000, 1 << 20])
@pytest.mark.parametrize("columns", [1, 24, 4096])
def test_what_rows_reach_is_what_the_array_says(step: int, columns: int) -> None:
    matrix = Matrix("a", None, Array(4096, "cpu", (1, columns, 1), (step, 1, 0), Float16, None))
    each, row, least = reach_of(matrix)
    for rows in (2, 3, 1000, least - 1, least, least + 1):
        if 1 <= rows < 1 << 40:
            array = matrix.array._replace(shape=(rows, columns, 1))
            assert array.bounds == (4096, 4096 + (rows - 1) * each + row)
            assert array.is_wide == (rows >= least)


def test_a_product_of_other_rows_is_what_it_would_be_at_length() -> None:
    b, bias, whole = integers(0, 48, 24), integers(1, 24), integers(2, 300, 64)
    for first, rows in ((128, 121), (40, 33), (300, 290)):
        MODULE.REPEATED_PRODUCTS.clear()
        MODULE._ROWS.clear()
        for n in (first, rows):
            matmul(whole[:n, :48], b, bias=bias)
        (kept,) = MODULE._ROWS.values()
        derived: Any = kept.product(rows, (rows, 24))
        found = list(MODULE.REPEATED_PRODUCTS.values())[-1]
        assert found.spans == derived.spans and found.prepared.problem == kept.problem.with_rows(rows)
        long = RepeatedProduct.of(derived.prepared, (rows, 24), torch.float16, (bias,))
        assert (derived.spans, derived.same, derived.written) == (long.spans, long.same, long.written)


def test_a_wrong_out_is_refused_as_before() -> None:
    b = integers(0, 48, 24)
    matmul(integers(0, 16, 48), b, out=torch.zeros(16, 24).half())
    with pytest.raises(ArgumentError, match="out must have the shape of the result"):
        matmul(integers(0, 24, 48), b, out=torch.zeros(16, 24).half())
    whole = torch.zeros(2000).half()
    with pytest.raises(ArgumentError, match="overlaps"):
        matmul(whole[: 24 * 48].view(24, 48), b, out=whole[64 : 64 + 24 * 24].view(24, 24))


def test_rows_whose_range_has_no_plan_are_planned_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    b = integers(0, 48, 24)
    matmul(integers(0, 16, 48), b)
    kept: Any = next(iter(MODULE._ROWS.values()))

    def refused(problem: Problem) -> Plan:
        raise ArgumentError(problem.describe())

    monkeypatch.setattr(kept, "plan", refused)
    assert kept.product(300, (300, 24)) is None
    check(integers(1, 300, 48), b)


def test_tuned_choice_is_used_for_its_row_count_only(monkeypatch: pytest.MonkeyPatch, short: list[int]) -> None:
    b = integers(0, 48, 24)
    matmul(integers(0, 16, 48), b)
    monkeypatch.setattr(store, "find", lambda problem: None if problem.shape[0] != 24 else nullcontext())
    monkeypatch.setattr(store, "_READ", {"a folder": {"one": nullcontext()}})
    kept: Any = next(iter(MODULE._ROWS.values()))
    assert kept.product(24, (24, 24)) is None
    assert kept.product(32, (32, 24)) is not None


# -- plans for ranges of rows ------------------------------------------------------------------------------------------


@pytest.fixture
def h200() -> Iterator[None]:
    with sim.options(**HOPPER | {"sms": 132}):
        yield


def planned(problem: Problem, decomposition: str = "auto") -> Plan:
    return Plan.of(problem, [KERNELS["hopper_f16"]], decomposition, "cpu", may_pack="ABD")


def problem(m: int, n: int = 256, k: int = 128) -> Problem:
    a, b = (np.zeros(shape, np.float16) for shape in ((m, k), (k, n)))
    return Problem.of(a, b, None, np.zeros((m, n), np.float16))


@pytest.mark.usefixtures("h200")
def test_a_plan_for_a_range_holds_for_the_tiles_of_these_rows() -> None:
    found = []
    for rows in range(2, 4000, 27):
        shared = partial(planned, decomposition="stream_k")
        plan = plan_for_rows(problem(rows, 1024, 4096), shared)
        if plan.shares is not None:
            tile = plan.config.cluster_tile[1 if plan.config.transposed else 0]
            assert -(-rows // tile) in plan.shares.tiled_shape
            found.append(rows)
        assert holds(plan, rows) or plan == shared(problem(rows, 1024, 4096))
    assert found, "no plan shares tiles"


@pytest.mark.usefixtures("h200")
@pytest.mark.parametrize("transposed", [False, True])
def test_tiles_are_shared_by_their_number(transposed: bool) -> None:
    plan = planned(problem(144, 1024, 4096), "stream_k")
    assert plan.shares is not None

    def of_tiles(rows: int) -> Plan:
        tile = (8, rows, 64) if transposed else (rows, 8, 64)
        return replace(plan, config=replace(plan.config, transposed=transposed, tile=tile, cluster=(1, 1)))

    assert planned_rows(130) == 144
    assert holds(of_tiles(144), 130)
    assert not holds(of_tiles(136), 130)
    assert holds(replace(of_tiles(136), shares=None), 130)


@pytest.mark.usefixtures("h200")
def test_plans_of_a_range_are_one() -> None:
    for rows in (130, 131, 143):
        assert planned_rows(rows) == 144
        assert plan_for_rows(problem(rows), planned).config == planned(problem(144)).config


@pytest.mark.usefixtures("h200")
def test_copies_are_planned_for_the_rows_themselves() -> None:
    unaligned = Problem.of(np.zeros((65, 131), np.float16), np.zeros((131, 256), np.float16), None, np.zeros((65, 256)))
    with pytest.raises(ArgumentError):
        plan_for_rows(unaligned, planned)
    found = plan_for_rows(problem(70), planned)
    assert found.packing is None
    assert not holds(replace(found, packing=object()), 70)


def test_refusals_name_the_users_extents() -> None:
    asked = []

    def refused(one: Problem) -> Plan:
        asked.append(one.shape[0])
        raise ArgumentError(one.describe())

    with pytest.raises(ArgumentError, match="17 x 256"):
        plan_for_rows(problem(17), refused)
    assert asked == [24, 17]


def test_rows_that_are_not_free() -> None:
    x = np.zeros((64, 64), np.float16)

    def free(a: Any, b: Any = x, d: Any = x) -> bool:
        return rows_are_free(Problem.of(a, b, None, d.copy(order="K") if d is x else d))

    assert free(x)
    assert not free(x.T), "rows are contiguous with each other"
    assert not free(x, d=np.zeros((64, 64), np.float16).T)
    assert not free(x[:1], d=np.zeros((1, 64), np.float16)), "one row"
    assert not free(x[:, ::-1])
    stack = np.zeros((2, 64, 64), np.float16)
    assert not free(stack, stack, np.zeros((2, 64, 64), np.float16)), "two products"


# -- on a GPU ----------------------------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_many_rows_on_a_gpu(dtype: str, short: list[int]) -> None:
    """Drawn numbers of rows, sizes and extras, against PyTorch in double precision."""
    rng, kind = np.random.default_rng(7), getattr(torch, dtype)
    for n, k in ((512, 1024), (96, 2048), (4096, 256)):
        b = torch.randint(-3, 4, (k, n), device="cuda").to(kind)
        for rows in rng.integers(1, 3000, 60).tolist():
            a = torch.randint(-3, 4, (rows, k), device="cuda").to(kind)
            bias = torch.randint(-3, 4, (n,), device="cuda").to(kind) if rows % 2 else None
            found = matmul(a, b, bias=bias)
            expected = (a.double() @ b.double() + (0 if bias is None else bias.double())).to(kind)
            assert torch.equal(found, expected), (rows, n, k)
    assert short


def test_launches_for_other_rows_are_of_two_rows_at_least() -> None:
    a, b, vector = integers(0, 16, 48), integers(1, 48, 24), integers(2, 48)
    assert rows_key(a, b, None, None, None) is not None and rows_key(a[None], b, None, None, None) is not None
    assert rows_key(vector, b, None, None, None) is rows_key(a[:1], b, None, None, None) is None
    assert rows_key(a, b[None], None, None, None) is None


def test_each_part_of_a_plan_makes_another_launch() -> None:
    matmul(integers(0, 16, 48), integers(1, 48, 24))
    kept: Any = next(iter(MODULE._ROWS.values()))
    plan = kept.plan(kept.problem.with_rows(16))
    parts = ("config", "shares", "dynamic", "reduction", "numbered", "multiprocessors")
    others = [replace(plan, **{name: "another"}) for name in parts]
    assert launch_key(plan) == launch_key(replace(plan)) and all(
        launch_key(other) != launch_key(plan) for other in others
    )
