"""``torch.ops.tilewright.combine_rows``: weighted sums of rows as an operator of PyTorch, with gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewright.errors import ArgumentError
from tilewright.gemm.operators.combine import combine_rows
from tilewright.gemm.operators.torch_operator import operator


@operator("combine_rows")
def operation(source: Tensor, places: Tensor, weights: Tensor) -> Tensor:
    """Row t: the sum of weights[t, i] * source[places[t, i]]."""
    result: Tensor = combine_rows(source, places, weights)
    return result


@operation.register_fake
def fake(source: Tensor, places: Tensor, weights: Tensor) -> Tensor:
    if places.shape != weights.shape:
        raise ArgumentError(f"places has the shape {tuple(places.shape)}, weights {tuple(weights.shape)}")
    return source.new_empty((places.shape[0], source.shape[1]))


def save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def gradients(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """A row of the source gets the gradient of its token times its weight; a weight, the product of both rows."""
    source, places, weights = ctx.saved_tensors
    rows = source.shape[0]
    inside = (places >= 0) & (places < rows)
    at = places.clamp(0, max(rows - 1, 0)).long()
    grad_source = grad_weights = None
    if ctx.needs_input_grad[0]:
        of_rows = torch.where(inside, weights, 0)[..., None] * grad[:, None, :].float()
        grad_source = source.new_zeros(source.shape, dtype=torch.float32).index_add_(
            0, at.reshape(-1), of_rows.reshape(-1, source.shape[1])
        )
        grad_source = grad_source.to(source.dtype)
    if ctx.needs_input_grad[2]:
        products = (source[at].float() * grad[:, None, :].float()).sum(-1)
        grad_weights = torch.where(inside, products, 0)
    return grad_source, None, grad_weights


operation.register_autograd(gradients, setup_context=save)


def recorded(source: Tensor, places: Tensor, weights: Tensor, out: Tensor | None) -> Tensor:
    """:func:`combine_rows` through the operator."""
    if out is not None and torch.is_grad_enabled() and any(x.requires_grad for x in (source, weights, out)):
        raise ArgumentError("PyTorch records this call for gradients, and cannot with out: call it without out")
    result: Tensor = torch.ops.tilewright.combine_rows(source, places, weights)
    return result if out is None else out.copy_(result)
