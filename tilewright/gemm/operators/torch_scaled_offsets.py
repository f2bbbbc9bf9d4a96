"""``torch.ops.tilewright.scaled_grouped_matmul``: products of groups of scaled operands as an operator of PyTorch,
which torch.compile keeps as one node. It has no gradient: its operands are rounded."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewright.gemm.arrays import check_types
from tilewright.gemm.operators.counted_groups import counted_rows
from tilewright.gemm.operators.offsets import cut_mode_and_shape
from tilewright.gemm.operators.scaled_offsets import cuts_columns_of_blocks, scaled_cut_product
from tilewright.gemm.operators.torch_operator import operator
from tilewright.gemm.operators.torch_results import need_no_gradient, result_dtype
from tilewright.lang.numbers.dtypes import numeric_of_dtype


@operator("scaled_grouped_matmul")
def operation(
    a: Tensor,
    b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    offsets: Tensor,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
    kernel: str | None = None,
    every: int = 0,
) -> Tensor:
    """(scale_a * a) @ (scale_b * b) for each group; ``every``: as ``cut_product`` has it."""
    result: Tensor = scaled_cut_product(a, b, scale_a, scale_b, offsets, None, out_dtype, use_fast_accum, kernel, every)
    return result


@operation.register_fake
def fake(
    a: Tensor,
    b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    offsets: Tensor,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
    kernel: str | None = None,
    every: int = 0,
) -> Tensor:
    check_types(numeric_of_dtype(a.dtype), numeric_of_dtype(b.dtype))
    _, shape = cut_mode_and_shape(tuple(a.shape), tuple(b.shape), tuple(offsets.shape))
    dtype = out_dtype or torch.bfloat16
    if cuts_columns_of_blocks(a, b, scale_a):
        return a.new_empty(shape[::-1], dtype=dtype).mT
    return a.new_empty(shape, dtype=dtype)


def recorded(
    a: Tensor,
    b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    offsets: Tensor,
    out: Tensor | None,
    out_dtype: Any,
    use_fast_accum: bool,
    kernel: str | None,
    every: int = 0,
) -> Tensor:
    """:func:`scaled_grouped_matmul` through the operator."""
    need_no_gradient("scaled_grouped_matmul", (scale_a, scale_b, out), "its scales")
    dtype = result_dtype(out_dtype, out)
    result: Tensor = torch.ops.tilewright.scaled_grouped_matmul(
        a, b, scale_a, scale_b, offsets, dtype, use_fast_accum, kernel, every
    )
    if out is None:
        return result
    return out.copy_(torch.where(counted_rows(offsets, every), result, out) if every else result)
