"""SonicMoE's top-k router and the projections of its experts (GEMMs of quack's) against PyTorch: one line a form.

Its other kernels are Triton's, so that the functions beneath its layers are called. quack's GEMM with gathered rows
leaves out a fence, which the second run of that form passes over.
"""

from __future__ import annotations

from functools import partial

import torch
import without_triton  # noqa: F401  # the package imports Triton
from sonicmoe.functional import forward, topk
from torch.nn import functional

import tilewright

forward.gemm_gated, forward.gemm = (partial(f, tuned=False) for f in (forward.gemm_gated, forward.gemm))
topk.next_power_of_2 = lambda n: 1 << (n - 1).bit_length()  # Triton's, which stands for nothing here


def router(of_selected: bool, normed: bool, experts: int = 64, k: int = 4) -> bool:
    """The k greatest scores of 37 rows, and their softmax (``of_selected``) or their part of the softmax of all."""
    x = torch.randn(37, experts, device="cuda")
    values, indices = torch.empty(37, k, device="cuda"), torch.empty(37, k, device="cuda", dtype=torch.int32)
    forward._topk_fwd(x, k, values, indices, of_selected, normed)
    scores = x.cpu().double()
    wanted, places = (scores if of_selected else scores.softmax(-1)).topk(k, -1)
    if of_selected:
        wanted = wanted.softmax(-1)
    elif normed:
        wanted = wanted / wanted.sum(-1, keepdim=True)
    return bool((values.cpu().double() - wanted).abs().max() < 1e-5 and (indices.cpu() == places).all())


def projections(checks: str = "all", rows: int = 96, width: int = 128, inner: int = 64, experts: int = 3) -> bool:
    """SwiGLU of the rows that each expert gets, then the projection back."""
    x = torch.randn(rows, width, device="cuda", dtype=torch.bfloat16)
    w1, w2 = (
        torch.randn(experts, *shape, device="cuda", dtype=torch.bfloat16).permute(1, 2, 0) / 8
        for shape in ((2 * inner, width), (width, inner))
    )
    ends = [0, 40, 40, 130]
    offsets = torch.tensor(ends, device="cuda", dtype=torch.int32)
    gathered = torch.randint(0, rows, (ends[-1],), device="cuda", dtype=torch.int32)
    h, a, y = (torch.empty(ends[-1], n, device="cuda", dtype=torch.bfloat16) for n in (2 * inner, inner, width))
    with tilewright.sim.options(check=checks):
        forward._up_projection_forward(x, w1, h, a, None, offsets, gathered, "swiglu")
        forward._down_projection_forward(w2, a, y, None, offsets)
    right = True
    for e in range(experts):
        part = slice(ends[e], ends[e + 1])
        taken = x.cpu().double()[gathered.cpu().long()[part]]
        wide = taken @ w1.cpu().double()[:, :, e].T
        wanted = functional.silu(wide[:, ::2]) * wide[:, 1::2]
        back = a.cpu().double()[part] @ w2.cpu().double()[:, :, e].T
        for found, exact in ((h, wide), (a, wanted), (y, back)):
            difference = (found.cpu().double()[part] - exact).abs()
            right &= bool((difference <= 2e-2 * (1 + exact.abs())).all())
    return right


FORMS = {
    "top-k, softmax of the selected": lambda: router(True, False),
    "top-k of the softmax": lambda: router(False, False),
    "top-k of the softmax, 8 of 128, normed": lambda: router(False, True, 128, 8),
    "projections of experts": lambda: projections(),
    "projections of experts, -proxies": lambda: projections("all,-proxies"),
}

torch.manual_seed(0)
for name, run in FORMS.items():
    try:
        print(f"{name}: {'right' if run() else 'WRONG'}", flush=True)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:160]}", flush=True)
