"""Which numbers of rows may be launched from another one's launch, rule by rule, without a product."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilewright import Float16
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.choice.registry import KERNELS
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.operators import rows as module
from tilewright.gemm.operators.repeated import Repetitions
from tilewright.gemm.operators.rows import (
    VARIED,
    WIDE_OFFSET,
    LaunchesByRows,
    launch_key,
    plan_for_rows,
    reach_of,
    rows_are_free,
    rows_key,
    wide_operands,
)
from tilewright.lang.arguments.arrays import Array

torch = pytest.importorskip("torch")


def problem(m: int, n: int = 256, k: int = 128) -> Problem:
    a, b = (np.zeros(shape, np.float16) for shape in ((m, k), (k, n)))
    return Problem.of(a, b, None, np.zeros((m, n), np.float16))


def planned(one: Problem) -> Plan:
    return Plan.of(one, [KERNELS["tensorop_f16"]], "data_parallel", "cpu", may_pack="ABD")


# -- keys --------------------------------------------------------------------------------------------------------------


def key(a: Any, n: int = 24) -> Any:
    return rows_key(a, torch.zeros(a.shape[-1], n).half(), None, None, None)


def test_a_key_needs_rows_with_a_stride_of_their_own() -> None:
    a = torch.zeros(24, 64).half()
    assert key(a[:1]) is None, "one row: its stride says nothing"
    assert key(a[:2]) == key(a[:3]) == key(a) is not None
    assert key(a[:, ::2]) is None, "columns apart"
    assert key(a[:, :1].contiguous()) is None, "rows of one element, which are next to each other"
    assert key(a[:, :1]) is not None, "rows of one element, apart"
    assert key(torch.zeros(2, 12, 64).half()) == key(a), "a stack that is one matrix"
    assert key(torch.zeros(2, 24, 64).half()[:, :12]) is None, "a stack with gaps"


def test_a_key_needs_a_source_and_a_result_of_the_results_shape() -> None:
    a, b = torch.zeros(24, 64).half(), torch.zeros(64, 40).half()
    assert rows_key(a, b, torch.zeros(24, 40).half(), torch.zeros(24, 40).half(), None) is not None
    assert rows_key(a, b, torch.zeros(12, 40).half(), None, None) is None
    assert rows_key(a, b, None, torch.zeros(24, 80).half()[:, ::2], None) is None


# -- problems and plans ------------------------------------------------------------------------------------------------


def test_rows_are_free_down_to_two_rows_of_one_element() -> None:
    whole = np.zeros((64, 2), np.float16)
    b = np.zeros((1, 64), np.float16)
    assert rows_are_free(Problem.of(whole[:, :1], b, None, np.zeros((64, 64), np.float16))), "K = 1, row stride 2"
    assert not rows_are_free(Problem.of(whole[:, :1].copy(), b, None, np.zeros((64, 64), np.float16))), "row stride 1"
    empty = torch.zeros(64, 8).half()[:, :0]  # PyTorch keeps the stride 8
    result = torch.zeros(64, 64).half()
    assert not rows_are_free(Problem.of(empty, torch.zeros(0, 64).half(), None, result)), "K = 0"
    assert rows_are_free(problem(2)) and not rows_are_free(problem(1))
    indirect: Any = object()
    assert not rows_are_free(replace(problem(64), indirect=indirect)), "rows by index"


@pytest.mark.parametrize(("usable", "asked"), [(True, [144]), (False, [144, 130])])
def test_the_plan_of_the_range_is_taken_where_it_holds(usable: bool, asked: list[int]) -> None:
    seen = []

    def plan(one: Problem) -> Plan:
        seen.append(one.shape[0])
        return replace(planned(one), packing=None if usable or one.shape[0] == 130 else object())

    assert plan_for_rows(problem(130), plan).packing is None
    assert seen == asked


@pytest.mark.parametrize(("columns", "step"), [(WIDE_OFFSET, 8), (WIDE_OFFSET, 1 << 40), (WIDE_OFFSET + 1, 0)])
def test_rows_that_reach_the_last_narrow_offset(columns: int, step: int) -> None:
    matrix = Matrix("a", None, Array(4096, "cpu", (1, columns, 1), (step, 1, 0), Float16, None))
    least = reach_of(matrix)[2]
    for rows in (1, 2, 3):
        assert matrix.array._replace(shape=(rows, columns, 1)).is_wide == (rows >= least)


# -- launches ----------------------------------------------------------------------------------------------------------


class Launch(SimpleNamespace):
    """A bound product, as far as :meth:`LaunchesByRows.product` reads it."""

    def __init__(self, plan: Plan, until: Any = None, one: Problem | None = None) -> None:
        prepared = SimpleNamespace(plan=plan, problem=one, with_rows=lambda rows, plan: (rows, plan))
        super().__init__(prepared=prepared, spans=((0, 1),) * 4, same=True, written=(3,), until=until)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> LaunchesByRows:
    monkeypatch.setattr(module.store, "may_have", lambda problem: False)
    return LaunchesByRows(problem(16), planned, torch.float16)


def bind(kept: LaunchesByRows, rows: int, wide: Any = None) -> None:
    kept.take(rows, planned(problem(rows)), passing=False)
    at = launch_key(kept.plans[module.planned_rows(rows)][0]), wide or wide_operands(kept.problem)
    kept.bound[at] = Launch(planned(problem(rows)))  # a stand-in


def test_the_first_ranges_get_their_best_kernels(kept: LaunchesByRows) -> None:
    plan = planned(problem(16))
    for count in range(VARIED + 1):
        assert not kept.may_pass(1000, often=False), count
        kept.take(8 * (count + 1), plan, passing=False)
    assert kept.may_pass(1000, often=False)
    assert not kept.may_pass(1000, often=True)
    assert not kept.may_pass(8, often=False), "it has its best one"


@pytest.mark.parametrize("passing", [False, True])
def test_a_product_that_passes_counts_its_launches(kept: LaunchesByRows, passing: bool) -> None:
    bind(kept, 24)
    kept.passing[24] = passing
    made = kept.product(24, (24, 256))
    assert made is not None and isinstance(made.until, Repetitions) == passing


def test_operands_become_wide_at_the_row_that_the_array_says(kept: LaunchesByRows) -> None:
    least = kept.reach[0][2]  # of A
    (of_a, _, of_c, of_d) = kept.reach
    assert of_a and of_c and of_d and least > of_c[2] == of_d[2]
    for rows, wide in ((least - 1, (False, False, True, True)), (least, (True, False, True, True))):
        assert wide_operands(kept.problem.with_rows(rows)) == wide
        kept.bound.clear()
        bind(kept, rows, wide)
        assert kept.product(rows, (rows, 256)) is not None


def test_a_kernel_that_is_compiled_is_waited_for_with_another(
    kept: LaunchesByRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it is there, a range is multiplied by a product with the same wide operands, but in no captured graph."""
    compiling: Future[None] = Future()
    plan, one = planned(problem(24)), problem(24)
    kept.learn(Launch(plan, compiling, one))  # a stand-in
    ((other, product),) = kept.bound.items()
    kept.take(24, replace(plan, dynamic=not plan.dynamic), passing=False)  # its own kernel, which nothing has bound
    made = kept.product(24, (24, 256))
    assert made is not None and made.until is compiling

    monkeypatch.setattr(module, "is_captured", lambda: True)
    assert kept.product(24, (24, 256)) is None
    monkeypatch.setattr(module, "is_captured", lambda: False)

    kept.meanwhile[24] = (other[0], (True,) * 4), compiling
    kept.bound[kept.meanwhile[24][0]] = product
    assert kept.product(24, (24, 256)) is None, "of wide operands"

    kept.meanwhile[24] = other, compiling
    compiling.set_result(None)
    assert kept.product(24, (24, 256)) is None, "the kernel is there: the product is bound at length"


def test_a_product_that_waits_for_nothing_is_no_substitute(kept: LaunchesByRows) -> None:
    kept.learn(Launch(planned(problem(24)), None, problem(24)))  # a stand-in
    assert not kept.meanwhile and kept.passing == {24: False}
