"""``torch.ops.tilewright.complex_matmul``: the complex product as an operator of PyTorch, which torch.compile keeps as
one node; its gradients are complex products, too."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewright.errors import ArgumentError
from tilewright.gemm.operators.complex import ComplexTransform, check, complex_matmul
from tilewright.gemm.operators.torch_operator import operator

TURNED = {one.value: other.value for one, other in zip(ComplexTransform, reversed(ComplexTransform), strict=True)}


@operator("complex_matmul")
def operation(a: Tensor, b: Tensor, transform_a: str, transform_b: str, math: str, precision: str) -> Tensor:
    """transform_a(a) @ transform_b(b)."""
    how: dict[str, Any] = {"transform_a": transform_a, "transform_b": transform_b, "math": math}
    result: Tensor = complex_matmul(a, b, precision=precision, **how)
    return result


@operation.register_fake
def fake(a: Tensor, b: Tensor, transform_a: str, transform_b: str, math: str, precision: str) -> Tensor:
    return a.new_empty(check({"a": a, "b": b}, False))


def save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, *ctx.how = inputs
    ctx.save_for_backward(a, b)


def gradients(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """The gradients of d = f(a) @ g(b): grad @ g(b)^H for f(a), f(a)^H @ grad for g(b), conjugated if f or g
    conjugates."""
    a, b = ctx.saved_tensors
    of_a, of_b, math, precision = ctx.how
    grad_a = grad_b = None
    product = torch.ops.tilewright.complex_matmul
    if ctx.needs_input_grad[0]:
        grad_a = reduced(product(grad, b.mT, "none", TURNED[of_b], math, precision), a, of_a)
    if ctx.needs_input_grad[1]:
        grad_b = reduced(product(a.mT, grad, TURNED[of_a], "none", math, precision), b, of_b)
    return grad_a, grad_b, None, None, None, None


def reduced(grad: Tensor, operand: Tensor, transform: str) -> Tensor:
    """The gradient of an operand that was broadcast and transformed."""
    grad = grad.sum_to_size(operand.shape)
    return grad.conj() if transform == ComplexTransform.kConjugate.value else grad


operation.register_autograd(gradients, setup_context=save)


def recorded(
    a: Tensor, b: Tensor, out: Tensor | None, c: Tensor | None, alpha: complex, beta: complex, *how: str
) -> Tensor:
    """:func:`complex_matmul` through the operator; alpha and beta are PyTorch's."""
    if out is not None and torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in (a, b, c, out)):
        raise ArgumentError("PyTorch records this call for gradients, and cannot with out: call it without out")
    result: Tensor = torch.ops.tilewright.complex_matmul(a, b, *how)
    result = result if alpha == 1 else alpha * result
    result = result if c is None or beta == 0 else result + beta * c
    return result if out is None else out.copy_(result)
