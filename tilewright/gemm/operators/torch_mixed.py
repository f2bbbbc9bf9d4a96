"""``torch.ops.tilewright.mixed_matmul``: the product with a 4-bit weight as an operator of PyTorch, which torch.compile
keeps as one node. It has no gradient: its weight is rounded."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewright.errors import ArgumentError
from tilewright.gemm.operators.mixed import PreparedWeight, mixed_matmul
from tilewright.gemm.tuning.stand_in import numeric_class


@torch.library.custom_op("tilewright::mixed_matmul", mutates_args=())
def operator(
    a: Tensor,
    words: Tensor,
    scales: Tensor,
    bias: Tensor | None = None,
    activation: str | None = None,
    out_dtype: torch.dtype | None = None,
    zeros: Tensor | None = None,
    bits: int = 4,
    floats: bool = False,
) -> Tensor:
    """activation(a @ weight.T + bias), for the words and scales of a prepared weight."""
    with torch.no_grad():
        result: Tensor = mixed_matmul(
            a, PreparedWeight(words, scales, zeros, bits, floats), bias, activation=activation, out_dtype=out_dtype
        )
    return result


@operator.register_fake
def fake(
    a: Tensor,
    words: Tensor,
    scales: Tensor,
    bias: Tensor | None = None,
    activation: str | None = None,
    out_dtype: torch.dtype | None = None,
    zeros: Tensor | None = None,
    bits: int = 4,
    floats: bool = False,
) -> Tensor:
    n, k = PreparedWeight(words, scales, bits=bits).shape
    if a.shape[-1] != k:
        raise ArgumentError(f"a of shape {tuple(a.shape)} has not the {k} elements of K of the weight {(n, k)}")
    return a.new_empty((*a.shape[:-1], n), dtype=out_dtype or a.dtype)


def recorded(
    a: Tensor, weight: PreparedWeight, bias: Tensor | None, out: Tensor | None, activation: str | None, out_dtype: Any
) -> Tensor:
    """:func:`mixed_matmul` through the operator."""
    graded = (x for x in (a, weight.scales, bias, out) if x is not None)
    if torch.is_grad_enabled() and any(x.requires_grad for x in graded):
        raise ArgumentError("mixed_matmul has no gradient: call it under torch.no_grad(), or detach its operands")
    dtype = out_dtype
    if not (dtype is None or isinstance(dtype, torch.dtype)):  # a numeric class
        dtype = numeric_class(out_dtype).torch_dtype
    if out is not None and dtype is None:
        dtype = out.dtype
    result: Tensor = torch.ops.tilewright.mixed_matmul(
        a, weight.words, weight.scales, bias, activation, dtype, weight.zeros, weight.bits, weight.floats
    )
    return result if out is None else out.copy_(result)
