"""Flash-Sparse-Attention's kernels for Hopper against PyTorch in single precision: one line a form.

The flag by which warps leave out a tile lies in the memory of V, which TMA overwrites: without the checks of races and
of proxies, but for the first form.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import without_triton  # noqa: F401  # before what imports Triton
from flash_sparse_attn.ops.cute.interface import flash_attn_func

import tilewright.sim


def attention(
    rows: int = 128,
    heads: int = 2,
    shared: int = 1,
    depth: int = 64,
    causal: bool = False,
    train: bool = False,
    check: str = "all,-races,-proxies",
) -> bool:
    given = [
        torch.randn(1, rows, n, depth, device="cuda", dtype=torch.bfloat16, requires_grad=train)
        for n in (heads, heads // shared, heads // shared)
    ]
    q, k, v = (x.float().transpose(1, 2) for x in given)
    k, v = (x.repeat_interleave(shared, 1) for x in (k, v))
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)
    with tilewright.sim.options(check=check):
        out = flash_attn_func(*given, is_causal=causal)
        out = out[0] if isinstance(out, tuple) else out
        if train:
            out.backward(torch.ones_like(out))
    return bool((out.float() - wanted).abs().max() < 2e-2)


FORMS: dict[str, Callable[[], bool]] = {
    "forward": lambda: attention(check="all"),
    "forward, -races,-proxies": attention,
    "forward, causal, -races,-proxies": lambda: attention(causal=True),
    "forward, causal, grouped heads, -races,-proxies": lambda: attention(heads=4, shared=2, causal=True),
    "forward, 320 rows of 128, -races,-proxies": lambda: attention(320, 1, depth=128),
    "backward, -races,-proxies": lambda: attention(train=True),
}

torch.manual_seed(0)
for name, form in FORMS.items():
    try:
        print(f"{name}: {'right' if form() else 'WRONG'}", flush=True)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:160]}", flush=True)
