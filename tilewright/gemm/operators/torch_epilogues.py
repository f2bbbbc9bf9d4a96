"""The functions of an epilogue by PyTorch, where it records a call: their gradients are then PyTorch's, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tilewright.errors import ArgumentError
from tilewright.gemm.epilogue.activations import ACTIVATIONS, Activation, ActivationGradient, Gated
from tilewright.gemm.epilogue.bias_gradient import BiasGradient
from tilewright.gemm.epilogue.dropout import Dropout, keeps
from tilewright.gemm.epilogue.functions import Bias, Relu, Residual, RowBias, Store
from tilewright.gemm.epilogue.permute import Permuted
from tilewright.gemm.epilogue.scales import Amax, PerRowLinComb, Scales
from tilewright.gemm.epilogue.scatter import ScatterAdd


def gated(part: Gated, y: Tensor) -> Tensor:
    gate, up = y.unflatten(-1, (-1, 2)).unbind(-1)
    part.matrix.copy_(ACTIVATIONS[part.name].of_torch(functional, gate) * up)
    return y


def check_target(part: Any, x: Tensor, fits: bool, wanted: str) -> None:
    """ArgumentError for an array that a function adds to, and that does not fit or is not of float32."""
    if not fits or x.dtype is not torch.float32:
        raise ArgumentError(
            f"{type(part).__name__}: {wanted} of Float32 is wanted, not an array of {x.dtype} and shape "
            f"{tuple(x.shape)}"
        )


def scattered(part: ScatterAdd, y: Tensor) -> Tensor:
    fits = part.matrix.ndim == 2 and part.matrix.shape[1] == y.shape[-1]
    check_target(part, part.matrix, fits, f"a matrix with {y.shape[-1]} columns")
    inside = (part.rows >= 0) & (part.rows < len(part.matrix))
    added = torch.where(inside, part.scales, 0)[:, None] * y.float()
    part.matrix.index_add_(0, torch.where(inside, part.rows, 0).long(), added)
    return y


def dropped(part: Dropout, y: Tensor) -> Tensor:
    rows, columns = (torch.arange(x, device=y.device) for x in (y.numel() // max(1, y.shape[-1]), y.shape[-1]))
    seed, offset = (getattr(x, "value", x) for x in (part.seed, part.offset))
    kept = keeps(rows[:, None], columns, seed, offset, part.p)
    return torch.where(kept.reshape(y.shape), y * (1 / (1 - part.p)), 0)


def permuted(part: Permuted, y: Tensor) -> Tensor:
    modes = len(part.order)
    whole = [part.matrix.shape[part.order.index(mode)] for mode in range(modes)]
    part.matrix.copy_(y.reshape(whole).permute(part.order))
    return y


def stored(part: Store, y: Tensor) -> Tensor:
    part.matrix.copy_(y)
    return y


def derived(part: ActivationGradient, y: Tensor) -> Tensor:
    name, at = part.name, part.matrix.detach().to(torch.promote_types(y.dtype, torch.float32))
    _, pull = torch.func.vjp(lambda x: ACTIVATIONS[name].of_torch(functional, x), at)
    return y * pull(torch.ones_like(at))[0]


def of_rows(part: PerRowLinComb, y: Tensor) -> Tensor:
    if part.beta is not None or not isinstance(part.alpha, Tensor):
        raise ArgumentError("epilogue: PyTorch records this call, and PerRowLinComb with beta is not one of its own")
    return y * part.alpha.reshape(-1, 1)


def columns_added(part: BiasGradient, y: Tensor) -> Tensor:
    check_target(part, part.vector, part.vector.shape == y.shape[-1:], f"a vector of {y.shape[-1]} numbers")
    part.vector.add_(y.detach().float().sum(tuple(range(y.ndim - 1))))
    return y


def raised(part: Amax, y: Tensor) -> Tensor:
    check_target(part, part.amax, part.amax.numel() == 1, "one number")
    if y.numel():
        part.amax.copy_(torch.maximum(part.amax, y.detach().abs().amax().to(part.amax.dtype)))
    return y


RULES: dict[type, Callable[[Any, Tensor], Tensor]] = {
    Activation: lambda part, y: ACTIVATIONS[part.name].of_torch(functional, y),
    ActivationGradient: derived,
    Amax: raised,
    BiasGradient: columns_added,
    Bias: lambda part, y: y + part.vector,
    Dropout: dropped,
    Gated: gated,
    PerRowLinComb: of_rows,
    Permuted: permuted,
    Relu: lambda part, y: functional.relu(y),
    Residual: lambda part, y: y + part.matrix * part.scale.value,
    RowBias: lambda part, y: y + part.vector[:, None],
    Scales: lambda part, y: y * part.a.reshape(-1, 1) * part.b.reshape(-1),
    ScatterAdd: scattered,
    Store: stored,
}
"""The result of a function applied to rows of sums ``y``; matrices that it writes are written in place."""


def applied_by_pytorch(functions: tuple[Any, ...], result: Tensor) -> Tensor:
    """``result`` after the functions, of its type. ArgumentError for one that PyTorch does not know."""
    y = result
    for part in functions:
        rule = RULES.get(type(part))
        if rule is None:
            choices = ", ".join(kind.__name__ for kind in RULES)
            raise ArgumentError(
                f"epilogue: {type(part).__name__} has no gradient, and PyTorch records this call (for gradients, by "
                "torch.compile, or for tensors of another class): call it under torch.no_grad(), outside of "
                f"torch.compile, or take functions of {choices}"
            )
        check_arrays(part, result)
        y = rule(part, y)
    return y.to(result.dtype)


def check_arrays(part: Any, result: Tensor) -> None:
    """ArgumentError for arrays of a function that do not fit the result, and that PyTorch would broadcast."""
    rows, n, name = tuple(result.shape[:-1]), result.shape[-1], type(part).__name__
    listed = [(x, (n,) if mode else rows) for x, mode in getattr(part, "vectors", ())]
    for matrix, _, *columns in getattr(part, "matrices", ()):
        each = columns[0] if columns else 1
        if n % each:
            raise ArgumentError(f"{name}: {n} columns of D are not whole groups of {each}")
        listed.append((matrix, (*rows, n // each)))
    for x, shape in listed:
        if tuple(x.shape) != shape or x.device != result.device:
            raise ArgumentError(
                f"{name}: an array of shape {shape} on {result.device} is wanted, not one of shape {tuple(x.shape)} on "
                f"{x.device}"
            )
