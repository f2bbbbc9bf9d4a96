"""fast-trimul's triangle multiplication (tensor-core GEMMs, norms, gates) against PyTorch: one line a form."""

from __future__ import annotations

import torch
from fast_trimul import FastTriangleMultiplication
from torch.nn import functional


def exact(z: torch.Tensor, w: dict[str, torch.Tensor], mode: str, residual: bool) -> torch.Tensor:
    """The update of the pair representation ``z [1, n, n, d]``, in double precision."""

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return functional.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"])

    def linear(x: torch.Tensor, name: str) -> torch.Tensor:
        return functional.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    x = norm(z, "norm_in")
    a, b = (linear(x, f"proj_{side}") * torch.sigmoid(linear(x, f"gate_{side}")) for side in "ab")
    pair = "bikc,bjkc->bijc" if mode == "outgoing" else "bkic,bkjc->bijc"
    out = torch.sigmoid(linear(x, "proj_g")) * linear(norm(torch.einsum(pair, a, b), "norm_out"), "proj_out")
    return z + out if residual else out


def form(mode: str, residual: bool = True, n: int = 32, depth: int = 64, train: bool = False) -> bool:
    module = FastTriangleMultiplication(depth, depth, mode=mode, residual=residual).cuda()
    weights = {name: p.detach().cpu().double() for name, p in module._impl.named_parameters()}
    z = torch.randn(1, n, n, depth, device="cuda", dtype=torch.float16, requires_grad=train)
    with torch.set_grad_enabled(train):
        out = module(z)
    given = z.detach().cpu().double().requires_grad_(train)
    wanted = exact(given, weights, mode, residual)
    right = bool((out.detach().cpu().double() - wanted.detach()).abs().max() < 2e-2)
    if train:
        out.sum().backward()
        wanted.sum().backward()
        right &= bool((z.grad.cpu().double() - given.grad).abs().max() < 5e-2 * (1 + given.grad.abs().max()))
    return right


FORMS = {
    "outgoing": lambda: form("outgoing"),
    "incoming": lambda: form("incoming"),
    "outgoing, without the residual, depth 128": lambda: form("outgoing", residual=False, n=16, depth=128),
    "incoming, forward and backward": lambda: form("incoming", train=True),
}

torch.manual_seed(0)
for name, run in FORMS.items():
    try:
        print(f"{name}: {'right' if run() else 'WRONG'}", flush=True)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:160]}", flush=True)
