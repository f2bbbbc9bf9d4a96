"""``torch.ops.tilewright.mixed_matmul``: the product with a 4-bit weight as an operator of PyTorch, which torch.compile
keeps as one node. It has no gradient: its weight is rounded."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewright.errors import ArgumentError
from tilewright.gemm.operators.mixed import check_scale_of_rows, mixed_matmul
from tilewright.gemm.operators.prepare_weight import PreparedWeight
from tilewright.gemm.operators.torch_operator import operator
from tilewright.gemm.operators.torch_results import need_no_gradient, result_dtype


@operator("mixed_matmul")
def operation(
    a: Tensor,
    words: Tensor,
    scales: Tensor,
    bias: Tensor | None = None,
    activation: str | None = None,
    out_dtype: torch.dtype | None = None,
    zeros: Tensor | None = None,
    scale_a: Tensor | None = None,
) -> Tensor:
    """activation(scale_a * a @ weight.T + bias), for the words and scales of a prepared weight."""
    weight = PreparedWeight(words, scales, zeros)
    result: Tensor = mixed_matmul(a, weight, bias, scale_a=scale_a, activation=activation, out_dtype=out_dtype)
    return result


@operation.register_fake
def fake(
    a: Tensor,
    words: Tensor,
    scales: Tensor,
    bias: Tensor | None = None,
    activation: str | None = None,
    out_dtype: torch.dtype | None = None,
    zeros: Tensor | None = None,
    scale_a: Tensor | None = None,
) -> Tensor:
    n, k = PreparedWeight(words, scales, zeros).shape
    if a.shape[-1] != k:
        raise ArgumentError(f"a of shape {tuple(a.shape)} has not the {k} elements of K of the weight {(n, k)}")
    if scale_a is not None:
        check_scale_of_rows(tuple(scale_a.shape), tuple(a.shape[:-1]))
    return a.new_empty((*a.shape[:-1], n), dtype=out_dtype or (a.dtype if a.itemsize == 2 else torch.bfloat16))


def recorded(
    a: Tensor,
    weight: PreparedWeight,
    bias: Tensor | None,
    scale_a: Tensor | None,
    out: Tensor | None,
    activation: str | None,
    out_dtype: Any,
) -> Tensor:
    """:func:`mixed_matmul` through the operator."""
    need_no_gradient("mixed_matmul", (a, weight.scales, bias, scale_a, out))
    dtype = result_dtype(out_dtype, out)
    result: Tensor = torch.ops.tilewright.mixed_matmul(
        a, weight.words, weight.scales, bias, activation, dtype, weight.zeros, scale_a
    )
    return result if out is None else out.copy_(result)
