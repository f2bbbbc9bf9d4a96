"""``matmul`` of JAX tracers: within jax.jit, jax.grad and jax.vmap. The gradient is two more products."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import jax

from tilewright.errors import ArgumentError
from tilewright.gemm.epilogue.activations import ACTIVATIONS
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.host.universal import PreparedProblem
from tilewright.gemm.operators.arrays import operands
from tilewright.gemm.operators.jax_call import called
from tilewright.gemm.operators.matmul import Request, matmul
from tilewright.lang.numbers.dtypes import numeric_of_dtype

jnp = jax.numpy
JAX_ACTIVATIONS = {
    "relu": jax.nn.relu,
    "squared_relu": lambda x: jnp.square(jax.nn.relu(x)),
    "sigmoid": jax.nn.sigmoid,
    "gelu": partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": partial(jax.nn.gelu, approximate=True),
    "silu": jax.nn.silu,
    "tanh": jnp.tanh,
}
assert JAX_ACTIVATIONS.keys() == ACTIVATIONS.keys()


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


def traced(request: Request) -> Any:
    """:func:`matmul` of tracers, which may be arrays, too; ``out`` cannot be given."""
    request.given()
    if request.functions:
        raise ArgumentError(
            "epilogue cannot be given where JAX traces the call: call matmul outside of jax.jit and jax.grad"
        )
    options = CallOptions(**{option.name: getattr(request, option.name) for option in fields(CallOptions)})
    matrices = operands(request.a, request.b)
    c = None if request.c is None else request.c.reshape(matrices.stack)
    if request.c is not None and tuple(request.c.shape) != matrices.shape:
        raise ArgumentError(f"c must have the shape of the result, {matrices.shape}, not {tuple(request.c.shape)}")
    return product(options, matrices.a, matrices.b, c, request.bias).reshape(matrices.shape)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def product(options: CallOptions, a: Any, b: Any, c: Any, bias: Any) -> Any:
    """The product of matrices, or of stacks of them."""
    request = Request(a, b, None, c, bias=bias, **vars(options))
    entry = request.entries(numeric_of_dtype(a.dtype))[0]
    kind = numeric_of_dtype(c.dtype) if options.out_dtype is None and c is not None else request.result_dtype(entry)
    shape = (*a.shape[:-1], b.shape[-1])
    return called(execute, options, {"a": a, "b": b, "c": c, "bias": bias}, shape, kind)


def execute(options: CallOptions, arrays: dict[str, Any], stream: int | None) -> None:
    """One execution by XLA, on ``stream`` (None: in the simulator)."""
    a, b, c, bias, d = (arrays.get(name) for name in ("a", "b", "c", "bias", "out"))
    request = Request(a, b, d, c, bias=bias, **vars(replace(options, out_dtype=None)))
    problem = Problem.of(a, b, c, d)
    if problem.is_empty:
        return
    entries = request.entries(problem.A.dtype)
    function = request.function(entries[0], problem, request.vectors(problem))
    plan: Plan = request.plan(problem, entries)
    PreparedProblem(problem, function, plan).launch(stream)


def forward(options: CallOptions, a: Any, b: Any, c: Any, bias: Any) -> tuple[Any, Any]:
    """The activation is JAX's here: its gradient wants what came before it."""
    sums = product(replace(options, activation=None), a, b, c, bias)
    result = sums if options.activation is None else JAX_ACTIVATIONS[options.activation](sums)
    return result, (a, b, c, bias, None if options.activation is None else sums)


def backward(options: CallOptions, kept: Any, grad: Any) -> tuple[Any, ...]:
    """Two products, and the part of the result's gradient that belongs to ``c`` and the bias."""
    a, b, c, bias, sums = kept
    if options.activation is not None:
        (grad,) = jax.vjp(JAX_ACTIVATIONS[options.activation], sums)[1](grad)
    scaled, turned = grad.astype(a.dtype), (*range(a.ndim - 2), a.ndim - 1, a.ndim - 2)
    grad_a = matmul(scaled, b.transpose(turned), alpha=options.alpha, out_dtype=a.dtype)
    grad_b = matmul(a.transpose(turned), scaled, alpha=options.alpha, out_dtype=b.dtype)
    grad_c = None if c is None else (grad * options.beta).astype(c.dtype)
    grad_bias = None if bias is None else grad.sum(tuple(range(grad.ndim - 1))).astype(bias.dtype)
    return grad_a, grad_b, grad_c, grad_bias


product.defvjp(forward, backward)
