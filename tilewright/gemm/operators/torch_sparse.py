"""``torch.ops.tilewright.sparse_matmul``: the product with a 2:4 sparse matrix as an operator of PyTorch, which
torch.compile keeps as one node. It has no gradient: the transposed matrix is not 2:4 sparse along its rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewright.atoms.sparsity import SPARSITY
from tilewright.errors import ArgumentError
from tilewright.gemm.operators.sparse import CompressedMatrix, sparse_entries, sparse_matmul
from tilewright.gemm.operators.torch_results import need_no_gradient, result_dtype
from tilewright.lang.numbers.dtypes import numeric_of_dtype


@torch.library.custom_op("tilewright::sparse_matmul", mutates_args=())
def operator(
    values: Tensor,
    metadata: Tensor,
    b: Tensor,
    bias: Tensor | None = None,
    activation: str | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """activation(a @ b + bias), for the two parts of a compressed a."""
    with torch.no_grad():
        a = CompressedMatrix(values, metadata)
        result: Tensor = sparse_matmul(a, b, bias=bias, activation=activation, out_dtype=out_dtype)
    return result


@operator.register_fake
def fake(
    values: Tensor,
    metadata: Tensor,
    b: Tensor,
    bias: Tensor | None = None,
    activation: str | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    if b.ndim != 2 or b.shape[0] != SPARSITY * values.shape[1]:
        whole = values.shape[0], SPARSITY * values.shape[1]
        raise ArgumentError(f"inner dimensions differ: a is a sparse {whole} matrix, b has the shape {tuple(b.shape)}")
    entry = sparse_entries(numeric_of_dtype(values.dtype), None)[0]
    return values.new_empty((values.shape[0], b.shape[1]), dtype=out_dtype or entry.config.c.dtype.torch_dtype)


def recorded(
    a: CompressedMatrix, b: Tensor, out: Tensor | None, bias: Tensor | None, activation: str | None, out_dtype: Any
) -> Tensor:
    """:func:`sparse_matmul` through the operator."""
    need_no_gradient("sparse_matmul", (a.values, b, bias, out))
    dtype = result_dtype(out_dtype, out)
    result: Tensor = torch.ops.tilewright.sparse_matmul(a.values, a.metadata, b, bias, activation, dtype)
    return result if out is None else out.copy_(result)
