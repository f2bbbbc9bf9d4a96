"""The library's kernels for Blackwell, compiled by NVRTC without a GPU: registers, spills, instructions, CPU time.

    python bench/blackwell_compile.py [--sizes] [--only TEXT] [--write]

Each kernel in its usual size, for every architecture it is for, by every decomposition, in a process of its own with
nothing cached: ``cold_s`` are seconds of CPU time of staging, NVRTC and ptxas, without imports. With ``--sizes`` all
tiles, pairs and parts too (one cluster of each), in one process. A kernel that spills, has warnings, or lacks the
instructions of tensor cores and TMA is an error. ``--only``: kernels with this in their names. ``--write`` puts the
rows in bench/results.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

os.environ["TILEWRIGHT_CACHE_MB"] = "0"

import numpy as np

import tilewright.cuda
from tilewright import BFloat16, Float4E2M1FN, Float8E4M3FN, Float8E5M2, Float8E8M0FNU, Float32, Int64, Uint8, cute, sim
from tilewright.cute.runtime import make_fake_compact_tensor
from tilewright.gemm import LinearCombination, kernels
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.config import Major
from tilewright.gemm.family.block_scaled import FORMATS, block_scaled_entry, block_scaled_kernel
from tilewright.gemm.family.compile import stage
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.operators.block_scaled_offsets import FactorsLaunch, FactorsProduct
from tilewright.gemm.operators.group_launch import Launch
from tilewright.gemm.schedule.decomposition import PersistentTiles
from tilewright.ir.core import Function
from tilewright.ir.target import architecture

RESULTS = Path(__file__).parent / "results"
ARCHS = {"blackwell": ("sm_100a", "sm_103a"), "sm120": ("sm_120a",)}
NEEDED = {"blackwell": (r"UTC\w*MMA", "UTMALDG"), "sm120": (r"[HQOI]MMA", "UTMALDG")}
DECOMPOSITIONS = ("data_parallel", "dynamic", "stream_k")
BLOCK_SCALED = (
    (Float8E4M3FN, Float8E4M3FN, Float8E8M0FNU),
    (Float8E4M3FN, Float8E5M2, Float8E8M0FNU),
    (Float4E2M1FN, Float4E2M1FN, Float8E8M0FNU),
    (Float4E2M1FN, Float4E2M1FN, Float8E4M3FN),
)
SIZES_OF = ("blackwell_bf16", "blackwell_e4m3", "sm120_bf16", "sm120_e4m3")
"""Kernels in all their sizes: those of other types with as many bits differ in a few bits of descriptors."""


@dataclass(frozen=True)
class Job:
    """One kernel for one architecture."""

    name: str
    how: str
    arch: str
    config: Any
    make: Callable[[], Function]

    @property
    def family(self) -> str:
        return "sm120" if self.arch == "sm_120a" else "blackwell"

    @property
    def label(self) -> str:
        config = self.config
        of_pair = f" of {config.ctas}" if hasattr(config, "ctas") else ""
        turned = " transposed" if config.transposed else ""
        turns = " in turns" if config.pingpong else ""
        tile = "x".join(map(str, config.tile))
        return f"{self.name} {self.how} {self.arch} {tile}{of_pair}{turned}{turns} parts of {config.epilogue_columns}"

    def row(self) -> dict[str, Any]:
        """Compile it."""
        start = time.process_time()
        staged = self.make()
        lowered = time.process_time()
        made = tilewright.cuda.compile(staged, self.arch, cache=False)
        end = time.process_time()
        names = made.mnemonics()
        lacking = [want for want in NEEDED[self.family] if not any(re.match(want, name) for name in names)]
        return {
            "kernel": self.label,
            "registers": made.registers,
            "spilled_bytes": made.spills,
            "cold_s": round(end - start, 2),
            "staging_s": round(lowered - start, 2),
            "nvrtc": made.nvrtc,
            "sound": not (made.spills or made.warnings or lacking),
            **({"lacking": lacking} if lacking else {}),
            **({"warnings": made.warnings} if made.warnings else {}),
        }


def jobs(every_size: bool) -> Iterator[Job]:
    """The kernels, each in its usual size, or some in all."""
    for name, entry in kernels().items():
        family = name.partition("_")[0]
        for arch in ARCHS.get(family, ()):
            if name.endswith("i8") and arch == "sm_103a":
                continue  # kind::i8 is not there
            if every_size and (name not in SIZES_OF or arch == "sm_103a"):
                continue
            for config in distinct(entry.sizes) if every_size else [entry.config]:
                for how in DECOMPOSITIONS:
                    if how == "stream_k" and config.pingpong:
                        continue
                    yield Job(name, how, arch, config, partial(stage, config, how))
            groups = [size for size in entry.sizes if entry.family.grouped.fits(size)]
            for config in distinct(groups) if every_size else usual(groups):
                for how in ("data_parallel", "stream_k"):
                    if how == "data_parallel" or entry.family.grouped.shares(config):
                        make = partial(grouped, entry.only(config), arch, how)
                        yield Job(name, f"groups {how}", arch, config, make)
    for a, b, factor in BLOCK_SCALED:
        for arch in (x for archs in ARCHS.values() for x in archs):
            if every_size and arch == "sm_103a":
                continue
            entry = block_scaled_entry(a, b, BFloat16, FORMATS[a.width, factor], int(arch[3:6]))
            name = f"block_scaled {a.__name__} {b.__name__} {factor.__name__}"
            for config in distinct(entry.sizes) if every_size else [entry.config]:
                yield Job(name, "data_parallel", arch, config, partial(block_scaled, config))
            groups = [size for size in entry.sizes if entry.family.grouped.fits(size)]
            for config in distinct(groups) if every_size else groups[:1]:
                make = partial(block_scaled_groups, entry.only(config), (a, b, factor), arch)
                yield Job(name, "groups data_parallel", arch, config, make)


def usual(sizes: Any) -> list[Any]:
    """The first size by single blocks, and the first by pairs."""
    found: dict[int, Any] = {}
    for size in sizes:
        found.setdefault(getattr(size, "ctas", 1), size)
    return list(found.values())


def distinct(sizes: Any) -> list[Any]:
    """One cluster of each size."""
    found: dict[Any, Any] = {}
    for size in sizes:
        found.setdefault(replace(size, cluster=(getattr(size, "ctas", 1), 1), stages=2), size)
    return list(found.values())


def grouped(entry: Any, arch: str, how: str) -> Function:
    """The kernel that multiplies groups of products."""
    (bM, bN, bK), operands = entry.config.tile, (entry.config.a, entry.config.b, entry.config.c)
    shapes = (bM, bK), (bK, bN), (bM, bN)
    matrices = []
    for place, (shape, operand) in enumerate(zip(shapes, operands, strict=True)):
        in_rows = (operand.major is Major.K) != (place == 1)  # B is given as (K, N)
        data = np.zeros(shape if in_rows else shape[::-1], operand.dtype.ir_type.dtype)
        matrices.append(Matrix.of("x", data if in_rows else data.T))
    A, B, D = matrices
    function = LinearCombination(entry.config.acc_dtype(1), entry.config.acc_dtype(0))
    with sim.options(arch=arch):
        limits = 4, architecture(arch).smem
        launch = Launch([Problem(A, B, D, D, False)], entry, lambda _: function, [0], limits, how == "stream_k")
        kernel: Function = cute.compile(launch.kernel(), *launch.arguments()).kernels[1]
    return kernel


def block_scaled(config: Any) -> Function:
    """The kernel of block-scaled products."""

    def fake(dtype: Any, columns: int) -> Any:
        shape = cute.sym_int(), cute.sym_int(divisibility=columns), 1
        return make_fake_compact_tensor(dtype, shape, stride_order=(1, 0, 2), assumed_align=16)

    stored = [Uint8 if x.dtype.width == 4 else x.dtype for x in (config.a, config.b)]
    tensors = [fake(x, 16) for x in stored] + [fake(Int64, 2)] * 2 + [fake(BFloat16, 8)] * 2
    args = *tensors, LinearCombination(Float32(1)), PersistentTiles(cute.Int32(1))
    kernel: Function = cute.compile(block_scaled_kernel(config), *args).kernels[0]
    return kernel


def block_scaled_groups(entry: Any, types: tuple[Any, ...], arch: str) -> Function:
    """The kernel of groups of block-scaled products."""
    config, (a, b, factor) = entry.config, types
    rows, columns, count = *config.tile[:2], config.tile[2] // FORMATS[a.width, factor].vector
    sizes = [config.tile[2] * x.width // 8 for x in (a, b)]
    left, right = (
        np.zeros((extent, size), np.uint8 if x.width == 4 else x.ir_type.dtype)
        for x, extent, size in zip((a, b), (rows, columns), sizes, strict=True)
    )
    of_a, of_b = (np.zeros((extent, count), factor.ir_type.dtype) for extent in (rows, columns))
    with sim.options(arch=arch):
        given = left, right[None].swapaxes(1, 2), of_a, of_b[None].swapaxes(1, 2), np.array([rows], np.int32)
        product = FactorsProduct.of(*given, None, BFloat16)
        launch = FactorsLaunch(replace(product, entry=entry))
        kernel: Function = cute.compile(launch.kernel(), *launch.arguments()).kernels[1]
    return kernel


def in_own_process(number: int) -> dict[str, Any]:
    found = subprocess.run(
        [sys.executable, __file__, "--one", str(number)], capture_output=True, encoding="utf-8", check=True
    )
    row: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--one", type=int)
    asked = parser.parse_args()
    if asked.one is not None:
        print(json.dumps(list(jobs(False))[asked.one].row()))
        return
    rows = []
    for number, job in enumerate(jobs(asked.sizes)):
        if asked.only not in job.label:
            continue
        rows.append(job.row() if asked.sizes else in_own_process(number))
        print(json.dumps(rows[-1]), flush=True)
    unsound = [row for row in rows if not row["sound"]]
    summary = {
        "kernels": len(rows),
        "unsound": len(unsound),
        "greatest_cold_s": max(row["cold_s"] for row in rows),
        "nvrtc": rows[0]["nvrtc"],
    }
    print(json.dumps(summary))
    if asked.write:
        kind = "sizes" if asked.sizes else "usual"
        path = RESULTS / f"blackwell_compile_{kind}_cpu_{date.today()}.json"
        command = f"python bench/blackwell_compile.py{' --sizes' if asked.sizes else ''} --write"
        path.write_text(json.dumps({"command": command, **summary, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    sys.exit(bool(unsound))


if __name__ == "__main__":
    main()
