"""What a product of a shape that was not seen before costs, beside PyTorch's: four processes one after the other.

    python bench/new_shapes.py [--write DIR]

Each of them multiplies the first m rows of one matrix for m = 1, 2, ... 1499 (n = k = 4096, bf16) and waits for the
results. The first multiplies by PyTorch, the second finds an empty disk cache and calls ``warm_up`` before, the third
finds another empty one, the last what that one left. Then each of the last three times shapes of 1500 to 3499 rows in a
drawn order one by one, by PyTorch in turns: the host's time of the first call of each, of those whose kernel was there,
and of the second. Compare calls within a process: the speed of a host may halve from one to the next.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from figures import gpu_model, table, write_results

N = K = 4096
LOOP, FURTHER = range(1, 1500), range(1500, 3500)
COMPILING_US = 3000
"""A call that takes longer has staged, compiled or read a kernel."""


def host_us(multiply: Any, x: Any, w: Any, rows: int) -> float:
    import torch

    torch.cuda.synchronize()
    start = time.perf_counter()
    multiply(x[:rows], w)
    return (time.perf_counter() - start) * 1e6


def process(name: str) -> None:
    """One process: its figures as a line of JSON."""
    import torch

    from tilewright.gemm import matmul, warm_up

    multiply = torch.matmul if name == "torch" else matmul
    x, w = (torch.randn(size, device="cuda", dtype=torch.bfloat16) for size in ((4096, K), (K, N)))
    torch.matmul(x, w)
    torch.cuda.synchronize()
    start = time.perf_counter()
    if name == "warm_up":
        warm_up(w, rows=LOOP)
    figures: dict[str, float] = {"warm_up_s": time.perf_counter() - start}
    start = time.perf_counter()
    for rows in LOOP:
        multiply(x[:rows], w)
    torch.cuda.synchronize()
    figures["loop_s"] = time.perf_counter() - start
    if name not in ("preparation", "torch"):
        figures |= further(x, w)
    print(json.dumps(figures))


def further(x: Any, w: Any) -> dict[str, float]:
    """Figures of the first and the second call of each further shape."""
    import torch

    from tilewright.gemm import matmul

    figures: dict[str, float] = {}
    order = list(FURTHER)
    random.Random(0).shuffle(order)
    sides = {"": matmul, "torch_": torch.matmul}
    for call in ("first", "second"):
        times: dict[str, list[float]] = {side: [] for side in sides}
        for rows in order:
            for side, product in sides.items():
                times[side].append(host_us(product, x, w, rows))
        for side, found in times.items():
            there = sorted(us for us in found if us < COMPILING_US)
            figures |= {f"{side}{call}_call_us": statistics.median(there)}
            figures |= {f"{side}{call}_call_p90_us": there[len(there) * 9 // 10]}
            figures |= {f"{side}{call}_with_a_new_kernel": len(found) - len(there)}
    return figures


def main() -> None:
    records = []
    with tempfile.TemporaryDirectory() as folders:
        empty, filled = (str(Path(folders, name)) for name in ("empty", "filled"))
        for name in ("preparation", "torch", "warm_up", "empty disk cache", "warm disk cache"):
            folder = filled if name.endswith("disk cache") else empty
            done = subprocess.run(
                [sys.executable, __file__, "--process", name],
                env={**os.environ, "TILEWRIGHT_CACHE_DIR": folder},
                capture_output=True,
                encoding="utf-8",
            )
            if done.returncode:
                raise SystemExit(done.stderr)
            if name == "preparation":  # from now on NVRTC and the driver lie in the machine's memory
                shutil.rmtree(empty)
                continue
            records.append({"process": name, **json.loads(done.stdout.splitlines()[-1])})
    names = ["process", "warm_up_s", "loop_s", "first_with_a_new_kernel"]
    names += [f"{side}{call}_call_us" for call in ("first", "second") for side in ("", "torch_")]
    shown = [[r["process"], *(f"{r[name]:.3g}" if name in r else "" for name in names[1:])] for r in records]
    table("new shapes, n = k = 4096, bf16", [tuple(row) for row in shown], names)
    if "--write" in sys.argv:
        print(write_results("new_shapes", gpu_model(), records, Path(sys.argv[sys.argv.index("--write") + 1])))


if __name__ == "__main__":
    if "--process" in sys.argv:
        process(sys.argv[sys.argv.index("--process") + 1])
    else:
        main()
