"""Attention Gym's causal short convolution, whose kernels are in the CuTe DSL, against PyTorch: one line a form.

Its operators are registered for CUDA alone, so that what implements them is called, which is the same on both machines.
"""

from __future__ import annotations

import os
import tempfile

os.environ.setdefault("XDG_CACHE_HOME", tempfile.mkdtemp())  # it keeps what it compiled, which may be for a GPU

import torch
import without_triton  # noqa: F401  # the package imports Triton
from attn_gym.linear.short_conv import cute
from torch.nn import functional


def exact(x: torch.Tensor, weight: torch.Tensor, activation: str | None) -> torch.Tensor:
    """``x [batch, time, channels]`` with the ``weight [channels, width]`` of the rows before each."""
    channels, width = weight.shape
    padded = functional.pad(x.transpose(1, 2), (width - 1, 0))
    out = functional.conv1d(padded, weight[:, None], groups=channels).transpose(1, 2)
    return functional.silu(out) if activation else out


def form(
    activation: str | None = "silu",
    dtype: torch.dtype = torch.bfloat16,
    shape: tuple[int, int, int] = (2, 96, 256),
    train: bool = False,
) -> bool:
    x, weight, grad = (torch.randn(s, device="cuda", dtype=dtype) for s in (shape, (shape[2], 4), shape))
    a, b = (t.cpu().double().requires_grad_() for t in (x, weight))
    wanted = exact(a, b, activation)
    found = cute._cute_short_conv_fwd_cuda(x, weight, None, None, activation=activation)
    right = bool((found.cpu().double() - wanted).abs().max() < 1e-2 * wanted.abs().max())
    if train:
        wanted.backward(grad.cpu().double())
        for t, of in zip(
            cute._cute_short_conv_bwd_cuda(x, weight, grad, None, activation=activation), (a, b), strict=True
        ):
            right &= bool((t.cpu().double() - of.grad).abs().max() < 1e-2 * of.grad.abs().max())
    return right


FORMS = {
    "short convolution": lambda: form(None),
    "short convolution, SiLU": lambda: form(),
    "short convolution, SiLU, fp16, 3 x 77 rows of 128": lambda: form(dtype=torch.float16, shape=(3, 77, 128)),
    "short convolution, forward and backward": lambda: form(None, train=True),
    "short convolution, SiLU, forward and backward": lambda: form(train=True),
}

torch.manual_seed(0)
for name, run in FORMS.items():
    try:
        print(f"{name}: {'right' if run() else 'WRONG'}", flush=True)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:160]}", flush=True)
