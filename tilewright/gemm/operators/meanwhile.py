"""A kernel that is here, in place of a better one that another process compiles meanwhile.

A product whose kernel is neither compiled nor on the disk would wait a second for it. Where another size of the same
kernel was compiled before, and the model says that it takes at most a quarter longer, that one multiplies until the
better one is there. Both add up along K in one order, so the numbers are the same. A plan that splits K is waited for,
and so is everything that is captured into a graph, which would keep the size.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from tilewright.gemm.choice.choose import KernelOptions
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.family.hopper_cost import FIXED_US
from tilewright.gemm.family.suited import suited_entry, with_operands
from tilewright.gemm.host import handle
from tilewright.gemm.host.handle import Handle
from tilewright.gemm.host.plan import Plan, limits
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.tuning.jobs import Job, Product
from tilewright.gemm.tuning.processes import compile_elsewhere, is_kept, is_on
from tilewright.lang.arguments.arrays import array_of

MOST_TIMES_SLOWER = 1.25
COMPILING = ("gpu",)
"""The machines that kernels are compiled for."""


def adds_in_order(plan: Plan) -> bool:
    """Whether one block adds up all of K for each of its tiles, of operands as they are."""
    return plan.shares is None and plan.packing is None and not plan.dynamic and plan.config.cluster_k == 1


def in_place_of(
    plan: Plan, entries: list[KernelEntry], problem: Problem, function: Any, product: Product
) -> tuple[Plan, Future[None]] | None:
    """A plan by a kernel that is here, and when the one of ``plan`` is compiled; None where that is here or on the
    disk, or has to be waited for."""
    if problem.machine not in COMPILING or not is_on() or not adds_in_order(plan):
        return None
    (kind,) = kinds(plan, problem, function)
    if kind in handle._COMPILED or is_kept(kind):
        return None
    job = Job(product, plan, import_module("tilewright.cuda.machine").default_architecture())
    if job.kinds() != [kind]:  # operands or a function that another process would not have
        return None
    other_plan = substitute(plan, entries, problem, function)
    future = None if other_plan is None else handle.ELSEWHERE.get(kind) or compile_elsewhere(job)
    return None if other_plan is None or future is None or future.done() else (other_plan, future)


def substitute(plan: Plan, entries: list[KernelEntry], problem: Problem, function: Any) -> Plan | None:
    """The fastest plan by the model of those whose kernel is here, if it is not much slower."""
    here = {kind[0][1] for kind in list(handle._COMPILED)}
    entry = suited_entry(next(entry for entry in entries if entry.name == plan.entry.name), problem)
    options = KernelOptions.of(entry, limits(problem.machine))
    times, first = options.times(problem.shape, "data_parallel")
    most = MOST_TIMES_SLOWER * (float(times.min()) + FIXED_US)
    for index in times.argsort(kind="stable").tolist():
        if times[index] + FIXED_US > most:
            break
        other = options.entries[id(options.plan_options[first + index].config)]
        config = with_operands(other, problem)
        if config in here:
            candidate = replace(plan, entry=other, config=config)
            if kinds(candidate, problem, function)[0] in handle._COMPILED:
                return candidate
    return None


def kinds(plan: Plan, problem: Problem, function: Any) -> list[Any]:
    """The keys of the kernels of a plan that :func:`adds_in_order`."""
    kinds_of: list[Any] = []
    Handle.of(
        plan,
        problem,
        function,
        None,
        lambda n, dtype: np.zeros(n, dtype.dtype),
        lambda kernel, key, args, streamed: kinds_of.append((key, streamed)),
    )
    return kinds_of


def product_of(problem: Problem, bias: Any, activation: str | None) -> Product | None:
    """The product for another process; None where its arguments are others than that knows."""
    m, n, k, batch = problem.shape
    if problem.indirect is not None or problem.has_c or batch != 1 or 0 in (m, n, k):
        return None
    majors = "k" if problem.A.stride[1] == 1 else "m", "k" if problem.B.stride[0] == 1 else "n"
    dtypes = problem.A.dtype, problem.D.dtype
    names = [str(dtype.torch_dtype).removeprefix("torch.") for dtype in dtypes]
    vector = None if bias is None else str(array_of(bias).dtype.torch_dtype).removeprefix("torch.")
    return Product((m, n, k), names[0], names[1], *majors, vector, activation)
