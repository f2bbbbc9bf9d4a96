"""Kernels compiled before they are needed: ``warm_up`` for servers with known weights and unknown batch sizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.gemm.operators.arrays import framework, new_result
from tilewright.gemm.operators.launches import current_stream
from tilewright.gemm.operators.matmul import Request
from tilewright.gemm.operators.prepared import Prepared
from tilewright.gemm.operators.rows import launch_key, planned_rows
from tilewright.lang.arguments.arrays import array_of


def warm_up(
    b: Any,
    rows: Iterable[int],
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    bias: Any = None,
    activation: str | None = None,
    out_dtype: Any = None,
    precision: str = "ieee",
    kernel: str | None = None,
) -> int:
    """Compile and load every kernel that ``matmul(x, b, ...)`` takes for an ``x`` of one of these ``rows``; launch
    nothing.

    ``x`` is taken to be row-major. Returns how many different launches there are.

    Args:
        b: (K, N), the weight as it will be given.
        rows: the numbers of rows to expect, ``range(1, 4096)`` say.
        alpha: the factor of the product, as in :func:`matmul`.
        beta: the factor of a row-major ``c``, which is expected where it is not 0.
        bias: a vector of N numbers.
        activation: a name, as in :func:`matmul`.
        out_dtype: of the result, as in :func:`matmul`.
        precision: of float32 arrays: "ieee" or "tf32".
        kernel: a kernel's name, in place of the choice.

    Raises:
        ArgumentError: what :func:`matmul` refuses, or rows that are not positive integers.

    >>> warm_up(np.ones((64, 32), np.float16), rows=range(1, 65)) > 0
    True
    """
    framework(b, "b")  # ArgumentError unless it is an array
    expected = sorted({planned_rows(n) if n > 1 else n for n in checked(rows)})
    if not expected:
        return 0
    if len(b.shape) != 2:
        raise ArgumentError(f"warm_up takes b as a matrix (K, N); it has {len(b.shape)} dimensions")
    a = new_result(b, (expected[-1], int(b.shape[0])), array_of(b).dtype)
    prepared: dict[Any, Prepared] = {}
    for n in expected:
        options = alpha, beta, bias, activation, out_dtype, precision, kernel, "auto"
        call = Request(a[:n], b, None, None, *options)
        if beta != 0:
            dtype = call.result_dtype(call.entries(array_of(b).dtype)[0])
            call = replace(call, c=new_result(b, (n, int(b.shape[1])), dtype))
        arrays = call.read()
        if not arrays.problem.is_empty:
            plan = call.plan(arrays.problem, arrays.entries)
            prepared.setdefault(
                (n == 1, launch_key(plan), plan.packing), Prepared(arrays.problem, plan, arrays.function)
            )
    for one in prepared.values():  # one after the other: staging holds Python's lock, and threads made it slower
        one.bind(current_stream(one.number, one.workspace))
    return len(prepared)


def checked(rows: Iterable[int]) -> list[int]:
    """The numbers of rows; ArgumentError for others than positive integers."""
    if isinstance(rows, int):
        raise ArgumentError(f"rows lists the numbers of rows to expect, range(1, 4096) say, not {rows!r}")
    listed = list(rows)
    for n in listed:
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            raise ArgumentError(f"rows lists positive integers, and {n!r} is not one")
    return listed
