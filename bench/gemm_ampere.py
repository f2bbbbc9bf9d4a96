"""The Ampere GEMM against cuBLAS and CUTLASS's Stream-K example program, on the GPU that is here.

    python bench/gemm_ampere.py [--write DIR] [--cutlass LIBRARY] [--shapes 4096,4096,4096 ...] [--seconds 1]

Two regimes, because these kernels run into the GPU's power limit. "interleaved": all sides take turns in rounds of
20 ms, in random order; a side that draws little power lends its share to the next one. "sustained": each side runs
alone for ``--seconds``, so that its clock settles; clock and power are medians of what nvidia-smi reads meanwhile.
Inputs are normal, and integers in [-2, 2] as in CUTLASS's program; buffers rotate so that together they exceed three
times the L2; launches are replayed from CUDA graphs; results are medians; 64 rows of every product are checked first.

``--cutlass`` is the library made from bench/peers/cutlass_ampere.cu (its head says how).
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import torch
from figures import gpu_model, table, write_results
from gemm_gpu import rotation
from sides import Run, Side, cublas, interleaved, ours

SHAPES = ["4096,4096,4096", "5120,5120,5120", "8192,8192,8192"]
OURS = {
    "f32, data-parallel": ("tensorop_f16", "data_parallel"),
    "f32": ("tensorop_f16", "auto"),
    "f16, data-parallel": ("tensorop_f16_f16", "data_parallel"),
    "f16": ("tensorop_f16_f16", "auto"),
}
CUTLASS = {
    "CUTLASS f32, data-parallel": "cutlass_f32_data_parallel",
    "CUTLASS f32, Stream-K": "cutlass_f32_stream_k",
    "CUTLASS f16, data-parallel": "cutlass_f16_data_parallel",
    "CUTLASS f16, Stream-K": "cutlass_f16_stream_k",
}


def cutlass(library: ctypes.CDLL, name: str, m: int, n: int, k: int) -> Run:
    function, size = library[name], library[f"{name}_workspace_bytes"]
    function.argtypes = [ctypes.c_int] * 3 + [ctypes.c_void_p] * 5
    size.restype = ctypes.c_int64
    workspace = torch.zeros(max(1, size(m, n, k)), dtype=torch.uint8, device="cuda")

    def run(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, _: torch.Tensor) -> None:
        stream = torch.cuda.current_stream().cuda_stream
        status = function(m, n, k, a.data_ptr(), b.data_ptr(), out.data_ptr(), workspace.data_ptr(), stream)
        assert status == 0, f"{name}: status {status}"

    return run


class Gauge:
    """Clock and power of the GPU as nvidia-smi reads them, every 50 ms."""

    QUERY = "clocks.sm,power.draw.instant"

    def __init__(self) -> None:
        self.samples: list[tuple[float, float, float]] = []
        command = ["nvidia-smi", f"--query-gpu={self.QUERY}", "--format=csv,noheader,nounits", "-lms", "50"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            clock, power = line.split(",")
            self.samples.append((time.perf_counter(), float(clock), float(power)))

    def between(self, start: float, end: float) -> tuple[float, float]:
        seen = [s for s in self.samples if start <= s[0] <= end] or [(0.0, float("nan"), float("nan"))]
        return statistics.median(s[1] for s in seen), statistics.median(s[2] for s in seen)


def sustained(side: Side, seconds: float, gauge: Gauge) -> tuple[float, float, float]:
    """(microseconds, MHz, W) of the second half of ``seconds``."""
    start, times = time.perf_counter(), []
    while time.perf_counter() - start < seconds:
        times.append(side.round())
    clock, power = gauge.between(start + seconds / 2, start + seconds)
    return statistics.median(times[len(times) // 2 :]), clock, power


def measure(m: int, n: int, k: int, integers: bool, library: ctypes.CDLL | None, seconds: float, gauge: Gauge) -> Any:
    sets, flops = rotation(m, n, k, torch.float16, integers), 2.0 * m * n * k
    sides = [Side("cuBLAS", cublas, sets, flops, 3)]
    sides += [Side(name, ours(sets, *how), sets, flops) for name, how in OURS.items()]
    if library is not None:
        sides += [Side(name, cutlass(library, symbol, m, n, k), sets, flops) for name, symbol in CUTLASS.items()]
    records = []
    turns = interleaved(sides)
    alone = {side.name: sustained(side, seconds, gauge) for side in sides}
    for side in sides:
        for regime, us, mhz, watt in (
            ("interleaved", turns[side.name], None, None),
            ("sustained", *alone[side.name]),
        ):
            reference = turns["cuBLAS"] if regime == "interleaved" else alone["cuBLAS"][0]
            records.append(
                {
                    "set": "integers" if integers else "normal",
                    "regime": regime,
                    "mnk": [m, n, k],
                    "dtype": "f16",
                    "kernel": side.name,
                    "us": us,
                    "cublas_us": reference,
                    "error": side.error,
                    "tflops": side.tflops(us),
                    "ratio": reference / us,
                    "mhz": mhz,
                    "watt": watt,
                }
            )
    return records


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path)
    parser.add_argument("--cutlass", type=Path, help="the library made from bench/peers/cutlass_ampere.cu")
    parser.add_argument("--shapes", nargs="*", default=SHAPES)
    parser.add_argument("--seconds", type=float, default=1.0)
    args = parser.parse_args()
    library = ctypes.CDLL(str(args.cutlass.resolve())) if args.cutlass else None
    gauge = Gauge()
    records = []
    for shape in args.shapes:
        for integers in (True, False):
            records += measure(*map(int, shape.split(",")), integers, library, args.seconds, gauge)
    gauge.process.kill()
    for regime in ("interleaved", "sustained"):
        rows = [
            (
                r["kernel"],
                "x".join(map(str, r["mnk"])),
                r["set"],
                f"{r['tflops']:.0f}",
                f"{r['ratio']:.3f}",
                "" if r["mhz"] is None else f"{r['mhz']:.0f}",
                "" if r["watt"] is None else f"{r['watt']:.0f}",
                f"{r['error']:.1e}",
            )
            for r in records
            if r["regime"] == regime
        ]
        heads = ("accumulators", "m x n x k", "inputs", "TFLOP/s", "of cuBLAS", "MHz", "W", "error")
        table(f"fp16 GEMM with mma.sync, {regime}", rows, heads)
    if args.write:
        name = gpu_model()
        print(write_results("gemm_ampere", name, records, args.write))


if __name__ == "__main__":
    main()
