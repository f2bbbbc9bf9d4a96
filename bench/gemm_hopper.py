"""The library's GEMM against cuBLAS on a Hopper GPU: the sets of bench/shapes.json, both sides in one run.

    python bench/gemm_hopper.py [--write DIR] [--sets large decode] [--dtypes f16 bf16] [--b k n] [--sizes] [--fp8]

Inputs are normal; buffers rotate so that together they exceed three times the L2; launches are replayed from CUDA
graphs in turns of a few milliseconds in random order; medians. 64 rows of every product are compared with float64
before it is timed. ``--b``: B is contiguous along K (weights as PyTorch keeps them) or N. ``--sizes`` times every size
of the kernel, not only the one that the library chooses. ``--fp8`` adds 8192^3 of e4m3 against torch._scaled_mm.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import torch
from figures import gpu_model, table, write_results
from gemm_gpu import DTYPES, rotation
from sides import Sets, Side, cublas, interleaved, ours

from tilewright.gemm import kernels

MOST_SETS = 16
"""Sets of buffers; small problems would need hundreds to exceed three times the L2."""


def problem(m: int, n: int, k: int, dtype: str, b_major: str, a_major: str = "k") -> Sets:
    sets = rotation(m, n, k, DTYPES[dtype])[:MOST_SETS]
    if a_major == "m":
        sets = [(a.t().contiguous().t(), *rest) for a, *rest in sets]
    if b_major == "n":
        return sets
    return [(a, b.t().contiguous().t(), out, reference) for a, b, out, reference in sets]


def sides_of(sets: Sets, flops: float, dtype: str, rounds_seconds: float, sizes: bool) -> list[Side]:
    found = [Side("cuBLAS", cublas, sets, flops, 3, seconds=rounds_seconds)]
    found.append(Side("tilewright", ours(sets, None, "auto"), sets, flops, seconds=rounds_seconds))
    if sizes:
        entry = kernels()[f"hopper_{dtype}"]
        for config in (entry.config, *entry.small):
            name = "x".join(map(str, (*config.tile[:2], *config.cluster)))
            run = ours(sets, entry.only(config), "data_parallel")
            found.append(Side(name, run, sets, flops, seconds=rounds_seconds))
    return found


def fp8(seconds: float, rounds: int) -> list[dict[str, Any]]:
    """8192^3 of e4m3, Float16 results (torch: bfloat16, which is what it has), in both of torch's modes."""
    m = n = k = 8192
    sets: Sets = []
    for _ in range(2):
        a, b = (torch.randn(rows, k, device="cuda").to(torch.float8_e4m3fn) for rows in (m, n))
        outs = (torch.empty(m, n, device="cuda", dtype=t) for t in (torch.float16, torch.bfloat16))
        sets.append((a, b.t(), *outs))
    one = torch.ones((), device="cuda")

    def scaled_mm(fast: bool) -> Any:
        def run(a: torch.Tensor, b: torch.Tensor, _: torch.Tensor, out: torch.Tensor) -> None:
            torch._scaled_mm(a, b, one, one, out_dtype=out.dtype, use_fast_accum=fast, out=out)

        return run

    flops = 2.0 * m * n * k
    sides = [
        Side("_scaled_mm", scaled_mm(False), sets, flops, 3, seconds=seconds),
        Side("_scaled_mm, fast", scaled_mm(True), sets, flops, 3, seconds=seconds),
        Side("tilewright", ours(sets, "hopper_e4m3", "auto"), sets, flops, seconds=seconds),
    ]
    us = interleaved(sides, rounds)
    print(f"8192^3 e4m3: {us['_scaled_mm'] / us['tilewright']:.3f} of _scaled_mm", flush=True)
    return [
        {
            "set": "fp8",
            "mnk": [m, n, k],
            "dtype": "e4m3",
            "b": "k",
            "kernel": side.name,
            "us": us[side.name],
            "cublas_us": us["_scaled_mm"],
            "error": side.error,
        }
        for side in sides
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path)
    parser.add_argument("--sets", nargs="*", default=["large", "decode"])
    parser.add_argument("--dtypes", nargs="*", default=["f16", "bf16"])
    parser.add_argument("--b", nargs="*", default=["k"], choices=["k", "n"])
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--fp8", action="store_true")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.008, help="of one turn")
    args = parser.parse_args()
    shapes = json.loads((Path(__file__).parent / "shapes.json").read_text(encoding="utf-8"))["sets"]
    records = fp8(args.seconds, args.rounds) if args.fp8 else []
    rows: list[tuple[str, ...]] = []
    for name in args.sets:
        for dtype in args.dtypes:
            for b_major in args.b:
                ratios = []
                for m, n, k in shapes[name]:
                    sets, flops = problem(m, n, k, dtype, b_major), 2.0 * m * n * k
                    sides = sides_of(sets, flops, dtype, args.seconds, args.sizes)
                    us = interleaved(sides, args.rounds)
                    ratios.append(us["cuBLAS"] / us["tilewright"])
                    for side in sides:
                        record = {"set": name, "mnk": [m, n, k], "dtype": dtype, "b": b_major, "kernel": side.name}
                        record |= {"us": us[side.name], "cublas_us": us["cuBLAS"], "error": side.error}
                        records.append(record)
                    best = min((time, side) for side, time in us.items() if side != "cuBLAS")
                    print(
                        f"{m}x{n}x{k} {dtype} {b_major}: {ratios[-1]:.3f} of cuBLAS "
                        f"({2e-6 * m * n * k / us['cuBLAS']:.0f} TFLOP/s); best {best[1]} {us['cuBLAS'] / best[0]:.3f}",
                        flush=True,
                    )
                    del sides, sets
                mean = statistics.geometric_mean(ratios)
                rows.append((name, dtype, b_major, f"{mean:.3f}", f"{min(ratios):.3f}", f"{max(ratios):.3f}"))
    table("speed of cuBLAS reached", rows, ("set", "dtype", "B along", "geometric mean", "worst", "best"))
    if args.write:
        where = gpu_model()
        print(write_results("gemm_hopper", where, records, args.write))


if __name__ == "__main__":
    main()
