"""Plans by the model of time: the best for a problem, and one of few kernels for numbers of rows that pass by.

The best kernel changes with each 16 to 64 rows, so a program that sees another number of rows in each call would be
given some 30 kernels for one (N, K), a second of NVRTC each. There, a number of rows that is not repeated is multiplied
by one of about half as many: for each range of rows one of them takes at most ``PASSING`` times as long as the best, by
the model. A geometry that is launched ``repeated.OFTEN`` times gets its best kernel. Both add up along K in one order,
so the numbers are the same; where the best plan splits K, it is taken.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from tilewright.errors import ArgumentError
from tilewright.gemm.choice.choose import KernelOptions
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.family.hopper_cost import FIXED_US
from tilewright.gemm.family.suited import suited_entry, with_operands
from tilewright.gemm.host import handle
from tilewright.gemm.host.plan import Plan, limits, packing_for
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.operators.epilogues import is_long
from tilewright.gemm.operators.meanwhile import COMPILING, adds_in_order, kinds
from tilewright.gemm.operators.rows import planned_rows
from tilewright.gemm.schedule.splitk import SplitK
from tilewright.gemm.schedule.streamk import StreamK

PASSING = 1.08
"""How much longer than the best kernel one of the few takes at most by the model; 1.013 to 1.023 on average
over 1 to 1,499 rows of four weights."""
MOST_ROWS = 8192
"""Above, there are as many tiles as fill the multiprocessors often, and few kernels are the best anyway."""


def by_the_model(
    entries: list[KernelEntry],
    decomposition: str | StreamK | SplitK,
    may_pack: str,
    functions: tuple[Any, ...],
    problem: Problem,
) -> Plan:
    """``functions``: those of the epilogue, which may take longer than the main loop of a size.

    The rule of all operators for memory that kernels cannot access, as views at odd addresses: where no kernel takes
    the operands as they are, the first one that takes copies of them gets these. (Where one takes them, another one
    with copies is taken if the model says that it is faster.)"""
    entries = for_functions(entries, functions, problem)
    try:
        return Plan.of(problem, entries, decomposition, problem.machine, may_pack=may_pack)
    except ArgumentError as error:
        for entry in entries:
            if packing_for(entry, problem, decomposition, problem.machine, None, may_pack) is not None:
                return Plan.with_copies(problem, entry, decomposition, problem.machine, may_pack)
        if all(packing_for(entry, problem, decomposition, problem.machine, None, "ABCD") is None for entry in entries):
            raise
        raise ArgumentError(
            f"{error}. Matrices are copied for it, but for a result {problem.D.shape[:2]} whose rows are no multiple "
            "of 16 bytes long, where it has a bias or scales of columns"
        ) from None


def for_functions(entries: list[KernelEntry], functions: tuple[Any, ...], problem: Problem) -> list[KernelEntry]:
    """The entries in the sizes that suit the functions of an epilogue."""
    if is_long(functions, problem.D.dtype) and problem.machine != "cpu":
        return [entry.for_long_epilogue(problem.shape, limits(problem.machine)) for entry in entries]
    return entries


def by_few_kernels(plan: Plan, entries: list[KernelEntry], problem: Problem, function: Any) -> Plan | None:
    """A plan by one of few kernels in place of the best ``plan``; None where that is to be taken: it splits K, its
    kernel is here, or is one of the few. ``function``: the epilogue's, as the kernel takes it."""
    rows = planned_rows(problem.shape[0])
    if problem.machine not in COMPILING or not adds_in_order(plan) or rows > MOST_ROWS:
        return None
    (kind,) = kinds(plan, problem, function)
    if kind in handle._COMPILED:
        return None
    entry = suited_entry(next(entry for entry in entries if entry.name == plan.entry.name), problem)
    options = KernelOptions.of(entry, limits(problem.machine))
    _, n, k, _ = problem.shape
    times, first = options.times((rows, n, k, 1), "data_parallel")
    number = min(few_options(options, n, k), key=times.__getitem__)
    other = options.entries[id(options.plan_options[first + number].config)]
    config = with_operands(other, problem)
    return None if config == plan.config else replace(plan, entry=other, config=config)


@lru_cache(maxsize=256)
def few_options(options: KernelOptions, n: int, k: int) -> tuple[int, ...]:
    """Numbers of options that give each tile to one block: for each range of rows at least one of them is nearly the
    fastest. Always the option that is so for most of the ranges that are left."""
    ranges, end = [], 0
    while end < MOST_ROWS:
        end = planned_rows(end + 1)
        ranges.append(end)
    us = np.array([options.times((rows, n, k, 1), "data_parallel")[0] for rows in ranges]) + FIXED_US
    slower = us / us.min(axis=1, keepdims=True)
    worth = np.where(slower <= PASSING, 1 + PASSING - slower, 0.0)  # of two that suit as many ranges, the faster
    chosen: list[int] = []
    while len(worth):
        chosen.append(int(worth.sum(axis=0).argmax()))
        worth = worth[worth[:, chosen[-1]] == 0]
    return tuple(chosen)
