"""Kernels of other people's libraries at real sizes on a GPU, beside PyTorch.

Norms, in CUDA graphs, are a share of a copy's rate; attention stands beside ``scaled_dot_product_attention``.

    python -m tilewright run bench/library_speed.py [--costs]

One line of JSON a figure; ``--costs``: only the first calls, and how long a call holds the host. bench/libraries.py
starts it with each set of wheels.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

ROUNDS = 5
ATTENTION = (4, 8192, 16, 128)
"""Batches, rows, heads, depth."""
BACK_ENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}


def us(function: Callable[[], Any], calls: int = 20) -> float:
    """Microseconds a call, the median of some rounds."""
    function()
    found = []
    for _ in range(ROUNDS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(calls):
            function()
        end.record()
        end.synchronize()
        found.append(start.elapsed_time(end) * 1e3 / calls)
    return sorted(found)[ROUNDS // 2]


def graph_us(function: Callable[[], Any], calls: int = 20) -> float:
    """Microseconds a call without the host: the calls of a CUDA graph."""
    function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            function()
    return us(graph.replay, 1) / calls


def host_us(function: Callable[[], Any], calls: int = 50) -> float:
    """Microseconds for which a call holds the host, which waits for nothing: the wrappers, and the launch."""
    found = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            function()
        found.append((time.perf_counter() - start) * 1e6 / calls)
    return sorted(found)[ROUNDS // 2]


def first_call(function: Callable[[], Any]) -> float:
    """Seconds of the first call: what a user waits for staging and compilation."""
    start = time.perf_counter()
    function()
    torch.cuda.synchronize()
    return round(time.perf_counter() - start, 2)


def rows(m: int, n: int) -> None:
    """Norms, softmax and cross-entropy beside a copy of the same bytes."""
    from quack.cross_entropy import cross_entropy
    from quack.rmsnorm import rmsnorm
    from quack.softmax import softmax

    x, weight = torch.randn(m, n, device="cuda", dtype=torch.bfloat16), torch.randn(n, device="cuda")
    target, y = torch.randint(0, n, (m,), device="cuda"), torch.empty_like(x)
    copy = graph_us(lambda: y.copy_(x))
    size = x.numel() * x.element_size()
    # The bytes that each kernel moves, against those of the copy.
    forms = {
        "rmsnorm": (lambda: rmsnorm(x, weight), 2),
        "softmax": (lambda: softmax(x), 2),
        "cross-entropy": (lambda: cross_entropy(x, target, reduction="none"), 1),
    }
    for name, (function, passes) in forms.items():
        compile_s = first_call(function)
        time_us = graph_us(function)
        rate, copied = passes * size / time_us, 2 * size / copy
        line(
            name,
            shape=[m, n],
            us=time_us,
            tb_s=rate * 1e-6,
            of_copy=rate / copied,
            eager_us=us(function),
            first_call_s=compile_s,
        )


def costs() -> None:
    """What the libraries' own wrappers cost at sizes where a kernel takes a few microseconds, beside PyTorch."""
    from quack.cross_entropy import cross_entropy
    from quack.gemm_interface import gemm
    from quack.rmsnorm import rmsnorm
    from quack.softmax import softmax

    target = torch.randint(0, 1024, (256,), device="cuda")
    x, weight = torch.randn(256, 1024, device="cuda", dtype=torch.bfloat16), torch.randn(1024, device="cuda")
    a, b = (torch.randn(256, 256, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    forms = {
        "rmsnorm": lambda: rmsnorm(x, weight),
        "softmax": lambda: softmax(x),
        "cross-entropy": lambda: cross_entropy(x, target, reduction="none"),
        "gemm": lambda: gemm(a, b, tuned=False),
        "torch.softmax": lambda: torch.softmax(x, -1),
        "torch.mm": lambda: torch.mm(a, b),
    }
    for name, function in forms.items():
        try:
            compile_s = first_call(function)
            line(f"host, {name}", host_us=host_us(function), first_call_s=compile_s)
        except Exception as error:
            line(f"host, {name}", error=f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")


def attention(causal: bool) -> None:
    """Forward and backward beside PyTorch's back ends, in TFLOP/s."""
    from flash_attn.cute.interface import flash_attn_func

    batches, n, heads, depth = ATTENTION
    q, k, v = (torch.randn(ATTENTION, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    weight = torch.randn(ATTENTION, device="cuda", dtype=torch.bfloat16)
    flops = 4 * batches * heads * n * n * depth / (2 if causal else 1)

    def theirs() -> torch.Tensor:
        turned = (x.transpose(1, 2) for x in (q, k, v))
        return scaled_dot_product_attention(*turned, is_causal=causal).transpose(1, 2)

    def library() -> torch.Tensor:
        return flash_attn_func(q, k, v, causal=causal)[0]

    sides: dict[str, tuple[Callable[[], torch.Tensor], Any]] = {name: (theirs, how) for name, how in BACK_ENDS.items()}
    sides["FlashAttention 4"] = (library, SDPBackend.MATH)
    for name, (function, back_end) in sides.items():
        try:
            with sdpa_kernel(back_end):
                compile_s = first_call(function)
                with torch.no_grad():
                    forward = us(function, 5)
                line(
                    name,
                    causal=causal,
                    what="forward",
                    us=forward,
                    tflops=flops / forward * 1e-6,
                    first_call_s=compile_s,
                )
                out = function()
                again = lambda out=out: torch.autograd.grad(out, (q, k, v), weight, retain_graph=True)  # noqa: E731  # one expression
                compile_s = first_call(again)
                backward = us(again, 5)
                line(
                    name,
                    causal=causal,
                    what="backward",
                    us=backward,
                    tflops=2.5 * flops / backward * 1e-6,
                    first_call_s=compile_s,
                )
        except Exception as error:
            line(name, causal=causal, error=f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")


def line(name: str, **found: Any) -> None:
    print(
        json.dumps({"name": name, **{k: round(v, 3) if isinstance(v, float) else v for k, v in found.items()}}),
        flush=True,
    )


def main() -> None:
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}), flush=True)
    costs()
    if "--costs" in sys.argv:
        return
    for m, n in ((32768, 1024), (32768, 4096), (16384, 8192), (8192, 16384)):
        try:
            rows(m, n)
        except Exception as error:
            line("rows", shape=[m, n], error=f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    try:
        import flash_attn.cute  # noqa: F401  # only whether it is there
    except ImportError:
        return
    for causal in (False, True):
        attention(causal)


main()
