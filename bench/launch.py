"""Host time of one launch of a compiled kernel with three torch tensors, and of a product, beside torch's own.

    python bench/launch.py [--write DIR]

Launches are enqueued back to back into an idle stream in bursts shorter than the driver's queue; the time is the host's
alone.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from figures import gpu_model, table, write_results

from tilewright import cute
from tilewright.gemm import matmul

BURST = 200


@cute.kernel
def add_one_block(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    c[tidx] = a[tidx] + b[tidx]


@cute.jit
def launch_add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    add_one_block(a, b, c).launch(grid=(1, 1, 1), block=(128, 1, 1))


def host_us(run: Callable[[], Any], rounds: int = 25) -> float:
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(BURST):
            run()
        times.append((time.perf_counter() - start) / BURST)
    return statistics.median(times) * 1e6


def products() -> dict[str, float]:
    """256^3 in bf16, of which a GPU has each done before the next is there; a stack of two; with a bias."""
    a, b, out, bias, stack, results = (
        torch.randn(shape, device="cuda", dtype=torch.bfloat16)
        for shape in ((256, 256), (256, 256), (256, 256), (256,), (2, 256, 256), (2, 256, 256))
    )
    importlib.import_module("tilewright.gemm.operators.torch_op")  # registers the operator
    op = torch.ops.tilewright.matmul
    runs: dict[str, Callable[[], Any]] = {
        "product: matmul(a, b)": lambda: matmul(a, b),
        "product: matmul(a, b, out)": lambda: matmul(a, b, out),
        "product: torch.ops.tilewright.matmul(a, b)": lambda: op(a, b),
        "product: torch.mm(a, b)": lambda: torch.mm(a, b),
        "product: torch.mm(a, b, out=)": lambda: torch.mm(a, b, out=out),
        "stack: matmul(a, b, out)": lambda: matmul(stack, stack, results),
        "stack: torch.bmm(a, b, out=)": lambda: torch.bmm(stack, stack, out=results),
        "bias: matmul(a, b, bias=)": lambda: matmul(a, b, bias=bias),
        "bias: torch.nn.functional.linear": lambda: torch.nn.functional.linear(a, b, bias),
    }
    for run in runs.values():
        for _ in range(3):
            run()  # the third launch of a product at the same addresses is a repeated one
    return {name: host_us(run) for name, run in runs.items()}


def main() -> None:
    a, b, c = (torch.randn(128, device="cuda") for _ in range(3))
    compiled = cute.compile(launch_add, a, b, c)
    compiled(a, b, c)
    torch.testing.assert_close(c, a + b)
    figures = {
        "launch: tilewright, three torch tensors": host_us(lambda: compiled(a, b, c)),
        "launch: torch.add(out=)": host_us(lambda: torch.add(a, b, out=c)),
        **products(),
    }
    records = [{"what": name, "us": us} for name, us in figures.items()]
    table("host time of a launch", [(name, f"{us:.2f}") for name, us in figures.items()], ("launch", "us"))
    if "--write" in sys.argv:
        print(
            write_results(
                "launch",
                gpu_model(),
                records,
                Path(sys.argv[sys.argv.index("--write") + 1]),
            )
        )


if __name__ == "__main__":
    main()
