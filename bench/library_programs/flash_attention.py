"""FlashAttention 4's kernels for Hopper against PyTorch in single precision: one line a form."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
import without_triton  # noqa: F401  # before what imports Triton
from flash_attn.cute.interface import flash_attn_func, flash_attn_varlen_func

import tilewright.sim


def draw(*shape: int, dtype: torch.dtype = torch.float16, grad: bool = False) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=grad)


def reference(q, k, v, causal=False, window=None, softcap=0.0, sink=None):
    """In single precision. ``window``: how many columns to the left and to the right of its own a row sees; ``sink``: a
    score for each head that takes weight and has no value."""
    group = q.shape[2] // k.shape[2]
    q, k, v = (x.float().transpose(1, 2) for x in (q, k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)))
    scores = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    rows, columns = (torch.arange(n, device=scores.device) for n in scores.shape[2:])
    apart = columns - rows[:, None] - (len(columns) - len(rows))
    if causal:
        scores = scores.masked_fill(apart > 0, float("-inf"))
    elif window is not None:
        scores = scores.masked_fill((apart < -window[0]) | (apart > window[1]), float("-inf"))
    if sink is not None:
        extra = sink.float()[None, :, None, None].expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, extra], -1)
    return (torch.softmax(scores, -1)[..., : v.shape[2]] @ v).transpose(1, 2)


def forward(
    rows=128, heads=2, shared=1, depth=64, causal=False, dtype=torch.float16, columns=None, values=None, **options
) -> bool:
    """``values``: the depth of V, that of K by default."""
    q, k, v = (
        draw(1, n, h, d, dtype=dtype)
        for n, h, d in (
            (rows, heads, depth),
            (columns or rows, heads // shared, depth),
            (columns or rows, heads // shared, values or depth),
        )
    )
    out, *_ = flash_attn_func(q, k, v, causal=causal, **options)
    window, softcap = options.get("window_size"), options.get("softcap", 0.0)
    wanted = reference(q, k, v, causal, window, softcap, options.get("learnable_sink"))
    return bool((out.float() - wanted).abs().max() < 5e-3)


def pages(size: int, table: list[int], used: int) -> bool:
    """The last 8 rows of a sequence of ``used`` columns, whose K and V lie in pages of ``size`` columns."""
    q = draw(1, 8, 4, 128, dtype=torch.bfloat16)
    k, v = (draw(len(table) + 2, size, 2, 128, dtype=torch.bfloat16) for _ in range(2))
    given, count = (torch.tensor(x, dtype=torch.int32, device="cuda") for x in ([table], [used]))
    out, *_ = flash_attn_varlen_func(q, k, v, page_table=given, seqused_k=count, causal=True)
    k, v = (x[given[0].long()].reshape(1, -1, 2, 128)[:, :used] for x in (k, v))
    return bool((out.float() - reference(q, k, v, True)).abs().max() < 1e-2)


def lengths(heads=2, shared=1, causal=False, train=False) -> bool:
    """Rows of 100, 80 and 3, one after another."""
    ends = torch.tensor([0, 100, 180, 183], dtype=torch.int32, device="cuda")
    given = [draw(183, n, 64, grad=train) for n in (heads, heads // shared, heads // shared)]
    exact = [x.detach().float().requires_grad_(train) for x in given]
    out, *_ = flash_attn_varlen_func(
        *given, cu_seqlens_q=ends, cu_seqlens_k=ends, max_seqlen_q=100, max_seqlen_k=100, causal=causal
    )
    parts = [reference(*(x[None, a:b] for x in exact), causal)[0] for a, b in ((0, 100), (100, 180), (180, 183))]
    wanted = torch.cat(parts)
    right = bool((out.float() - wanted).abs().max() < 5e-3)
    if train:
        weight = torch.randn_like(out)
        out.backward(weight)
        wanted.backward(weight.float())
        right &= all(bool((x.grad.float() - y.grad).abs().max() < 2e-2) for x, y in zip(given, exact, strict=True))
    return right


def backward(rows=128, heads=2, shared=1, depth=64, causal=False, dtype=torch.float16, values=None, **options) -> bool:
    given = [
        draw(1, rows, n, d, dtype=dtype, grad=True)
        for n, d in ((heads, depth), (heads // shared, depth), (heads // shared, values or depth))
    ]
    exact = [x.detach().float().requires_grad_() for x in given]
    out, *_ = flash_attn_func(*given, causal=causal, **options)
    weight = torch.randn_like(out)
    out.backward(weight)
    reference(*exact, causal).backward(weight.float())
    return all(bool((x.grad.float() - y.grad).abs().max() < 2e-2) for x, y in zip(given, exact, strict=True))


def without(checks: str, form: Callable[[], bool]) -> bool:
    """``form`` without some checks: with tiles of fewer rows than threads, the step before the backward reads beyond
    its tile (bounds); of P in shared memory each warp waits for its own rows only (races, proxies)."""
    with tilewright.sim.options(check=checks if checks.startswith("default") else f"all,{checks}"):
        return form()


FORMS: dict[str, Callable[[], bool]] = {
    "forward": forward,
    "forward, causal": lambda: forward(causal=True),
    "forward, causal, grouped heads": lambda: forward(heads=4, shared=2, causal=True),
    "forward, bf16, 320 rows of 128": lambda: forward(320, 1, depth=128, dtype=torch.bfloat16),
    "forward, 40 rows, 200 columns": lambda: forward(40, columns=200),
    "forward, a window": lambda: forward(200, window_size=(20, 10)),
    "forward, softcap": lambda: forward(softcap=5.0),
    "forward, a sink for each head": lambda: forward(
        learnable_sink=draw(2, dtype=torch.bfloat16), dtype=torch.bfloat16
    ),
    "forward, packed heads": lambda: forward(40, 8, 4, 128, causal=True, columns=200, pack_gqa=True),
    "forward, depth 192 and 128, causal": lambda: forward(256, depth=192, values=128, causal=True),
    "forward, pages of 128": lambda: pages(128, [2, 0], 200),
    "forward, pages of 16, -proxies": lambda: without("-proxies", lambda: pages(16, [2, 0, 1, 3], 50)),
    "forward, depth 96": lambda: forward(depth=96),
    "forward, depth 96, -races,-proxies": lambda: without("-races,-proxies", lambda: forward(depth=96)),
    "forward, lengths": lengths,
    "forward, lengths, causal, grouped heads": lambda: lengths(4, 2, causal=True),
    "backward": backward,
    "backward, causal": lambda: backward(causal=True),
    "backward, causal, grouped heads": lambda: backward(heads=4, shared=2, causal=True),
    "backward, deterministic, causal, -bounds": lambda: without(
        "-bounds", lambda: backward(256, causal=True, deterministic=True)
    ),
    "backward, depth 192 and 128, -bounds": lambda: without("-bounds", lambda: backward(depth=192, values=128)),
    "backward, lengths": lambda: lengths(train=True),
    "backward, lengths, causal, grouped heads": lambda: lengths(4, 2, causal=True, train=True),
    "backward, bf16, 200 rows of 128": lambda: backward(200, 1, depth=128, dtype=torch.bfloat16),
    "backward, bf16, 200 rows of 128, -bounds": lambda: without(
        "-bounds", lambda: backward(200, 2, 2, depth=128, causal=True, dtype=torch.bfloat16)
    ),
} | {
    f"{way.__name__}, depth {depth}": functools.partial(way, depth=depth)
    for depth in (32, 192, 256)
    for way in (forward, backward)
}


def run(forms: dict[str, Callable[[], bool]]) -> None:
    torch.manual_seed(0)
    for name, form in forms.items():
        try:
            print(f"{name}: {'right' if form() else 'WRONG'}", flush=True)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:160]}", flush=True)


if __name__ == "__main__":
    run(FORMS)
