"""The default epilogue: alpha and beta in the accumulator's type."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import asks_for_gradient, dynamic
from tilewright.gemm.epilogue.functions import Chain, LinearCombination, Residual, ScaledSource
from tilewright.gemm.epilogue.scales import PerRowLinComb
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.problem import Problem
from tilewright.lang.arguments.arrays import array_of
from tilewright.lang.arguments.dlpack import from_dlpack

LARGEST = {"int": 2**31 - 1, 64: 1.7e308}
"""The largest scale of integer and of Float64 accumulators; 3e38 of all others, which scale as Float32 would."""


def linear_combination(
    entry: KernelEntry, problem: Problem, alpha: float, beta: float
) -> LinearCombination | ScaledSource | Chain:
    """alpha * sums + beta * C, or beta * C alone where ``alpha`` is 0, as BLAS has it: NaN and infinity in A and B then
    have no effect. A C of another type than D's is read by a function behind that. ArgumentError where the numbers, or
    C, do not allow it."""
    acc, source = entry.config.acc_dtype, problem.source
    for name, value in (("alpha", alpha), ("beta", beta)):
        check_scale(name, value)
        # Int32 reaches one further below zero than above it.
        if abs(value + (acc.is_integer and value < 0)) > LARGEST.get("int" if acc.is_integer else acc.width, 3e38):
            raise ArgumentError(f"{name} is beyond what {acc} holds")
        if acc.is_integer and not float(value).is_integer():
            raise ArgumentError(f"{name} = {value}: kernel {entry.name} computes with integers, so it must be one")
    if beta and not problem.has_c and source is None:
        raise ArgumentError(f"beta = {beta} needs a matrix c")
    number = int if acc.is_integer else float
    if beta and source is not None:
        if not acc.is_same_kind(source.dtype) or source.dtype.width > acc.width:
            raise ArgumentError(f"c is {source.dtype}, which is not added to sums of {acc}: convert it before")
        residual = Residual(dynamic(from_dlpack(source.source)), acc(number(beta)))
        return Chain((ScaledSource(acc(0)) if alpha == 0 else LinearCombination(acc(number(alpha))), residual))
    # 0 * NaN is NaN: the sums must not be used at all.
    if alpha == 0:
        return ScaledSource(acc(number(beta)))
    return LinearCombination(acc(number(alpha)), acc(number(beta)) if problem.has_c else None)


def is_array(value: Any) -> bool:
    """Whether a factor is an array: its numbers are those of the device, one for all rows or one for each."""
    return hasattr(value, "shape") and not isinstance(value, np.number)


def combination_of_arrays(entry: KernelEntry, problem: Problem, alpha: Any, beta: Any) -> PerRowLinComb | Chain:
    """alpha * sums + beta * C where one of both, or each, :func:`is_array`: one number, or a vector of one for each row
    of D. ArgumentError for others, and where there is no C."""
    acc, source = entry.config.acc_dtype, problem.source
    factors = [factor_of("alpha", alpha, acc), factor_of("beta", beta, acc)]
    if not is_array(beta) and beta == 0:
        return PerRowLinComb(factors[0])
    if not problem.has_c and source is None:
        raise ArgumentError("beta needs a matrix C")
    if source is None:
        return PerRowLinComb(*factors)
    if is_array(beta):
        raise ArgumentError(f"beta is an array, and C is {source.dtype}, D {problem.D.dtype}: give both one type")
    return Chain((PerRowLinComb(factors[0]), Residual(dynamic(from_dlpack(source.source)), factors[1])))


def factor_of(name: str, value: Any, acc: Any) -> Any:
    """A factor as :class:`PerRowLinComb` takes it."""
    if not is_array(value):
        check_scale(name, value)
        return acc(int(value) if acc.is_integer else float(value))
    if asks_for_gradient(value):
        raise ArgumentError(f"{name} asks for a gradient (requires_grad), and this call records none: detach it")
    dtype = array_of(value).dtype
    if not acc.is_same_kind(dtype):
        raise ArgumentError(f"{name} is an array of {dtype}, which does not multiply sums of {acc}")
    if math.prod(value.shape) == 1:
        return from_dlpack(value.reshape(-1))
    if len(value.shape) != 1:
        raise ArgumentError(f"{name} is one number or a vector, one for each row, not of shape {tuple(value.shape)}")
    return from_dlpack(value).mark_layout_dynamic()


def check_scale(name: str, value: Any) -> None:
    """ArgumentError for what is no finite number."""
    if is_array(value):
        raise ArgumentError(
            f"{name} must be a number, got an array of shape {tuple(value.shape)}: an array is a factor of "
            "GemmUniversal, and of the epilogue function PerRowLinComb"
        )
    if not isinstance(value, (numbers.Real, np.number)):
        raise ArgumentError(f"{name} must be a number, got {value!r}")
    # NaN is the number that differs from itself.
    if value != value or abs(value) == float("inf"):
        raise ArgumentError(f"{name} is {value}: a scale must be finite")


def check_result(entry: KernelEntry, problem: Problem) -> None:
    """ArgumentError when D cannot take what the kernel computes."""
    acc, d = entry.config.acc_dtype, problem.D.dtype
    if not acc.is_same_kind(d) or d.width > acc.width or d.width < 16:
        raise ArgumentError(f"kernel {entry.name} accumulates in {acc}, which cannot be written as {d}")
