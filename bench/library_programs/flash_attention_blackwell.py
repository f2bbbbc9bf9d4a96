"""FlashAttention 4's kernels for Blackwell against PyTorch in single precision, under the default checks: one line a
form. Run it with ``--cpu --arch sm_100a``."""

from __future__ import annotations

from collections.abc import Callable

import torch
from flash_attention import backward, draw, forward, lengths, pages, reference, run, without
from flash_attn.cute.interface import flash_attn_func

DEFAULT = "default,-exits"
"""The last bulk stores of the backward are not waited for before a block ends."""
BROAD = f"{DEFAULT},-bounds"
"""Besides, the step before it reads beyond its tile where the tile has fewer rows than the block has threads."""


def latent(rows: int, heads: int, causal: bool = False) -> bool:
    """Latent attention: every head multiplies 64 numbers of its own and 512 that all share, which are V, too."""
    q, k, v, of_v = (
        draw(1, n, h, d, dtype=torch.bfloat16)
        for n, h, d in ((rows, heads, 64), (128, 1, 64), (128, 1, 512), (rows, heads, 512))
    )
    out, *_ = flash_attn_func(q, k, v, qv=of_v, causal=causal)
    both, keys = torch.cat([q, of_v], -1), torch.cat([k, v], -1)
    return bool(
        (out.float() - reference(both, keys.repeat(1, 1, heads, 1), v.repeat(1, 1, heads, 1), causal)).abs().max()
        < 2e-2
    )


def of(checks: str, form: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: without(checks, form)


FORMS: dict[str, Callable[[], bool]] = {
    "forward": of("default", forward),
    "forward, causal": of("default", lambda: forward(causal=True)),
    "forward, depth 96": of("default", lambda: forward(depth=96)),
    "forward, bf16, 320 rows of 128": of("default", lambda: forward(320, 1, depth=128, dtype=torch.bfloat16)),
    "forward, 40 rows, 200 columns": of("default", lambda: forward(40, columns=200)),
    "forward, a window": of("default", lambda: forward(200, window_size=(20, 10))),
    "forward, lengths": of("default", lengths),
    "forward, a sink for each head": of(
        "default", lambda: forward(learnable_sink=draw(2, dtype=torch.bfloat16), dtype=torch.bfloat16)
    ),
    "forward, packed heads": of("default", lambda: forward(40, 8, 4, 128, causal=True, columns=200, pack_gqa=True)),
    "forward, split columns": of("default", lambda: forward(16, 4, depth=128, columns=512, num_splits=2)),
    "forward, one row, split columns": of(
        "default", lambda: forward(1, 8, 4, 128, columns=700, num_splits=3, dtype=torch.bfloat16)
    ),
    "forward, depth 192 and 128, causal": of("default", lambda: forward(256, depth=192, values=128, causal=True)),
    "forward, pages of 128": of("default", lambda: pages(128, [2, 0], 200)),
    "forward, pages of 16, -proxies": of("default,-proxies", lambda: pages(16, [2, 0, 1, 3], 50)),
    "latent attention, 128 heads, -divergence": of("default,-divergence", lambda: latent(8, 128)),
    "latent attention, 64 heads, causal, -divergence": of("default,-divergence", lambda: latent(4, 64, True)),
    "backward, -exits": of(DEFAULT, backward),
    "backward, causal, -exits": of(DEFAULT, lambda: backward(causal=True)),
    "backward, lengths, -exits": of(DEFAULT, lambda: lengths(train=True)),
    "backward, bf16, 256 rows of 128, pairs of blocks, -exits,-bounds": of(
        BROAD, lambda: backward(256, 1, depth=128, dtype=torch.bfloat16)
    ),
    "backward, bf16, 256 rows of 128, causal, -exits,-bounds": of(
        BROAD, lambda: backward(256, 2, 2, depth=128, causal=True, dtype=torch.bfloat16)
    ),
    "backward, deterministic, causal, -exits,-bounds": of(
        BROAD, lambda: backward(256, causal=True, deterministic=True)
    ),
    "backward, depth 192 and 128, -exits,-bounds": of(BROAD, lambda: backward(depth=192, values=128)),
    "backward, bf16, 128 rows of 256, -exits,-bounds,-divergence,-races": of(
        f"{BROAD},-divergence,-races", lambda: backward(128, 1, depth=256, dtype=torch.bfloat16)
    ),
}

if __name__ == "__main__":
    run(FORMS)
