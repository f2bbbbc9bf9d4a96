"""What Tilewright itself costs beside a kernel: importing, staging, planning, simulating, launching.

    python bench/overheads.py [--write]                # results/overheads_cpu_<date>.json
    python bench/overheads.py --against FILE           # and the ratio to an earlier file of results
    python bench/overheads.py --gpu [--write]          # with the host time of a launch (bench/launch.py)

One command before and after a change. Times are process times (those of fresh processes for imports, wall time for
launches), the least of repeated runs: other processes on the machine can only add to it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from figures import gpu_model, table, write_results
from threadpoolctl import threadpool_limits

from tilewright import Float16, sim
from tilewright.cuda import emit
from tilewright.gemm import gemm, kernels, stage
from tilewright.gemm.choice.registry import candidates
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.tuning.stand_in import stand_in

ROUNDS = 11
STAGED = ("simt_f32", "tensorop_f16", "hopper_f16")
SIMULATED = (
    ("simt_f32", 128, np.float32, False),
    ("tensorop_f16", 256, np.float16, False),
    ("hopper_f16", 256, np.float16, True),
)
IMPORT = "import time; start = time.process_time(); import {module}; print(time.process_time() - start)"


def seconds(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def least_seconds(run: Callable[[], Any]) -> float:
    run()
    return min(seconds(run) for _ in range(ROUNDS))


def imports() -> Iterator[tuple[str, float]]:
    """The process time of an import in a fresh process, NumPy's included."""
    for module in ("tilewright", "tilewright.cute"):
        command = [sys.executable, "-c", IMPORT.format(module=module)]
        runs = [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(15)]
        yield f"import {module}", min(runs)


def staging() -> Iterator[tuple[str, float]]:
    """A kernel of the library as IR, and that as CUDA text."""
    for name in STAGED:
        config = kernels()[name].config
        yield f"stage {name}", least_seconds(partial(stage, config))
        yield f"print {name} as CUDA", least_seconds(partial(emit, stage(config)))


def planning() -> Iterator[tuple[str, float]]:
    """The kernel, size and decomposition of a product of a new shape; and of one that was planned before."""
    entries = candidates(Float16, None)
    shapes = [(264 + 8 * i, 520 + 8 * i, 1032) for i in range(200)]

    problems = [stand_in(shape, "float16", None, "k", "k") for shape in shapes]
    parts = [problems[first : first + 20] for first in range(0, 200, 20)]
    yield "plan, a new shape", min(seconds(partial(plan_all, part, entries)) for part in parts) / 20
    yield "plan, a known shape", least_seconds(partial(plan_all, problems, entries)) / 200


def plan_all(problems: list[Any], entries: list[Any]) -> None:
    for problem in problems:
        Plan.of(problem, entries, "auto", "gpu")


def product(kernel: str, n: int, dtype: Any, k_major: bool) -> Callable[[], Any]:
    a, b = (np.ones((n, n), dtype) for _ in range(2))
    return partial(gemm, a, np.asfortranarray(b) if k_major else b, kernel=kernel, machine="cpu")


def simulation() -> Iterator[tuple[str, float]]:
    """Products without and with the default checks."""
    for name, n, dtype, k_major in SIMULATED:
        for check in ("none", "default"):
            with threadpool_limits(1), sim.options(check=check):
                yield f"simulate {name} {n}^3, checks: {check}", least_seconds(product(name, n, dtype, k_major))


def launches() -> Iterator[tuple[str, float]]:
    import torch
    from launch import host_us, launch_add

    from tilewright import cute

    a, b, c = (torch.randn(128, device="cuda") for _ in range(3))
    compiled = cute.compile(launch_add, a, b, c)
    yield "launch, three tensors", host_us(lambda: compiled(a, b, c)) * 1e-6
    yield "torch.add(out=)", host_us(lambda: torch.add(a, b, out=c)) * 1e-6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--against", type=Path)
    parser.add_argument("--gpu", action="store_true")
    options = parser.parse_args()
    parts = [imports, staging, planning, simulation, *([launches] if options.gpu else [])]
    records = [{"what": what, "seconds": seconds} for part in parts for what, seconds in part()]
    before = {}
    if options.against is not None:
        before = {r["what"]: r["seconds"] for r in json.loads(options.against.read_text(encoding="utf-8"))["records"]}
    rows = [(r["what"], f"{1e3 * r['seconds']:.3f}", ratio(r, before)) for r in records]
    table("overheads", rows, ("what", "ms", "to before"))
    if options.write:
        print(write_results("overheads", gpu_model() if options.gpu else "cpu", records))


def ratio(record: dict[str, Any], before: dict[str, float]) -> str:
    return f"{record['seconds'] / before[record['what']]:.2f}" if record["what"] in before else ""


if __name__ == "__main__":
    main()
