"""The gradients of a product's operands: two more products, launched together where they were launched before.

The plain way is :func:`wanted_products` and a call of ``matmul`` for each. What these launch depends on the geometry of
the incoming gradient and of both operands alone. So where both products are kept by ``matmul`` and read the memory of
these three tensors, their launches are kept by one key: views of transposes, a look-up for each product and its checks
are two fifths of the host time of a backward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tilewright.gemm.host.plan import simulated_gpu
from tilewright.gemm.operators.launches import Launches
from tilewright.gemm.operators.matmul import REMEMBERED, matmul, multiplied, remembered_product
from tilewright.gemm.operators.repeated import geometry
from tilewright.gemm.operators.torch_memory import new_tensors
from tilewright.gemm.operators.torch_operator import is_eager
from tilewright.gemm.tuning import store

Pair = tuple[Tensor | None, Tensor | None]


class WantedProduct(NamedTuple):
    """alpha * left @ right, transposed or not, and added up to ``shape``: the gradient of operand ``number``."""

    number: int
    left: Tensor
    right: Tensor
    operands: tuple[int, int]
    """Whose memory ``left`` and ``right`` are: 0 is the incoming gradient, 1 is A, 2 is B."""
    transposed: bool
    dtype: torch.dtype
    shape: torch.Size


class KeptGradient(NamedTuple):
    """The launches that give the gradient of operand ``number``, whose memory they read, and what makes its own."""

    number: int
    launches: Launches
    operands: tuple[int, int]
    make: Callable[[], Tensor]


KEPT: dict[Any, list[KeptGradient]] = {}
"""Gradients of operands that are repeated, by geometry."""
store.when_kept(KEPT.clear)


def operand_gradients(grad: Tensor, a: Tensor, b: Tensor, alpha: float, wants_a: bool, wants_b: bool) -> Pair:
    """The gradients of ``a`` and ``b`` in alpha * a @ b, where they are wanted."""
    eager = not torch.is_grad_enabled() and not torch._C._is_any_autocast_enabled() and is_eager(grad, a, b)
    key: Any = None
    if eager:
        try:
            machine = simulated_gpu() if a.is_cpu else None
            key = geometry(grad), geometry(a), geometry(b), alpha, wants_a, wants_b, machine
        except RuntimeError:  # no strides: a product of it is an error
            key = None
        kept = KEPT.get(key)
        if kept is not None:
            pair = launched(kept, grad, a, b)
            if pair is not None:
                return pair
    gradients: list[Tensor | None] = [None, None]
    keep: list[KeptGradient] | None = None if key is None else []
    for needed in wanted_products(grad, a, b, wants_a, wants_b):
        result = product(needed, alpha, eager)
        if keep is not None:
            gradient = kept_gradient(needed, result, alpha, (grad, a, b))
            keep = None if gradient is None else [*keep, gradient]
        gradients[needed.number] = summed(result, needed.shape)
    if keep is not None:
        if len(KEPT) >= REMEMBERED:
            KEPT.clear()
        KEPT[key] = keep
    return gradients[0], gradients[1]


def wanted_products(grad: Tensor, a: Tensor, b: Tensor, wants_a: bool, wants_b: bool) -> list[WantedProduct]:
    """The products of the incoming gradient that give those of the operands."""
    grad = grad if grad.dtype == a.dtype else grad.to(a.dtype)
    products = []
    if wants_a:
        products.append(WantedProduct(0, grad, b.mT, (0, 2), False, a.dtype, a.shape))
    if wants_b:
        left, right = a, grad
        if b.ndim == 2 and a.ndim > 2:  # one product over all rows, not a stack of products to be added up
            left, right = a.reshape(-1, a.shape[-1]), grad.reshape(-1, grad.shape[-1])
        if b.stride(-2) == 1:  # the gradient of a transposed weight, laid out as the weight is: optimizers want it so
            products.append(WantedProduct(1, right.mT, left, (0, 1), True, b.dtype, b.shape))
        else:
            products.append(WantedProduct(1, left.mT, right, (1, 0), False, b.dtype, b.shape))
    return products


def product(needed: WantedProduct, alpha: float, eager: bool) -> Tensor:
    """The product, itself recorded where a gradient's gradient is wanted."""
    a, b = needed.left, needed.right
    if eager:
        result: Tensor = multiplied(a, b, None, None, None, options(needed, alpha))
    else:
        result = matmul(a, b, alpha=alpha, out_dtype=needed.dtype)
    return result.mT if needed.transposed else result


def options(needed: WantedProduct, alpha: float) -> tuple[Any, ...]:
    """Those of :func:`matmul`, from alpha to decomposition."""
    return alpha, 0.0, None, needed.dtype, "ieee", None, "auto"


def summed(x: Tensor, shape: torch.Size) -> Tensor:
    """``x`` added up over what was broadcast; of most gradients that is nothing, which PyTorch takes 0.5 us to see."""
    return x if x.shape == shape else x.sum_to_size(shape)


# -- the short way -----------------------------------------------------------------------------------------------------


def kept_gradient(
    needed: WantedProduct, result: Tensor, alpha: float, tensors: tuple[Tensor, Tensor, Tensor]
) -> KeptGradient | None:
    """What ``result`` was launched by, for other tensors of the geometry; None where it is added up, where an operand
    was copied, and where ``matmul`` does not keep the launch, or not for good."""
    repeated = remembered_product(needed.left, needed.right, options(needed, alpha))
    if repeated is None or repeated.until is not None or result.shape != needed.shape:
        return None
    for x, number in zip((needed.left, needed.right), needed.operands, strict=True):
        if x.data_ptr() != tensors[number].data_ptr():
            return None
    make = new_tensors(result.shape, result.stride(), result.dtype, result.device)
    return KeptGradient(needed.number, repeated.prepared, needed.operands, make)


def launched(kept: list[KeptGradient], grad: Tensor, a: Tensor, b: Tensor) -> Pair | None:
    """The gradients by kept launches; None for a tensor without memory. Results are new memory, so nothing that is
    written overlaps with an operand."""
    addresses = grad.data_ptr(), a.data_ptr(), b.data_ptr()
    if 0 in addresses:
        return None
    gradients: list[Tensor | None] = [None, None]
    for number, launches, (left, right), make in kept:
        result = gradients[number] = make()
        at = result.data_ptr()
        launches.launch((addresses[left], addresses[right], at, at))
    return gradients[0], gradients[1]
