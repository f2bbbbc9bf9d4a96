"""FlashAttention 4's kernels for Hopper against PyTorch in single precision: one line a form."""

from __future__ import annotations

from collections.abc import Callable

import torch
import without_triton  # noqa: F401  # before what imports Triton
from flash_attn.cute.interface import flash_attn_func, flash_attn_varlen_func

import tilewright.sim


def draw(*shape: int, dtype: torch.dtype = torch.float16, grad: bool = False) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=grad)


def reference(q, k, v, causal=False):
    group = q.shape[2] // k.shape[2]
    given = (x.float().transpose(1, 2) for x in (q, k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)))
    return torch.nn.functional.scaled_dot_product_attention(*given, is_causal=causal).transpose(1, 2)


def forward(rows=128, heads=2, shared=1, depth=64, causal=False, dtype=torch.float16) -> bool:
    q = draw(1, rows, heads, depth, dtype=dtype)
    k, v = (draw(1, rows, heads // shared, depth, dtype=dtype) for _ in range(2))
    out, *_ = flash_attn_func(q, k, v, causal=causal)
    return bool((out.float() - reference(q, k, v, causal)).abs().max() < 5e-3)


def lengths() -> bool:
    ends = torch.tensor([0, 100, 180], dtype=torch.int32, device="cuda")
    q, k, v = (draw(180, 2, 64) for _ in range(3))
    out, *_ = flash_attn_varlen_func(
        q, k, v, cu_seqlens_q=ends, cu_seqlens_k=ends, max_seqlen_q=100, max_seqlen_k=100
    )  # fmt: skip
    parts = [reference(*(x[None, a:b] for x in (q, k, v)))[0] for a, b in ((0, 100), (100, 180))]
    return bool((out.float() - torch.cat(parts)).abs().max() < 5e-3)


def backward(rows=128, heads=2, shared=1, depth=64, causal=False, dtype=torch.float16) -> bool:
    given = [draw(1, rows, n, depth, dtype=dtype, grad=True) for n in (heads, heads // shared, heads // shared)]
    exact = [x.detach().float().requires_grad_() for x in given]
    out, *_ = flash_attn_func(*given, causal=causal)
    weight = torch.randn_like(out)
    out.backward(weight)
    reference(*exact, causal).backward(weight.float())
    return all(bool((x.grad.float() - y.grad).abs().max() < 2e-2) for x, y in zip(given, exact, strict=True))


def without_bounds(form: Callable[[], bool]) -> bool:
    """With tiles of fewer rows than threads, the step before the backward reads beyond its tile."""
    with tilewright.sim.options(check="all,-bounds"):
        return form()


FORMS: dict[str, Callable[[], bool]] = {
    "forward": forward,
    "forward, causal": lambda: forward(causal=True),
    "forward, causal, grouped heads": lambda: forward(heads=4, shared=2, causal=True),
    "forward, bf16, 320 rows of 128": lambda: forward(320, 1, depth=128, dtype=torch.bfloat16),
    "forward, lengths": lengths,
    "backward": backward,
    "backward, causal": lambda: backward(causal=True),
    "backward, causal, grouped heads": lambda: backward(heads=4, shared=2, causal=True),
    "backward, bf16, 200 rows of 128": lambda: backward(200, 1, depth=128, dtype=torch.bfloat16),
    "backward, bf16, 200 rows of 128, -bounds": lambda: without_bounds(
        lambda: backward(200, 2, 2, depth=128, causal=True, dtype=torch.bfloat16)
    ),
}

torch.manual_seed(0)
for name, form in FORMS.items():
    try:
        print(f"{name}: {'right' if form() else 'WRONG'}", flush=True)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:160]}", flush=True)
