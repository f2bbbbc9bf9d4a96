"""``matmul`` of JAX tracers: within jax.jit, jax.grad and jax.vmap. The gradient is two more products."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import check_types
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.host.universal import PreparedProblem
from tilewright.gemm.operators.arrays import framework, operands
from tilewright.gemm.operators.jax_call import Arrays, Operation, transposed
from tilewright.gemm.operators.matmul import Request, matmul
from tilewright.lang.numbers.dtypes import numeric_of_dtype


@dataclass(frozen=True)
class CallOptions:
    """The arguments of a call that are not arrays: they are known while JAX traces it."""

    alpha: float
    beta: float
    activation: str | None
    out_dtype: Any
    precision: str
    kernel: Any
    decomposition: Any

    def request(self, arrays: Arrays) -> Request:
        """The call for the arrays of one execution."""
        a, b, c, bias, out = (arrays.get(name) for name in ("a", "b", "c", "bias", "out"))
        return Request(a, b, out, c, bias=bias, **vars(self))


def check_arrays(request: Request) -> None:
    """ArgumentError for operands that are no arrays."""
    for name, x in {"a": request.a, "b": request.b, **request.given()}.items():
        framework(x, name)


def check_traced(request: Request, columns: int) -> None:
    """What is known of the arrays while JAX traces: ArgumentError for types and vectors that do not go together."""
    check_types(*(numeric_of_dtype(x.dtype) for x in (request.a, request.b)))
    if request.bias is not None and tuple(request.bias.shape) != (columns,):
        raise ArgumentError(
            f"bias must be a vector of {columns} elements, one for each column of the result, not of shape "
            f"{tuple(request.bias.shape)}"
        )
    for name, x in getattr(request, "scales", {}).items():
        if x.dtype != np.float32:
            raise ArgumentError(f"{name} must be float32, got {numeric_of_dtype(x.dtype).__name__}")


def traced(request: Request) -> Any:
    """:func:`matmul` of tracers, which may be arrays, too; ``out`` cannot be given."""
    check_arrays(request)
    if request.functions:
        raise ArgumentError(
            "epilogue cannot be given where JAX traces the call: call matmul outside of jax.jit and jax.grad"
        )
    options = CallOptions(**{option.name: getattr(request, option.name) for option in fields(CallOptions)})
    matrices = operands(request.a, request.b)
    c = None if request.c is None else request.c.reshape(matrices.stack)
    if request.c is not None and tuple(request.c.shape) != matrices.shape:
        raise ArgumentError(f"c must have the shape of the result, {matrices.shape}, not {tuple(request.c.shape)}")
    return PRODUCT(options, a=matrices.a, b=matrices.b, c=c, bias=request.bias).reshape(matrices.shape)


def result(options: CallOptions, arrays: Arrays) -> tuple[tuple[int, ...], Any]:
    """Of matrices, or of stacks of them."""
    request, c = options.request(arrays), arrays.get("c")
    check_traced(request, request.b.shape[-1])
    entry = request.entries(numeric_of_dtype(request.a.dtype))[0]
    kind = numeric_of_dtype(c.dtype) if options.out_dtype is None and c is not None else request.result_dtype(entry)
    return (*request.a.shape[:-1], request.b.shape[-1]), kind


def execute(options: CallOptions, arrays: Arrays, stream: int | None) -> None:
    """One execution by XLA, on ``stream`` (None: in the simulator)."""
    request = replace(options, out_dtype=None).request(arrays)
    problem = Problem.of(request.a, request.b, request.c, request.out)
    if problem.is_empty:
        return
    entries = request.entries(problem.A.dtype)
    function = request.function(entries[0], problem, request.vectors(problem))
    plan: Plan = request.plan(problem, entries)
    PreparedProblem(problem, function, plan).launch(stream)


def gradients(options: CallOptions, arrays: Arrays, grad: Any) -> Arrays:
    """Two products, and the part of the result's gradient that belongs to ``c`` and the bias."""
    a, b = arrays["a"], arrays["b"]
    scaled = grad.astype(a.dtype)
    by_name = {
        "a": matmul(scaled, transposed(b), alpha=options.alpha, out_dtype=a.dtype),
        "b": matmul(transposed(a), scaled, alpha=options.alpha, out_dtype=b.dtype),
    }
    if "c" in arrays:
        by_name["c"] = (grad * options.beta).astype(arrays["c"].dtype)
    if "bias" in arrays:
        by_name["bias"] = grad.sum(tuple(range(grad.ndim - 1))).astype(arrays["bias"].dtype)
    return by_name


PRODUCT = Operation(result, execute, gradients)
