"""A mixture of experts with its gradient: grouped products, SwiGLU in an epilogue, a weighted sum for each token.

    python examples/experts.py [--gpu]

Needs PyTorch (`pip install torch`); with --gpu also the extra `cuda`.
"""

# %% [markdown]
# ## The idea
#
# A router gives each token to a few experts, each a layer with a gate: `silu(x @ gate) * (x @ up) @ down`. Sorted by
# expert, the rows of all tokens are groups one after the other, and one launch multiplies each group by its own weight.
# How many rows an expert has is known on the device alone; the host waits for nothing.
#
# The first product reads the rows of the tokens by index, and the gate is its epilogue: neither the sorted rows nor the
# numbers before the gate are read by a kernel of their own. `combine_rows` reads each row of the last product once, in
# a fixed order, so that a step of training gives the same bits each time.

# %%
from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import torch

from tilewright.gemm import combine_rows, grouped_matmul
from tilewright.gemm.epilogue.activations import Gated


class Routing(NamedTuple):
    """Where the rows of the experts come from: row r is token ``tokens[r]``; expert e has the rows before ``ends[e]``
    and after those of the experts before it; the rows of token t are ``places[t]``."""

    tokens: torch.Tensor  # (T * k,) of int32
    ends: torch.Tensor  # (E,) of int32
    places: torch.Tensor  # (T, k) of int32

    @classmethod
    def of(cls, chosen: torch.Tensor, experts: int) -> Routing:
        """Of the (T, k) experts ``chosen`` for each token."""
        each = chosen.shape[1]
        by_expert, order = chosen.reshape(-1).sort(stable=True)
        ends = torch.searchsorted(by_expert, torch.arange(experts, device=chosen.device), right=True)
        places = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=chosen.device))
        return cls((order // each).int(), ends.int(), places.int().view(chosen.shape))


# %% [markdown]
# ## Forward and gradient
#
# Gate and up columns of the first weight take turns, so that a thread holds both numbers of a pair. `Gated` writes the
# result of the gate beside the numbers that it was applied to, which the gradient needs; where none is wanted, they are
# not written. The gradients of the weights are grouped products, too: their groups are cut out of the sum.


# %%
class Experts(torch.autograd.Function):
    """(T, N) = what the experts of each token give it, weighted."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weights: torch.Tensor,
        first: torch.Tensor,
        second: torch.Tensor,
        tokens: torch.Tensor,
        ends: torch.Tensor,
        places: torch.Tensor,
    ) -> torch.Tensor:
        gated = x.new_empty(len(tokens), first.shape[2] // 2)
        both = grouped_matmul(x, first, ends, rows=tokens, epilogue=Gated("silu", gated))  # columns taking turns
        given = grouped_matmul(gated, second, ends)
        ctx.save_for_backward(x, weights, first, second, tokens, ends, places, both, gated, given)
        return combine_rows(given, places, weights)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (grad,) = grads
        x, weights, first, second, tokens, ends, places, both, gated, given = ctx.saved_tensors
        rows = x[tokens]
        at = places.long()
        of_rows = weights.new_empty(len(rows)).scatter_(0, at.view(-1), weights.view(-1))
        grad_given = (grad[tokens] * of_rows[:, None]).to(rows.dtype)
        grad_weights = (given[at].float() * grad[:, None].float()).sum(-1)
        grad_second = grouped_matmul(gated.mT, grad_given, ends)
        grad_gated = grouped_matmul(grad_given, second.mT, ends).float()
        gate, up = both.float().view(len(rows), -1, 2).unbind(-1)
        part = torch.sigmoid(gate)
        grad_gate, grad_up = grad_gated * up * part * (1 + gate * (1 - part)), grad_gated * gate * part
        grad_both = torch.stack((grad_gate, grad_up), -1).view(both.shape).to(rows.dtype)
        grad_first = grouped_matmul(rows.mT, grad_both, ends)
        grad_rows = grouped_matmul(grad_both, first.mT, ends)
        grad_x = combine_rows(grad_rows, places, torch.ones_like(weights))
        return grad_x, grad_weights, grad_first, grad_second, None, None, None


def mixture(
    x: torch.Tensor, router: torch.Tensor, first: torch.Tensor, second: torch.Tensor, each: int
) -> torch.Tensor:
    """A block of experts: ``x`` (T, D), ``router`` (D, E), ``first`` (E, D, 2 H), ``second`` (E, H, D); ``each``: the
    experts of a token."""
    weights, chosen = (x.float() @ router.float()).softmax(-1).topk(each)
    weights = weights / weights.sum(-1, keepdim=True)
    given = x, weights, first, second, *Routing.of(chosen, len(first))
    graded = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given[:4])
    return Experts.apply(*given) if graded else without_gradient(*given)


def without_gradient(
    x: torch.Tensor,
    weights: torch.Tensor,
    first: torch.Tensor,
    second: torch.Tensor,
    tokens: torch.Tensor,
    ends: torch.Tensor,
    places: torch.Tensor,
) -> torch.Tensor:
    gate = Gated("silu", x.new_empty(len(tokens), first.shape[2] // 2), store_preact=False)
    gated = grouped_matmul(x, first, ends, rows=tokens, epilogue=gate)
    return combine_rows(grouped_matmul(gated, second, ends), places, weights)


# %% [markdown]
# ## The same in float64, token by token


# %%
def in_float64(x: Any, router: Any, first: Any, second: Any, each: int) -> torch.Tensor:
    weights, chosen = (x @ router).softmax(-1).topk(each)
    weights = weights / weights.sum(-1, keepdim=True)
    result = []
    for token in range(len(x)):
        total = x.new_zeros(second.shape[2])
        for weight, expert in zip(weights[token], chosen[token].tolist(), strict=True):
            both = x[token] @ first[expert]
            total = total + weight * ((torch.nn.functional.silu(both[::2]) * both[1::2]) @ second[expert])
        result.append(total)
    return torch.stack(result)


SIZES = {"cuda": (512, 256, 384, 16, 4), "cpu": (48, 32, 24, 4, 2)}
"""Tokens, features, hidden features, experts, and the experts of a token."""


def main() -> None:
    device = "cuda" if "--gpu" in sys.argv[1:] else "cpu"
    tokens, features, hidden, experts, each = SIZES[device]
    torch.manual_seed(0)
    shapes = (tokens, features), (features, experts), (experts, features, 2 * hidden), (experts, hidden, features)
    drawn = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    drawn = [drawn[0], *(x / x.shape[-2] ** 0.5 for x in drawn[1:])]
    ours = [x.to(device, torch.float16).requires_grad_() for x in drawn]
    exact = [x.detach().cpu().double().requires_grad_() for x in ours]  # what the halves are
    result = mixture(ours[0], ours[1], ours[2], ours[3], each)
    wanted = in_float64(exact[0], exact[1], exact[2], exact[3], each)
    grad = torch.randn(tokens, features, dtype=torch.float64)
    result.backward(grad.to(device, torch.float16))
    wanted.backward(grad.half().double())
    report("forward", result, wanted)
    with torch.no_grad():
        report("forward alone", mixture(ours[0], ours[1], ours[2], ours[3], each), wanted)
    for name, one, other in zip(("x", "router", "first", "second"), ours, exact, strict=True):
        report(f"gradient of {name}", one.grad, other.grad)


def report(title: str, result: torch.Tensor, expected: torch.Tensor) -> None:
    """Print the largest relative error and raise when it is beyond rounding."""
    got, wanted = (x.detach().cpu().double().numpy() for x in (result, expected))
    scale = max(1.0, float(np.abs(wanted).max()))
    error = float(np.abs(got - wanted).max()) / scale
    print(f"{title}: largest error {error:.2e} of {scale:.3g}")
    if not error < 1e-2:
        raise SystemExit(f"{title}: wrong result")


if __name__ == "__main__":
    main()
