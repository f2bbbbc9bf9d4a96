"""``torch.ops.tilewright.scaled_matmul``: the product of scaled 8-bit numbers as an operator of PyTorch, which
torch.compile keeps as one node. It has no gradient: its operands are rounded.

``scaled_matmul_amax`` is the same with ``amax``, which it writes: an operator that writes an argument cannot be
reordered or called again by torch.compile, so the product without it is an operator that writes none."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import check_types
from tilewright.gemm.operators.scaled import scaled_matmul
from tilewright.gemm.operators.torch_operator import Operator
from tilewright.gemm.operators.torch_results import need_no_gradient, result_dtype
from tilewright.lang.numbers.dtypes import numeric_of_dtype

ARGUMENTS = (
    "Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, Tensor? bias=None, str? activation=None, "
    "ScalarType? out_dtype=None, bool use_fast_accum=False, str? kernel=None, Tensor? scale_result=None, "
    "bool saturate=True"
)
"""The parameters of both operators, as in PyTorch's schemas."""


def multiplied(
    amax: Tensor | None,
    a: Tensor,
    b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    activation: str | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
    kernel: str | None = None,
    scale_result: Tensor | None = None,
    saturate: bool = True,
) -> Tensor:
    """activation((scale_a * a) @ (scale_b * b) + bias)."""
    result: Tensor = scaled_matmul(
        a,
        b,
        scale_a,
        scale_b,
        bias,
        activation=activation,
        out_dtype=out_dtype,
        use_fast_accum=use_fast_accum,
        kernel=kernel,
        scale_result=scale_result,
        amax=amax,
        saturate=saturate,
    )
    return result


def below_gradients(*given: Any) -> Tensor:
    with torch.no_grad():
        return multiplied(*given)


operation = Operator("scaled_matmul", partial(multiplied, None), f"({ARGUMENTS}) -> Tensor")
operator_amax = torch.library.custom_op(
    "tilewright::scaled_matmul_amax",
    below_gradients,
    mutates_args=("amax",),
    schema=f"(Tensor(a!) amax, {ARGUMENTS}) -> Tensor",
)


@operation.register_fake
def fake(
    a: Tensor,
    b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    activation: str | None = None,
    out_dtype: torch.dtype | None = None,
    *rest: Any,
) -> Tensor:
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ArgumentError(f"scaled_matmul multiplies two matrices, not {tuple(a.shape)} and {tuple(b.shape)}")
    check_types(numeric_of_dtype(a.dtype), numeric_of_dtype(b.dtype))
    return a.new_empty((a.shape[0], b.shape[1]), dtype=out_dtype or torch.bfloat16)


@operator_amax.register_fake
def fake_amax(amax: Tensor, *arguments: Any) -> Tensor:
    return fake(*arguments)


def recorded(
    a: Tensor,
    b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None,
    out: Tensor | None,
    activation: str | None,
    out_dtype: Any,
    use_fast_accum: bool,
    kernel: str | None,
    scale_result: Tensor | None = None,
    amax: Tensor | None = None,
    saturate: bool = True,
) -> Tensor:
    """:func:`scaled_matmul` through the operator."""
    need_no_gradient("scaled_matmul", (scale_a, scale_b, bias, out, scale_result, amax), "scales and bias")
    dtype = result_dtype(out_dtype, out)
    arguments = a, b, scale_a, scale_b, bias, activation, dtype, use_fast_accum, kernel, scale_result, saturate
    operators = torch.ops.tilewright
    result: Tensor = (
        operators.scaled_matmul(*arguments) if amax is None else operators.scaled_matmul_amax(amax, *arguments)
    )
    return result if out is None else out.copy_(result)
