"""quack's norms, softmax, cross-entropy, top-k and rotary embedding against PyTorch's: one line a form."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.util import find_spec

import torch
import without_triton  # noqa: F401  # before what imports Triton

ROWS, N = 8, 256


def draw(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def agree(function: Callable, exact: Callable, *given: torch.Tensor, bound: float) -> bool:
    """Whether a function and its gradients agree with the same in single precision."""
    ours = [x.clone().requires_grad_(x.is_floating_point()) for x in given]
    theirs = [x.float().requires_grad_() if x.is_floating_point() else x for x in given]
    out, wanted = function(*ours), exact(*theirs)
    weight = torch.randn_like(out)
    out.backward(weight)
    wanted.backward(weight.float())
    pairs = [(out, wanted), *((x.grad, y.grad) for x, y in zip(ours, theirs, strict=True) if x.is_floating_point())]
    return all(bool((a.float() - b).abs().max() <= bound * (1 + b.abs().max())) for a, b in pairs)


def rmsnorm(rows: int = ROWS, n: int = N, dtype: torch.dtype = torch.float16) -> bool:
    from quack.rmsnorm import rmsnorm

    def exact(x, weight):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight

    return agree(rmsnorm, exact, draw(rows, n, dtype=dtype), draw(n, dtype=torch.float32), bound=1e-2)


def layernorm() -> bool:
    module = importlib.import_module("quack.rmsnorm")
    if not hasattr(module, "layernorm_fwd"):
        module = importlib.import_module("quack.layernorm")
    x, weight = draw(ROWS, N), draw(N, dtype=torch.float32)
    function = getattr(module, "layernorm_fwd", None) or module.layernorm
    out = function(x, weight)
    return bool((out.float() - torch.nn.functional.layer_norm(x.float(), (N,), weight)).abs().max() < 1e-2)


def softmax() -> bool:
    from quack.softmax import softmax

    return agree(softmax, lambda x: torch.softmax(x, -1), draw(ROWS, N), bound=2e-3)


def cross_entropy(rows: int = ROWS, n: int = N) -> bool:
    from quack.cross_entropy import cross_entropy

    target = torch.randint(0, n, (rows,), device="cuda")
    exact = torch.nn.functional.cross_entropy
    return agree(
        lambda x: cross_entropy(x, target, reduction="none"),
        lambda x: exact(x, target, reduction="none"),
        draw(rows, n),
        bound=5e-3,
    )


def topk(with_softmax: bool = False) -> bool:
    from quack.topk import topk

    x = draw(ROWS, N, dtype=torch.float32)
    values, indices = topk(x, 8, with_softmax)
    wanted, places = torch.topk(x, 8)
    wanted = torch.softmax(wanted, -1) if with_softmax else wanted
    # The kernel sorts values whose low bits hold their column.
    return torch.equal(indices.long(), places) and bool((values - wanted).abs().max() < 1e-3)


def rotary() -> bool:
    from quack.rotary import apply_rotary_emb

    x, angle = draw(1, 16, 2, 64), draw(16, 32, dtype=torch.float32)
    cos, sin = angle.cos(), angle.sin()
    a, b = x.float().chunk(2, -1)
    c, s = cos[None, :, None], sin[None, :, None]
    wanted = torch.cat((a * c - b * s, a * s + b * c), -1)
    return bool((apply_rotary_emb(x, cos.half(), sin.half()).float() - wanted).abs().max() < 1e-2)


FORMS: dict[str, Callable[[], bool]] = {
    "rmsnorm": rmsnorm,
    "rmsnorm, bf16, 3 rows of 1000": lambda: rmsnorm(3, 1000, torch.bfloat16),
    "layernorm": layernorm,
    "softmax": softmax,
    "cross-entropy": cross_entropy,
    "cross-entropy, 3 rows of 1000": lambda: cross_entropy(3, 1000),
    "top-k": topk,
    "top-k with softmax": lambda: topk(with_softmax=True),
    "rotary": rotary,
}

torch.manual_seed(0)
for name, form in FORMS.items():
    if name == "rotary" and find_spec("quack.rotary") is None:
        print("rotary: not in this version", flush=True)
        continue
    try:
        print(f"{name}: {'right' if form() else 'WRONG'}", flush=True)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:160]}", flush=True)
