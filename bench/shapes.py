"""Sets of problem shapes against cuBLAS: geometric means of the speed that the library's own choice of tile reaches.

    python bench/shapes.py [--write DIR] [--cutlass LIBRARY] [--sets decode streamk_random ...]

The sets are in bench/shapes.json. Inputs are normal fp16; sides take turns in random order, as in gemm_ampere.py,
whose ``--cutlass`` this is.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
from pathlib import Path
from typing import Any

import torch
from figures import gpu_model, table, write_results
from gemm_ampere import cutlass
from gemm_gpu import rotation
from sides import Side, cublas, interleaved, ours

ROUNDS = 7
MOST_SETS = 16
"""Sets of buffers; small problems would need hundreds to exceed three times the L2."""


def measure(m: int, n: int, k: int, library: ctypes.CDLL | None) -> dict[str, float]:
    """Microseconds by side."""
    sets, flops = rotation(m, n, k, torch.float16)[:MOST_SETS], 2.0 * m * n * k
    sides = [Side("cuBLAS", cublas, sets, flops, 3, seconds=0.004)]
    for name, how in (("auto", "auto"), ("data-parallel", "data_parallel")):
        sides.append(Side(name, ours(sets, "tensorop_f16", how), sets, flops, seconds=0.004))
    if library is not None and n % 8 == 0 and k % 8 == 0:
        run = cutlass(library, "cutlass_f32_stream_k", m, n, k)
        sides.append(Side("CUTLASS Stream-K", run, sets, flops, seconds=0.004))
    return interleaved(sides, ROUNDS)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path)
    parser.add_argument("--cutlass", type=Path, help="the library made from bench/peers/cutlass_ampere.cu")
    parser.add_argument("--sets", nargs="*", help="names from bench/shapes.json; all by default")
    args = parser.parse_args()
    library = ctypes.CDLL(str(args.cutlass.resolve())) if args.cutlass else None
    shapes = json.loads((Path(__file__).parent / "shapes.json").read_text(encoding="utf-8"))["sets"]
    records: list[dict[str, Any]] = []
    rows = []
    for name in args.sets or shapes:
        ratios: dict[str, list[float]] = {}
        for m, n, k in shapes[name]:
            us = measure(m, n, k, library)
            for side, time in us.items():
                ratios.setdefault(side, []).append(us["cuBLAS"] / time)
                record = {"set": name, "mnk": [m, n, k], "dtype": "f16", "kernel": side, "us": time}
                records.append({**record, "cublas_us": us["cuBLAS"]})
        means = {side: statistics.geometric_mean(found) for side, found in ratios.items() if side != "cuBLAS"}
        rows.append((name, str(len(shapes[name])), *(f"{side} {mean:.3f}" for side, mean in means.items())))
        print(*rows[-1], flush=True)
    table("speed against cuBLAS", [(*row, *[""] * (5 - len(row))) for row in rows], ("set", "shapes", "", "", ""))
    if args.write:
        name = gpu_model()
        print(write_results("shapes", name, records, args.write))


if __name__ == "__main__":
    main()
