"""Host time of one launch of a compiled kernel with three torch tensors, beside torch's own add and mm.

    python bench/launch.py [--write DIR]

Launches are enqueued back to back into an idle stream in bursts shorter than the driver's queue; the time is the host's
alone.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from figures import gpu_model, table, write_results

from tilewright import cute

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


def main() -> None:
    a, b, c = (torch.randn(128, device="cuda") for _ in range(3))
    compiled = cute.compile(launch_add, a, b, c)
    compiled(a, b, c)
    torch.testing.assert_close(c, a + b)
    big = torch.randn(128, 128, device="cuda")
    out = torch.empty_like(big)
    figures = {
        "tilewright, three torch tensors": host_us(lambda: compiled(a, b, c)),
        "torch.add(out=)": host_us(lambda: torch.add(a, b, out=c)),
        "torch.mm(out=)": host_us(lambda: torch.mm(big, big, out=out)),
    }
    records = [{"what": f"launch: {name}", "us": us} for name, us in figures.items()]
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
