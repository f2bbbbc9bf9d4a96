"""Liger-Kernel's kernels in the CuTe DSL against PyTorch in double precision: one line a form."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as functional
import without_triton  # noqa: F401  # before what imports Triton
from liger_kernel.ops.cutedsl import ops
from liger_kernel.ops.cutedsl.ops.fused_linear_cross_entropy_sm90 import liger_fused_linear_cross_entropy_sm90

import tilewright.sim


def backend(module: str, function: str) -> Callable[..., Any]:
    return getattr(importlib.import_module(f"liger_kernel.ops.backends._cutedsl.{module}"), function)


def draw(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def near(found: torch.Tensor, wanted: torch.Tensor, tolerance: float = 2e-2) -> bool:
    return bool((found.double() - wanted).abs().max() <= tolerance * max(1.0, float(wanted.abs().max())))


def both_ways(form: Callable[..., Any], wanted: Callable[..., Any], *given: torch.Tensor, by: float = 2e-2) -> bool:
    """Whether ``form`` and its gradients are what ``wanted`` gives in double precision."""
    found = [x.clone().requires_grad_() for x in given]
    exact = [x.detach().double().requires_grad_() for x in given]
    y, z = form(*found), wanted(*exact)
    weight = torch.rand_like(y)
    y.backward(weight)
    z.backward(weight.double())
    return near(y.detach(), z.detach(), by) and all(near(a.grad, b.grad, by) for a, b in zip(found, exact, strict=True))


def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight


def rms_norm(rows: int = 6, n: int = 256, dtype: torch.dtype = torch.bfloat16, mode: str = "llama") -> bool:
    def form(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return ops.LigerRMSNormFunction.apply(x, weight, 1e-6, 0.0, mode, False)

    return both_ways(form, norm, draw(rows, n, dtype=dtype), draw(n, dtype=dtype), by=4e-2)


def fused_add() -> bool:
    x, residual, weight = draw(6, 256), draw(6, 256), draw(256)
    y, total = backend("fused_add_rms_norm", "fused_add_rms_norm_cutedsl")(x, residual, weight, 1e-6)
    wanted = (x + residual).double()
    return near(total, wanted) and near(y, norm(wanted, weight.double()), 4e-2)


def cross_entropy(rows: int = 8, n: int = 512, dtype: torch.dtype = torch.bfloat16) -> bool:
    target = torch.randint(0, n, (rows,), device="cuda")
    return both_ways(
        lambda x: ops.LigerCrossEntropyFunction.apply(x * 1, target, None)[0],
        lambda x: functional.cross_entropy(x, target),
        draw(rows, n, dtype=dtype),
    )


def jsd() -> bool:
    other = torch.log_softmax(draw(8, 256, dtype=torch.float32), -1)

    def wanted(x: torch.Tensor) -> torch.Tensor:
        middle = torch.log((x.exp() + other.double().exp()) / 2)
        parts = (functional.kl_div(middle, y, log_target=True, reduction="sum") for y in (other.double(), x))
        return sum(parts) / 16

    given = torch.log_softmax(draw(8, 256, dtype=torch.float32), -1)
    return both_ways(lambda x: backend("jsd", "jsd_cutedsl")(x, other), wanted, given, by=1e-3)


def of_two(module: str, gate: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    form = backend(module, f"{module}_cutedsl")
    return both_ways(form, lambda a, b: gate(a) * b, draw(8, 256), draw(8, 256))


def linear_cross_entropy(scaled: bool = False, check: str = "all") -> bool:
    x, weight, target = draw(128, 128) / 4, draw(256, 128) / 4, torch.randint(0, 256, (128,), device="cuda")

    def form(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        if not scaled:
            return liger_fused_linear_cross_entropy_sm90(x, weight, target)
        found = ops.LigerFusedScaledCrossEntropySM90Function.apply(x, weight, target, 1.5)
        return found[0] if isinstance(found, tuple) else found

    def wanted(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        logits = x @ weight.T / (1.5 if scaled else 1.0)
        return functional.cross_entropy(logits, target, reduction="none" if scaled else "mean")

    with tilewright.sim.options(check=check):
        return both_ways(form, wanted, x, weight)


def rope() -> bool:
    q, k = draw(1, 4, 8, 64), draw(1, 2, 8, 64)
    angles = torch.outer(torch.arange(8.0), 1e4 ** (-torch.arange(0, 64, 2) / 64)).repeat(1, 2)
    cos, sin = (f(angles)[None].to("cuda", torch.bfloat16) for f in (torch.cos, torch.sin))

    def turned(x: torch.Tensor) -> torch.Tensor:
        other = torch.cat([-x[..., 32:], x[..., :32]], -1)
        return x.double() * cos[:, None].double() + other.double() * sin[:, None].double()

    found = ops.LigerRopeFunction.apply(q.clone(), k.clone(), cos, sin)
    return all(near(a, turned(x)) for a, x in zip(found, (q, k), strict=True))


FORMS: dict[str, Callable[[], bool]] = {
    "RMS norm": rms_norm,
    "RMS norm, as Gemma": lambda: rms_norm(mode="gemma"),
    "RMS norm, fp16, 3 rows of 1000": lambda: rms_norm(3, 1000, torch.float16),
    "RMS norm of a sum": fused_add,
    "layer norm": lambda: both_ways(
        lambda x, w, b: backend("layer_norm", "layer_norm_cutedsl")(x, w, b, 1e-6),
        lambda x, w, b: functional.layer_norm(x, (256,), w, b, 1e-6),
        draw(6, 256),
        draw(256),
        draw(256),
        by=4e-2,
    ),
    "softmax": lambda: both_ways(
        backend("softmax", "softmax_cutedsl"), lambda x: torch.softmax(x, -1), draw(6, 512, dtype=torch.float32)
    ),
    "cross-entropy": cross_entropy,
    "cross-entropy, fp32, 3 rows of 1000": lambda: cross_entropy(3, 1000, torch.float32),
    "Jensen-Shannon divergence": jsd,
    "SwiGLU": lambda: of_two("swiglu", functional.silu),
    "GeGLU": lambda: of_two("geglu", lambda a: functional.gelu(a, approximate="tanh")),
    "linear cross-entropy": linear_cross_entropy,
    "scaled linear cross-entropy": lambda: linear_cross_entropy(True),
    "scaled linear cross-entropy, -divergence,-exits": lambda: linear_cross_entropy(True, "all,-divergence,-exits"),
    "rotary embedding": rope,
}

torch.manual_seed(0)
for name, form in FORMS.items():
    try:
        print(f"{name}: {'right' if form() else 'WRONG'}", flush=True)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:160]}", flush=True)
