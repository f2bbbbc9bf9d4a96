"""Products that differ in the number of rows alone, as those of a model whose batches grow and shrink.

The first product of a kind is read, checked, planned and bound at length. Another number of rows changes the extents of
A, C and D and nothing else that a launch is given, as long as kernel and decomposition stay; so its launch is a copy of
the first one's with these numbers replaced. A plan is made for a range of rows; after the first ``VARIED`` ranges, the
others share few kernels (``planned.by_few_kernels``) until one of their numbers of rows is launched often.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from math import prod
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.host.recorded import current, decided, planned_alone
from tilewright.gemm.operators.launches import is_captured
from tilewright.gemm.operators.repeated import RepeatedProduct, Repetitions
from tilewright.gemm.tuning import store
from tilewright.lang.numbers.facts import EXTENT_BOUND

STEPS = ((128, 8), (512, 16), (4096, 64))
"""(rows, step): up to ``rows`` rows, a plan is made for each multiple of ``step``; above, of twice the last step."""

VARIED = 4
"""Ranges of rows that get their best kernels at once."""

WIDE_OFFSET = EXTENT_BOUND[32] - 1
"""The least offset that is wide (``Array.is_wide``)."""
NEVER = 1 << 62


def planned_rows(rows: int) -> int:
    """The number of rows that is planned for in place of ``rows``: the last one of its range.

    >>> [planned_rows(rows) for rows in (1, 8, 9, 129, 4095, 4097)]
    [8, 8, 16, 144, 4096, 4224]
    """
    step = next((step for most, step in STEPS if rows <= most), 2 * STEPS[-1][1])
    return -(-rows // step) * step


def rows_are_free(problem: Problem) -> bool:
    """Whether another number of rows would change extents alone: matrices, not stacks, whose rows are not contiguous
    with each other (then the extent is that of vectors), and more rows than one (whose stride would say nothing)."""
    if problem.indirect is not None or problem.shape[3] != 1 or problem.shape[0] < 2 or problem.shape[2] == 0:
        return False
    return all(x.stride[1] == 1 and x.stride[0] != 1 for x in (problem.A, problem.C, problem.D))


def plan_for_rows(problem: Problem, plan: Callable[[Problem], Plan]) -> Plan:
    """``plan``'s for the range of rows that the problem's are in, where that can be used for these."""
    if rows_are_free(problem):
        rows = problem.shape[0]
        with contextlib.suppress(ArgumentError):  # it would name the rounded extents
            chosen = plan(problem.with_rows(planned_rows(rows)))
            if holds(chosen, rows):
                if current() is not None:
                    decided(rows, RowsChoice(problem.without_sources(), plan))
                return chosen
    planned_alone()
    return plan(problem)


@dataclass
class RowsChoice:
    """What :func:`plan_for_rows` decides by the number of rows of a ``problem`` without its arrays; ``plan`` plans a
    problem by the model. A call with a number of rows returns all that their launch depends on beside that number, and
    None where they have to be planned at length."""

    problem: Problem
    plan: Callable[[Problem], Plan]
    plans: dict[int, tuple[Plan, LaunchKey] | None] = field(default_factory=dict, kw_only=True)
    """The plan of each range of rows, and its launch key; None for a range without a plan."""

    def __call__(self, rows: int) -> LaunchKey | None:
        found = self.planned(rows)
        return found[1] if found is not None and holds(found[0], rows) else None

    def planned(self, rows: int) -> tuple[Plan, LaunchKey] | None:
        """The plan of the range that so many rows are in, and its launch key; None where tuning found another way."""
        if self.is_tuned(rows):
            return None
        rounded = planned_rows(rows)
        if rounded not in self.plans:
            self.plans[rounded] = None
            with contextlib.suppress(ArgumentError):  # found at length, for these rows, or an error names them
                plan = self.plan(self.problem.with_rows(rounded))
                self.plans[rounded] = plan, launch_key(plan)
        return self.plans[rounded]

    def is_tuned(self, rows: int) -> bool:
        """Whether tuning found something for so many rows."""
        return store.may_have(lambda: self.problem.with_rows(rows))


def holds(plan: Plan, rows: int) -> bool:
    """Whether the plan for as many rows as are planned for is one for ``rows``: copies are of a matrix's own size, and
    tiles are shared by their number."""
    tile = plan.config.cluster_tile[1 if plan.config.transposed else 0]
    return plan.packing is None and (plan.shares is None or -(-rows // tile) == -(-planned_rows(rows) // tile))


# -- launches of other rows --------------------------------------------------------------------------------------------


def rows_of(x: Any) -> int:
    """Rows of a PyTorch tensor that is a matrix, or a stack of matrices seen as one."""
    return prod(x.shape[:-1])


def rows_key(a: Any, b: Any, out: Any, c: Any, bias: Any) -> Any:
    """The key of a launch without addresses and the number of rows; None where it depends on more."""
    if b.ndim != 2 or rows_of(a) < 2:  # a vector is one row
        return None
    shape = (*a.shape[:-1], b.shape[1])
    keys: list[Any] = []
    for x in (a, out, c):
        if x is None:
            keys.append(None)
            continue
        step = x.stride(0) if x.ndim == 2 else x.shape[-1]  # from row to row
        one = x.stride(-1) == 1 and step != 1 and (x.ndim == 2 or x.is_contiguous())
        if not one or x is not a and x.shape != shape:
            return None
        keys.append((x.dtype, x.shape[-1], step, x.data_ptr() & 15, x.get_device(), x.is_neg()))
    for x in (b, bias):
        keys.append(
            None if x is None else (x.dtype, x.shape, x.stride(), x.data_ptr() & 15, x.get_device(), x.is_neg())
        )
    return tuple(keys)


@dataclass
class LaunchesByRows(RowsChoice):
    """A product whose number of rows is open: ``problem`` has some number. ``dtype`` is the result's."""

    dtype: Any
    bound: dict[Any, RepeatedProduct] = field(default_factory=dict)
    """A product for each launch key, and which of its operands are wide."""
    meanwhile: dict[int, tuple[Any, Future[None]]] = field(default_factory=dict)
    """For ranges of rows whose kernel another process compiles: the key of the product that is used meanwhile."""
    passing: dict[int, bool] = field(default_factory=dict)
    """Whether a range of rows has one of few kernels, as long as none of its numbers of rows is launched often; False
    once it has its best one."""

    @cached_property
    def reach(self) -> tuple[tuple[int, int, int] | None, ...]:
        """For A, C and D: (bytes from row to row, bytes of a row, number of rows from which it is wide); for B None."""
        return tuple([reach_of(x) if x is not self.problem.B else None for x in self.problem.matrices])

    def learn(self, product: RepeatedProduct) -> None:
        """Keep a product that was bound at length."""
        prepared = product.prepared
        key = launch_key(prepared.plan), wide_operands(prepared.problem)
        self.bound[key] = product
        rounded = planned_rows(prepared.problem.shape[0])
        self.passing.setdefault(rounded, False)
        if isinstance(product.until, Future):
            self.meanwhile[rounded] = key, product.until

    def may_pass(self, rows: int, often: bool) -> bool:
        """Whether so many rows are multiplied by one of few kernels; ``often``: they have been until now."""
        rounded = planned_rows(rows)
        return not often and self.passing.get(rounded, len(self.plans) > VARIED)

    def take(self, rows: int, plan: Plan, passing: bool) -> None:
        """Keep the plan of the range that so many rows are in."""
        rounded = planned_rows(rows)
        self.plans[rounded], self.passing[rounded] = (plan, launch_key(plan)), passing

    def product(self, rows: int, shape: tuple[int, ...]) -> RepeatedProduct | None:
        """The product of as many rows, whose result has this shape; None where it has to be bound at length."""
        found = self.planned(rows)
        if found is None:
            return None
        (plan, key), rounded = found, planned_rows(rows)
        # What `wide_operands` and `Array.bounds` say of the problem with these rows, which is not made for it.
        wide = tuple([self.wide_b if reach is None else rows >= reach[2] for reach in self.reach])
        like = self.bound.get((key, wide)) if holds(plan, rows) else None
        until: Any = Repetitions() if self.passing.get(rounded) else None
        if like is None:
            other: Any
            other, until = self.meanwhile.get(rounded, (None, None))
            if until is None or until.done() or other[1] != wide or is_captured():
                return None
            like = self.bound[other]
            plan = like.prepared.plan
        spans = [
            span if reach is None else (0, (rows - 1) * reach[0] + reach[1])
            for span, reach in zip_longest(like.spans, self.reach)  # vectors are behind the matrices
        ]
        made = like.prepared.with_rows(rows, plan)
        return RepeatedProduct(made, shape, self.dtype, tuple(spans), like.same, like.written, until)

    @cached_property
    def wide_b(self) -> bool:
        return self.problem.B.array.is_wide


@dataclass(frozen=True)
class LaunchKey:
    """The part of a kernel and of its arguments that its plan decides, without addresses and rows; hashed once."""

    parts: tuple[Any, ...]

    @cached_property
    def digest(self) -> int:
        return hash(self.parts)

    def __hash__(self) -> int:
        return self.digest


def launch_key(plan: Plan) -> LaunchKey:
    return LaunchKey((plan.config, plan.shares, plan.dynamic, plan.reduction, plan.numbered, plan.multiprocessors))


def reach_of(matrix: Matrix) -> tuple[int, int, int]:
    """Bytes from row to row, bytes of a row, and the least number of rows with which the array is wide, of a matrix
    whose rows :func:`rows_are_free` finds free."""
    columns, step, size = matrix.shape[1], matrix.stride[0], matrix.dtype.bytes
    room = WIDE_OFFSET - (columns - 1)  # of the offsets that are not wide, to the last row's first element
    least = 1 - -room // step if step else NEVER
    return step * size, columns * size, 1 if room <= 0 else least


def wide_operands(problem: Problem) -> tuple[bool, ...]:
    """Which operands are so large that the kernel has to use offsets of 64 bits."""
    return tuple([matrix.array.is_wide for matrix in problem.matrices])
