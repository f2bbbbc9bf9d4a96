"""``torch.ops.tilewright.grouped_matmul``: products of groups as an operator of PyTorch, which torch.compile keeps as
one node; its gradients are two more of the forms of the same product."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import check_types
from tilewright.gemm.choice.registry import candidates
from tilewright.gemm.operators.counted_groups import counted_rows
from tilewright.gemm.operators.epilogues import arrays_of
from tilewright.gemm.operators.group_checks import check_rows_form
from tilewright.gemm.operators.offsets import cut_mode_and_shape, cut_product
from tilewright.gemm.operators.torch_epilogues import applied_by_pytorch
from tilewright.gemm.operators.torch_operator import operator
from tilewright.gemm.operators.torch_results import result_dtype
from tilewright.lang.numbers.dtypes import numeric_of_dtype


@operator("grouped_matmul")
def operation(
    a: Tensor,
    b: Tensor,
    offsets: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    kernel: str | None = None,
    rows: Tensor | None = None,
    every: int = 0,
) -> Tensor:
    """a @ b for each group, of the ``rows`` of a; ``every``: as :func:`cut_product` has it."""
    result: Tensor = cut_product(a, b, offsets, rows, None, out_dtype, kernel, every=every)
    return result


@operation.register_fake
def fake(
    a: Tensor,
    b: Tensor,
    offsets: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    kernel: str | None = None,
    rows: Tensor | None = None,
    every: int = 0,
) -> Tensor:
    check_types(numeric_of_dtype(a.dtype), numeric_of_dtype(b.dtype))
    if offsets is None and a.ndim == b.ndim == 3:
        shape: tuple[Any, ...] = (a.shape[0], a.shape[1], b.shape[2])
    else:
        seen = tuple(a.shape) if rows is None else (*rows.shape[:1], *a.shape[1:])
        shape = cut_mode_and_shape(seen, tuple(b.shape), None if offsets is None else tuple(offsets.shape))[1]
    dtype = candidates(numeric_of_dtype(a.dtype), kernel)[0].config.c.dtype.torch_dtype
    return a.new_empty(shape, dtype=out_dtype or dtype)


def save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, offsets, *more = inputs
    rows = more[2] if len(more) > 2 else None
    ctx.save_for_backward(a, b, offsets, rows)
    ctx.every = more[3] if len(more) > 3 else 0


def gradients(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """Rows of a have one gradient each, or the sum of those of all rows of the product that they are; the gradients of
    weights, which groups have their own of, are a stack."""
    a, b, offsets, rows = ctx.saved_tensors

    def product(left: Tensor, right: Tensor) -> Tensor:
        result: Tensor = cut_product(left, right, offsets, None, None, None, None, every=ctx.every)
        return result

    grad_a = grad_b = None
    scaled = grad.to(a.dtype)
    if ctx.needs_input_grad[0]:
        grad_a = product(scaled, b.mT)
        if rows is not None:
            inside, at = known_rows(rows, len(a))
            sums = a.new_zeros(a.shape, dtype=torch.float32)
            grad_a = sums.index_add_(0, at, torch.where(inside[:, None], grad_a, 0).float()).to(a.dtype)
    if ctx.needs_input_grad[1]:
        if rows is not None:
            inside, at = known_rows(rows, len(a))
            a = torch.where(inside[:, None], a[at], 0)
        if b.stride(-2) == 1:  # laid out as the weight is: optimizers want it so
            grad_b = product(scaled.mT, a).mT
        else:
            grad_b = product(a.mT, scaled)
    return (grad_a, grad_b, None, None, None, None, None)[: len(ctx.needs_input_grad)]


def known_rows(rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Which of the ``rows`` are rows of ``count``, and their numbers, 0 for others."""
    inside = (rows >= 0) & (rows < count)
    return inside, torch.where(inside, rows, 0).long()


operation.register_autograd(gradients, setup_context=save)


def recorded(
    a: Tensor,
    b: Tensor,
    offsets: Tensor | None,
    rows: Tensor | None,
    out: Tensor | None,
    out_dtype: Any,
    kernel: str | None,
    functions: tuple[Any, ...] = (),
    every: int = 0,
) -> Tensor:
    """:func:`grouped_matmul` through the operator, and the functions of its epilogue by PyTorch."""
    graded = torch.is_grad_enabled() and any(x.requires_grad for x in (a, b, *arrays_of(functions)))
    if out is not None and (graded or out.requires_grad and torch.is_grad_enabled()):
        raise ArgumentError("PyTorch records this call for gradients, and cannot with out: call it without out")
    dtype = result_dtype(out_dtype, out)
    result: Tensor = torch.ops.tilewright.grouped_matmul(a, b, offsets, dtype, kernel, rows, every)
    if functions:
        check_rows_form(functions, rows, a, b)
        result = applied_by_pytorch(functions, result)
    if out is None:
        return result
    return out.copy_(torch.where(counted_rows(offsets, every), result, out) if every else result)
