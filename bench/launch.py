"""Host time of one launch of a compiled kernel with three torch tensors, and of a product, beside torch's own.

    python bench/launch.py [--write DIR]

Launches are enqueued back to back into an idle stream in bursts shorter than the driver's queue; the time is the host's
alone. All take turns, burst by burst; medians.
"""

from __future__ import annotations

import importlib
import itertools
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

BURST = 100


@cute.kernel
def add_one_block(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    c[tidx] = a[tidx] + b[tidx]


@cute.jit
def launch_add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    add_one_block(a, b, c).launch(grid=(1, 1, 1), block=(128, 1, 1))


def host_us(runs: dict[str, Callable[[], Any]], rounds: int = 25) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(BURST):
                run()
            times[name].append((time.perf_counter() - start) / BURST)
    return {name: statistics.median(found) * 1e6 for name, found in times.items()}


def drawn(*shape: int, graded: bool = False) -> torch.Tensor:
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=graded)


def products() -> dict[str, Callable[[], Any]]:
    """256^3 in bf16, of which a GPU has each done before the next is there; a stack of two; with a bias; operands that
    are elsewhere in each call; with the gradients of both operands."""
    a, b, out, bias = drawn(256, 256), drawn(256, 256), drawn(256, 256), drawn(256)
    stack, results = drawn(2, 256, 256), drawn(2, 256, 256)
    elsewhere = itertools.cycle([drawn(256, 256) for _ in range(96)])
    left, right = drawn(256, 256, graded=True), drawn(256, 256, graded=True)
    importlib.import_module("tilewright.gemm.operators.torch_op")  # registers the operator
    op = torch.ops.tilewright.matmul

    def gradients(product: Callable[[Any, Any], Any]) -> None:
        left.grad = right.grad = None
        product(left, right).backward(a)

    return {
        "product: matmul(a, b)": lambda: matmul(a, b),
        "product: matmul(a, b, out)": lambda: matmul(a, b, out),
        "product: torch.ops.tilewright.matmul(a, b)": lambda: op(a, b),
        "product: torch.mm(a, b)": lambda: torch.mm(a, b),
        "product: torch.mm(a, b, out=)": lambda: torch.mm(a, b, out=out),
        "stack: matmul(a, b, out)": lambda: matmul(stack, stack, results),
        "stack: torch.bmm(a, b, out=)": lambda: torch.bmm(stack, stack, out=results),
        "bias: matmul(a, b, bias=)": lambda: matmul(a, b, bias=bias),
        "bias: torch.nn.functional.linear": lambda: torch.nn.functional.linear(a, b, bias),
        "elsewhere: matmul(a, b)": lambda: matmul(next(elsewhere), b),
        "elsewhere: torch.mm(a, b)": lambda: torch.mm(next(elsewhere), b),
        "gradients: matmul": lambda: gradients(matmul),
        "gradients: torch.mm": lambda: gradients(torch.mm),
    }


def main() -> None:
    a, b, c = (torch.randn(128, device="cuda") for _ in range(3))
    compiled = cute.compile(launch_add, a, b, c)
    compiled(a, b, c)
    torch.testing.assert_close(c, a + b)
    runs: dict[str, Callable[[], Any]] = {
        "launch: tilewright, three torch tensors": lambda: compiled(a, b, c),
        "launch: torch.add(out=)": lambda: torch.add(a, b, out=c),
        **products(),
    }
    for run in runs.values():
        for _ in range(10):
            run()  # after a few launches of a product, only addresses are written anew
    figures = host_us(runs)
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
