"""quack's GEMMs for Hopper, each form against PyTorch in double precision: one line a form."""

from __future__ import annotations

from collections.abc import Callable

import torch
import without_triton  # noqa: F401  # before what imports Triton
from quack.gemm import gemm
from quack.gemm_act import gemm_act
from quack.gemm_symmetric import gemm_symmetric


def draw(*shape: int) -> torch.Tensor:
    return torch.randint(-2, 3, shape, device="cuda").half()


def product(m=256, n=256, k=128, tile=(128, 128), cluster=(1, 1), batch=1, with_c=False, bias=False, **how) -> bool:
    a, b, d = draw(batch, m, k), draw(batch, n, k), draw(batch, m, n)
    c = draw(batch, m, n) if with_c else None
    row = draw(batch, n).float() if bias else None
    gemm(a, b, d, c, None, *tile, *cluster, rowvec_bias=row, **how)
    expected = torch.einsum("lmk,lnk->lmn", a.double(), b.double())
    expected = expected + (0 if c is None else c.double()) + (0 if row is None else row[:, None].double())
    return torch.equal(d.double(), expected)


def activation(name: str) -> bool:
    gated = name == "swiglu"
    a, b = draw(1, 128, 64), draw(1, 256 if gated else 128, 64)
    expected = torch.einsum("lmk,lnk->lmn", a.double(), b.double())
    d, after = torch.zeros_like(expected).half(), torch.zeros(1, 128, 128, device="cuda").half()
    gemm_act(a, b, d, None, after, None, name, 128, 256 if gated else 128, 1, 1)
    gate, up = expected[..., ::2], expected[..., 1::2]
    wanted = torch.nn.functional.silu(gate) * up if gated else expected.clamp(min=0)
    return torch.equal(d.double(), expected) and bool(
        ((after.double() - wanted).abs() <= 1e-2 * wanted.abs().max()).all()
    )


def symmetric() -> bool:
    a, d = draw(1, 256, 64), torch.zeros(1, 256, 256, device="cuda").half()
    gemm_symmetric(a, a, d, None, None, 128, 128, 1, 1)
    return torch.equal(d.double(), torch.einsum("lmk,lnk->lmn", a.double(), a.double()))


FORMS: dict[str, Callable[[], bool]] = {
    "GEMM": product,
    "GEMM, ragged": lambda: product(200, 136, 72),
    "GEMM, three batches": lambda: product(128, 128, batch=3),
    "GEMM, not persistent": lambda: product(persistent=False),
    "GEMM with C": lambda: product(128, 128, with_c=True),
    "GEMM with a bias": lambda: product(128, 128, bias=True),
    "GEMM, ping-pong": lambda: product(tile=(64, 128), pingpong=True),
    "GEMM, cluster (2, 1)": lambda: product(cluster=(2, 1)),
    "GEMM with relu": lambda: activation("relu"),
    "GEMM with swiglu": lambda: activation("swiglu"),
    "symmetric GEMM": symmetric,
}

for name, form in FORMS.items():
    try:
        print(f"{name}: {'right' if form() else 'WRONG'}", flush=True)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:160]}", flush=True)
