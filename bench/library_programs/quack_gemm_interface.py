"""quack's GEMMs as of 0.5, by the functions of ``quack.gemm_interface`` and its layers, each form against PyTorch in
double precision: one line a form."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
import without_triton  # noqa: F401  # before what imports Triton
from quack.gemm_interface import (
    gemm,
    gemm_act,
    gemm_add,
    gemm_add_inplace,
    gemm_dact,
    gemm_dgated,
    gemm_gated,
    gemm_symmetric,
)
from quack.linear import linear_func
from quack.linear_cross_entropy import chunked_linear_cross_entropy
from quack.mlp import mlp_func
from torch.nn import functional

import tilewright.sim

CHECKS = os.environ.get("TILEWRIGHT_SIM_CHECK", "all")


def draw(*shape: int) -> torch.Tensor:
    return torch.randint(-2, 3, shape, device="cuda").half()


def product(m: int = 256, n: int = 256, k: int = 128, batch: tuple[int, ...] = (), **how: object) -> bool:
    a, b = draw(*batch, m, k), draw(*batch, k, n)
    return torch.equal(gemm(a, b, tuned=False, **how).double(), a.double() @ b.double())


def with_c() -> bool:
    a, b, c = draw(128, 64), draw(64, 128), draw(128, 128)
    return torch.equal(gemm_add(a, b, c, tuned=False).double(), a.double() @ b.double() + c.double())


def with_bias() -> bool:
    a, b, bias = draw(128, 64), draw(64, 128), draw(128).float()
    return torch.equal(gemm(a, b, bias=bias, tuned=False).double(), a.double() @ b.double() + bias.double())


def with_relu() -> bool:
    a, b = draw(128, 64), draw(64, 128)
    before, after = gemm_act(a, b, activation="relu", tuned=False, store_preact=True)
    expected = a.double() @ b.double()
    return torch.equal(before.double(), expected) and torch.equal(after.double(), expected.clamp(min=0))


def symmetric() -> bool:
    a = draw(256, 64)
    return torch.equal(gemm_symmetric(a, a.mT).double(), a.double() @ a.double().T)


def near(got: torch.Tensor, wanted: torch.Tensor, bound: float = 2e-3) -> bool:
    return bool((got.double() - wanted).abs().max() <= bound * wanted.abs().max())


def added_in_place() -> bool:
    a, b, c = draw(128, 64), draw(64, 128), draw(128, 128)
    wanted = a.double() @ b.double() + c.double()
    gemm_add_inplace(a, b, c, tuned=False)
    return torch.equal(c.double(), wanted)


def lengths(along: str, gathered: bool = False) -> bool:
    """Two products of different lengths, one after another in the rows of A or in the sums."""
    ends = torch.tensor([0, 72, 200], dtype=torch.int32, device="cuda")
    parts = ((0, 72), (72, 200))
    if along == "k":
        a, b = draw(200, 128).t(), draw(200, 128)
        wanted = torch.stack([a[:, i:j].double() @ b[i:j].double() for i, j in parts])
        return torch.equal(gemm(a, b, cu_seqlens_k=ends, tuned=False).double(), wanted)
    a, b = draw(100 if gathered else 200, 64), draw(2, 64, 128)
    rows = torch.randint(0, 100, (200,), device="cuda", dtype=torch.int32) if gathered else None
    found = gemm(a, b, cu_seqlens_m=ends, A_idx=rows, tuned=False)
    given = (a if rows is None else a[rows.long()]).double()
    return torch.equal(found.double(), torch.cat([given[i:j] @ b[n].double() for n, (i, j) in enumerate(parts)]))


def gated(backward: bool = False) -> bool:
    a, b = draw(128, 64), draw(64, 128 if backward else 256)
    product = a.double() @ b.double()
    before = draw(128, 256) if backward else product
    gate, up = (before.double()[:, i::2].clone().requires_grad_() for i in range(2))
    wanted = functional.silu(gate) * up
    if not backward:
        found, after = gemm_gated(a, b, activation="swiglu", tuned=False)
        return torch.equal(found.double(), product) and near(after, wanted.detach())
    found, after, *_ = gemm_dgated(a, b, before, activation="swiglu", tuned=False)
    wanted.backward(product)
    return near(found, torch.stack([gate.grad, up.grad], -1).flatten(1)) and near(after, wanted.detach())


def gradient_of_relu() -> bool:
    a, b, before = draw(128, 64), draw(64, 128), draw(128, 128)
    found, after = gemm_dact(a, b, before, activation="relu", tuned=False)
    wanted = a.double() @ b.double() * (before > 0)
    return torch.equal(found.double(), wanted) and torch.equal(after, before.clamp(min=0))


def linear() -> bool:
    x, weight, dy = draw(128, 64).requires_grad_(), draw(128, 64).requires_grad_(), draw(128, 128)
    y = linear_func(x, weight, tuned=False)
    y.backward(dy)
    pairs = [
        (y, x.double() @ weight.double().T),
        (x.grad, dy.double() @ weight.double()),
        (weight.grad, dy.double().T @ x.double()),
    ]
    return all(torch.equal(got.double(), wanted) for got, wanted in pairs)


def mlp() -> bool:
    given = [(draw(*shape) / 8).requires_grad_() for shape in ((128, 64), (256, 64), (64, 128))]
    x, up, down = (t.detach().double().requires_grad_() for t in given)
    out = mlp_func(*given, activation="swiglu", tuned=False)
    hidden = x @ up.T
    wanted = (functional.silu(hidden[:, ::2]) * hidden[:, 1::2]) @ down.T
    weight = draw(*out.shape)
    out.backward(weight)
    wanted.backward(weight.double())
    return near(out.detach(), wanted.detach()) and all(
        near(a.grad, b.grad, 1e-2) for a, b in zip(given, (x, up, down), strict=True)
    )


def cross_entropy(check: str = CHECKS) -> bool:
    x, weight = ((draw(*shape) / 4).requires_grad_() for shape in ((128, 64), (256, 64)))
    target = torch.randint(0, 256, (128,), device="cuda")
    exact = [t.detach().double().requires_grad_() for t in (x, weight)]
    with tilewright.sim.options(check=check):
        loss = chunked_linear_cross_entropy(x, weight, target, chunk_size=64, tuned=False)
        loss.backward()
    wanted = functional.cross_entropy(exact[0] @ exact[1].T, target)
    wanted.backward()
    right = abs(float(loss.detach()) - float(wanted.detach())) < 1e-2
    return right and near(x.grad, exact[0].grad, 2e-2) and near(weight.grad, exact[1].grad, 2e-2)


def without(checks: str, form: Callable[[], bool]) -> bool:
    with tilewright.sim.options(check=f"{CHECKS},{checks}"):
        return form()


FORMS: dict[str, Callable[[], bool]] = {
    "GEMM, cluster (2, 1)": product,
    "GEMM, ragged": lambda: product(200, 136, 72),
    "GEMM, three batches": lambda: product(128, 128, 64, batch=(3,)),
    "GEMM with C": with_c,
    "GEMM with a bias": with_bias,
    "GEMM with relu": with_relu,
    "symmetric GEMM": symmetric,
    "GEMM, split k": lambda: product(128, 128, 512, split_k=2),
    "GEMM, dynamic scheduler": lambda: product(dynamic_scheduler=True),
    "GEMM, added in place": added_in_place,
    "GEMM, lengths along m": lambda: lengths("m"),
    "GEMM, lengths along m, gathered rows": lambda: lengths("m", gathered=True),
    "GEMM, lengths along m, gathered rows, -proxies": lambda: without("-proxies", lambda: lengths("m", gathered=True)),
    "GEMM, lengths along k": lambda: lengths("k"),
    "GEMM with swiglu": gated,
    "gradient of relu by a GEMM": gradient_of_relu,
    "gradient of swiglu by a GEMM": lambda: gated(backward=True),
    "linear layer, forward and backward": linear,
    "MLP, forward and backward": mlp,
    "linear cross-entropy, forward and backward": cross_entropy,
    "linear cross-entropy, forward and backward, -races": lambda: cross_entropy(f"{CHECKS},-races"),
}

for name, form in FORMS.items():
    try:
        print(f"{name}: {'right' if form() else 'WRONG'}", flush=True)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:160]}", flush=True)
