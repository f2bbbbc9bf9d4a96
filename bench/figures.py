"""What the benchmarks share: medians, one-thread NumPy, versions of what was measured, results files."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import platform
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).parent / "results"


def median_seconds(run: Callable[[], Any], rounds: int = 7, warmup: int = 1) -> float:
    """The median time of ``run()`` over ``rounds`` calls after ``warmup``."""
    for _ in range(warmup):
        run()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def numpy_matmul_seconds(n: int) -> float:
    """numpy.matmul of two n x n float32 normal matrices on one thread."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    with threadpool_limits(1):
        return median_seconds(lambda: np.matmul(a, b), rounds=21, warmup=3)


def versions() -> dict[str, str]:
    names = ("tilewright", "numpy", "torch", "cuda-bindings", "nvidia-cuda-nvrtc")
    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def gpu_facts() -> dict[str, str]:
    """Name of the GPU and driver version as torch sees them, empty without a GPU."""
    import torch

    if not torch.cuda.is_available():
        return {}
    import subprocess

    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    return {
        "gpu": torch.cuda.get_device_name(),
        "driver": driver.stdout.strip().splitlines()[0],
        "cuda": str(torch.version.cuda),
    }


def gpu_model() -> str:
    """The GPU's model as file names have it: "h200" of "NVIDIA H200", "h100" of "NVIDIA H100 80GB HBM3"."""
    import torch

    found = re.search(r"[A-Z]+\d+", torch.cuda.get_device_name())
    return found[0].lower() if found else "gpu"


def write_results(what: str, where: str, records: list[dict[str, Any]], directory: Path = RESULTS) -> Path:
    """``results/<what>_<where>_<date>.json`` in the project's common form."""
    date = datetime.date.today().isoformat()
    path = directory / f"{what}_{where}_{date}.json"
    facts = gpu_facts() if where != "cpu" else {"cpu": platform.processor() or platform.machine()}
    document = {
        **facts,
        "versions": versions(),
        "command": " ".join(["python", *(argument.removeprefix(f"{ROOT}/") for argument in sys.argv)]),
        "date": date,
        "records": records,
    }
    directory.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return path


def table(title: str, rows: list[tuple[str, ...]], header: tuple[str, ...]) -> None:
    from rich.console import Console
    from rich.table import Table

    shown = Table(*header, title=title)
    for row in rows:
        shown.add_row(*row)
    Console(width=140).print(shown)
