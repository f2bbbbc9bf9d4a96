"""``torch.ops.tilewright.sparse_matmul``: the product with a 2:4 sparse matrix as an operator of PyTorch, which
torch.compile keeps as one node. Its gradients are dense products: the transposed matrix is not 2:4 sparse along its
rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewright import Float32
from tilewright.atoms.sparsity import SPARSITY, chunk_of
from tilewright.errors import ArgumentError
from tilewright.gemm.epilogue.activations import ACTIVATIONS, check_activation
from tilewright.gemm.operators.epilogues import arrays_of
from tilewright.gemm.operators.matmul import matmul
from tilewright.gemm.operators.sparse import CompressedMatrix, sparse_entries, sparse_matmul
from tilewright.gemm.operators.torch_epilogues import applied_by_pytorch
from tilewright.gemm.operators.torch_operator import operator
from tilewright.gemm.operators.torch_results import need_no_gradient, result_dtype
from tilewright.lang.numbers.dtypes import numeric_of_dtype


@operator("sparse_matmul")
def operation(
    values: Tensor,
    metadata: Tensor,
    b: Tensor,
    bias: Tensor | None = None,
    activation: str | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """activation(a @ b + bias), for the two parts of a compressed a."""
    a = CompressedMatrix(values, metadata)
    result: Tensor = sparse_matmul(a, b, bias=bias, activation=activation, out_dtype=out_dtype)
    return result


@operation.register_fake
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


def save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    values, metadata, b, bias, activation, *_ = (*inputs, None, None)
    if activation is not None:
        raise ArgumentError("the operator has no gradient through an activation: apply it to the operator's result")
    ctx.save_for_backward(values, metadata, b)
    ctx.bias_dtype = None if bias is None else bias.dtype


def gradients(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """The gradients of the stored elements, of b and of the bias."""
    values, metadata, b = ctx.saved_tensors
    a = CompressedMatrix(values, metadata)
    scaled, (m, _) = grad.to(b.dtype), a.shape
    needed = (*ctx.needs_input_grad, False, False)
    of_values = of_b = of_bias = None
    if needed[0]:
        whole = matmul(scaled, b.mT).view(m, -1, chunk_of(8 * values.element_size()))
        of_values = whole.gather(2, a.places()).view(values.shape)
    if needed[2]:
        of_b = matmul(a.to_dense().mT, scaled)
    if needed[3]:
        of_bias = grad.sum(0).to(ctx.bias_dtype)
    return (of_values, None, of_b, of_bias, None, None)[: len(ctx.needs_input_grad)]


operation.register_autograd(gradients, setup_context=save)


def recorded(
    a: CompressedMatrix,
    b: Tensor,
    out: Tensor | None,
    c: Tensor | None,
    scales: tuple[float, float],
    bias: Tensor | None,
    activation: str | None,
    out_dtype: Any,
    functions: tuple[Any, ...],
) -> Tensor:
    """:func:`sparse_matmul` through the operator. Where a gradient is required the activation is PyTorch's, as are
    alpha and beta (``scales``), c and the epilogue wherever they are given."""
    tensors = a.values, b, bias, out, c, *arrays_of(functions)
    graded = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)
    if graded and a.values.element_size() == 1:
        need_no_gradient("sparse_matmul of 8-bit elements", tensors)
    if (graded or functions) and out is not None:
        raise ArgumentError("PyTorch records this call for gradients, and cannot with out: call it without out")
    alpha, beta = scales
    plain = (alpha, beta) == (1.0, 0.0)
    dtype, fused = result_dtype(out_dtype, out), activation if plain and not graded else None
    if not plain and not a.values.is_floating_point():
        raise ArgumentError("alpha, beta and c of integers cannot be given where PyTorch records the call")
    if dtype is None and c is not None:  # as outside of PyTorch's records
        dtype = c.dtype
    elif dtype is None and not plain:
        dtype = torch.float16 if a.values.element_size() == 1 else a.values.dtype
    result: Tensor = torch.ops.tilewright.sparse_matmul(
        a.values, a.metadata, b, bias if plain else None, fused, dtype if plain else torch.float32
    )
    if not plain:
        result = combined(result, c, alpha, beta, bias).to(dtype)
    if activation is not None and fused is None:
        check_activation(activation, Float32)
        result = ACTIVATIONS[activation].of_torch(torch.nn.functional, result)
    result = applied_by_pytorch(functions, result)
    return result if out is None else out.copy_(result)


def combined(product: Tensor, c: Tensor | None, alpha: float, beta: float, bias: Tensor | None) -> Tensor:
    """alpha * product + beta * c + bias, of products in float32; ArgumentError for a c of another shape."""
    if beta and c is None:
        raise ArgumentError(f"beta = {beta} needs a matrix c")
    if c is not None and c.shape != product.shape:
        raise ArgumentError(f"c must have the shape of the result, {tuple(product.shape)}, not {tuple(c.shape)}")
    result = alpha * product if alpha else torch.zeros_like(product)  # 0 * NaN is NaN; BLAS ignores the product
    result = result + beta * c.float() if beta and c is not None else result
    return result if bias is None else result + bias.float()
