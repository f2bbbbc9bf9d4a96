"""Which tile, warp grid, stage count and raster does well: sweeps one kernel's configurations on one shape.

    python bench/sweep.py tensorop_f16 4096,4096,4096 [--integers]

Prints the best first, with registers, spills and shared memory, beside cuBLAS in the same run.
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import replace
from typing import Any

from figures import table
from gemm_gpu import measure_entry

from tilewright.errors import TilewrightError
from tilewright.gemm import cross_compile, kernels

TENSOROP = [
    {"tile": tile, "warps": warps, "stages": stages}
    for (tile, warps), counts in {
        ((128, 128, 32), (2, 2)): (3, 4, 5),
        ((256, 128, 32), (4, 2)): (4, 5),
        ((128, 256, 32), (2, 4)): (3, 4, 5, 6),
        ((128, 256, 64), (2, 4)): (3, 4),
    }.items()
    for stages in counts
]
SIMT = [
    {"tile": tile, "warps": warps, "stages": stages}
    for (tile, warps), stages in itertools.product(
        (((128, 128, 8), (8, 1)), ((128, 128, 16), (8, 1)), ((128, 64, 8), (4, 1))), (3, 4)
    )
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kernel")
    parser.add_argument("shape")
    parser.add_argument("--integers", action="store_true")
    parser.add_argument("--groups", nargs="*", type=int, default=[8])
    args = parser.parse_args()
    entry = kernels()[args.kernel]
    shape = tuple(map(int, args.shape.split(",")))
    rows: list[tuple[float, tuple[str, ...]]] = []
    variants: list[dict[str, Any]] = TENSOROP if entry.config.math == "tensorop" else SIMT
    for variant, group in itertools.product(variants, args.groups):
        config = replace(entry.config, **{**variant, "group": group})
        name = f"{config.tile} warps {config.warps} stages {config.stages} group {config.group}"
        try:
            resources = cross_compile(config, "sm_90a")
            found = measure_entry(entry.only(config), *shape, args.integers, "data_parallel")
        except TilewrightError as error:
            print(f"{name}: {str(error).splitlines()[0]}", flush=True)
            continue
        figures = (f"{found['tflops']:.1f}", f"{found['ratio']:.3f}")
        used = (str(resources.registers), str(resources.spills), str(resources.smem))
        rows.append((found["tflops"], (name, *figures, *used)))
    ordered = [row for _, row in sorted(rows, reverse=True)]
    table(
        f"{args.kernel} {args.shape}", ordered, ("configuration", "TFLOP/s", "of cuBLAS", "registers", "spills", "smem")
    )


if __name__ == "__main__":
    main()
