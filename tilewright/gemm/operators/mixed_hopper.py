"""The part of ``mixed_matmul`` for many rows on sm_90: the Hopper kernel that converts the weight in registers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from math import prod
from typing import TYPE_CHECKING, Any

from tilewright import Float8E4M3FN
from tilewright.gemm.arrays import Matrix, PreparedMatrix, operand_of
from tilewright.gemm.choice.choose import KernelOptions, best
from tilewright.gemm.choice.registry import KERNELS, mixed_entry
from tilewright.gemm.choice.simulated import for_simulator
from tilewright.gemm.epilogue.functions import Chain, EpilogueFunction
from tilewright.gemm.epilogue.scales import ColumnBlockScales
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.family.plan_options import Limits
from tilewright.gemm.host.plan import Plan, capability_of, limits, simulated
from tilewright.gemm.host.problem import WIDEST, Problem
from tilewright.gemm.host.recorded import prepared_launch
from tilewright.gemm.host.universal import PreparedProblem
from tilewright.gemm.operators.arrays import new_result
from tilewright.gemm.operators.planned import by_the_model
from tilewright.gemm.operators.prepared import Prepared
from tilewright.gemm.operators.rows import plan_for_rows
from tilewright.gemm.operators.scaled import BLOCKWISE
from tilewright.lang.arguments.arrays import array_of
from tilewright.lang.arguments.dlpack import from_dlpack

if TYPE_CHECKING:
    from tilewright.gemm.operators.prepare_weight import PreparedWeight

STEPS = (16, 64, 256)
"""Rows are rounded up to a multiple of the largest that is below them, before a size is chosen."""


def prepared_matrix(weight: PreparedWeight) -> PreparedMatrix:
    """The weight as an operand of a problem."""
    blocks = weight.blocks
    words = Matrix.of("the weight", blocks.reshape(blocks.shape[0], prod(blocks.shape[1:])))
    scales = Matrix.of("the scales", weight.scales.T)
    zeros = None if weight.zeros is None else Matrix.of("the zero points", weight.zeros.T)
    return PreparedMatrix(words.name, words.source, words.array, scales, zeros, weight.dtype)


def entry_of(weight: PreparedWeight, dtype: Any, out: Any) -> KernelEntry:
    """The kernel for such a weight, and rows of ``dtype``."""
    return mixed_entry(weight.dtype, dtype, out, array_of(weight.scales).dtype, weight.group, weight.zeros is not None)


@lru_cache(maxsize=512)
def sized(entry: KernelEntry, shape: tuple[int, int, int, int], gpu: Limits, simulator: bool) -> Any:
    """The entry in the size that suits, and its plan. Numbers of rows that are near to each other have one size, so
    that few kernels are compiled for a program that has all of them."""
    m, n, k, batch = shape
    step = max(step for step in STEPS if step < m or step == STEPS[0])
    near = step * -(-m // step), n, k, batch
    if simulator:
        return best(for_simulator(entry, near, gpu), "data_parallel", shape, gpu)
    options = KernelOptions.of(entry, gpu)
    return options.option(options.best(near, "auto"), shape)


def chosen_size(problem: Problem, weight: PreparedWeight) -> str:
    """The tile and cluster of the size that the model takes, for benchmarks."""
    entry = entry_of(weight, problem.A.dtype, problem.D.dtype)
    found, shares = sized(entry, problem.shape, limits(problem.machine), False)
    config, how = found.config, "" if shares is None else ", tiles are shared"
    return f"tile {config.tile[:2]}, cluster {config.cluster}, slices {config.cluster_k}, stages {config.stages}{how}"


def multiplied_by_wgmma(
    problem: Problem,
    weight: PreparedWeight,
    function: EpilogueFunction,
    of_epilogue: tuple[Any, Any],
    entry: KernelEntry | None = None,
    stream: int | None = None,
) -> bool:
    """Multiply by the Hopper kernel, where it can take the operands: ``problem.D`` is written, and True. ``function``
    has the bias and the scales of rows (``of_epilogue``); ``entry``: the kernel in another
    choice of sizes; ``stream``: another one than the current one."""
    bias, scale_a = of_epilogue
    entry = entry or entry_of(weight, problem.A.dtype, problem.D.dtype)
    problem = replace(problem, B=prepared_matrix(weight))
    if entry.family.refusal(entry.sizes, problem, "auto", capability_of(problem.machine)) is not None:
        return False
    plan = plan_for_rows(problem, partial(plan_of, entry))
    launched(problem, plan, function, (weight.scales, weight.zeros, scale_a, bias), stream)
    return True


def multiplied_as_narrow(
    problem: Problem,
    weight: PreparedWeight,
    function: EpilogueFunction,
    of_epilogue: tuple[Any, Any],
    write: Callable[[Any], None],
    stream: int | None = None,
) -> bool:
    """Multiply by the Hopper kernel of 8-bit floats, where it can take the operands: ``problem.D`` is written, and
    True. ``write(dense)`` writes the numbers of the weight as Float8E4M3FN (N, K); the sums of 128 elements of K are
    multiplied by the scales. The other arguments are those of :func:`multiplied_by_wgmma`."""
    bias, scale_a = of_epilogue
    rows = problem.A
    dense = new_result(rows.source, weight.shape, Float8E4M3FN)
    problem = replace(problem, B=Matrix.of("the weight", dense).transposed())
    entry = KERNELS[BLOCKWISE[rows.dtype][0]].for_block_scales(None, 1)
    assert entry is not None  # there are such sizes
    if entry.family.refusal(entry.sizes, problem, "auto", capability_of(problem.machine)) is not None:
        return False
    write(dense)
    scales = ColumnBlockScales(from_dlpack(weight.scales.T).mark_layout_dynamic(leading_dim=0))
    plan = plan_for_rows(problem, partial(by_the_model, [entry], "auto", "", ()))
    launched(problem, plan, Chain((scales, function)), (weight.scales, scale_a, bias), stream)
    return True


def launched(problem: Problem, plan: Plan, function: Any, vectors: tuple[Any, ...], stream: int | None) -> None:
    """Launch a product on ``stream`` or the current one. ``vectors``: the further arrays of its operands, and those of
    its epilogue, or None."""
    if stream is not None:
        PreparedProblem(problem, function, plan).launch(stream)
        return
    addresses = [x.array.address for x in problem.matrices]
    addresses += [array_of(x).address for x in vectors if x is not None]
    prepared_launch(Prepared(problem, plan, function), tuple(addresses))


def plan_of(entry: KernelEntry, problem: Problem) -> Plan:
    """The kernel in the size that suits the problem."""
    gpu, simulator = limits(problem.machine), problem.machine == "cpu" and simulated().sizes == "simulator"
    chosen, shares = sized(entry, problem.shape, gpu, simulator)
    config = chosen.with_operands(chosen.config.a, chosen.config.b, operand_of((problem.D.transposed(),), WIDEST))
    plan = Plan(chosen, config, shares, gpu[0], {})
    return plan if shares is None else plan.renumbered()
