"""``torch.ops.tilewright.block_scaled_matmul``: products of floats with factors of blocks as an operator of PyTorch,
which torch.compile keeps as one node. It has no gradient: its operands are rounded."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewright.errors import ArgumentError
from tilewright.gemm.operators.block_scaled import block_scaled_matmul
from tilewright.gemm.operators.torch_operator import operator
from tilewright.gemm.operators.torch_results import need_no_gradient, result_dtype


@operator("block_scaled_matmul")
def operation(
    a: Tensor,
    b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    alpha: float = 1.0,
    activation: str | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """activation(alpha * (scale_a * a) @ (scale_b * b) + bias)."""
    result: Tensor = block_scaled_matmul(
        a, b, scale_a, scale_b, bias, alpha=alpha, activation=activation, out_dtype=out_dtype
    )
    return result


@operation.register_fake
def fake(
    a: Tensor,
    b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    alpha: float = 1.0,
    activation: str | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    same = a.ndim == b.ndim and a.ndim in (2, 3) and a.shape[-1] == b.shape[-2] and a.shape[:-2] == b.shape[:-2]
    if not same:
        raise ArgumentError(
            f"block_scaled_matmul multiplies matrices or stacks of them, not {tuple(a.shape)} and {tuple(b.shape)}"
        )
    return a.new_empty((*a.shape[:-1], b.shape[-1]), dtype=out_dtype or torch.bfloat16)


def recorded(
    a: Tensor,
    b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None,
    out: Tensor | None,
    alpha: float,
    activation: str | None,
    out_dtype: Any,
) -> Tensor:
    """:func:`block_scaled_matmul` through the operator."""
    need_no_gradient("block_scaled_matmul", (a, b, scale_a, scale_b, bias, out), "its operands and the bias")
    dtype = result_dtype(out_dtype, out)
    result: Tensor = torch.ops.tilewright.block_scaled_matmul(
        a, b, scale_a, scale_b, bias, float(alpha), activation, dtype
    )
    return result if out is None else out.copy_(result)
