"""Programs in the style of the CuTe DSL's documentation (tests/compat/programs) against cuBLAS on a Hopper GPU.

    python bench/programs.py [--write DIR] [--sizes 4096 8192] [--dry-run]

float16, both operands K-major, square. Both sides run in turns in one process, as in bench/gemm_hopper.py; beside them
stands what the CuTe DSL's own program of these tiles took on an H200, with cuBLAS in that run, by the same method.
``--dry-run`` compiles for sm_90a and shows registers, spills and warnings; it needs no GPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
from figures import table, write_results

PROGRAMS = Path(__file__).parents[1] / "tests" / "compat" / "programs"

PEER = {
    4096: {"cublas": 192.3, "128x256 2x1": 198.97, "128x128 2x1": 203.48, "128x256 1x1": 193.15},
    8192: {"cublas": 1607.3, "128x256 2x1": 1571.61, "128x128 2x1": 1604.26, "128x256 1x1": 1604.46},
}
"""Microseconds of the CuTe DSL's persistent program on an H200 (driver 580, CUDA 13.0), 2026-11-20: fp16, normal
inputs, CUDA graphs over rotating buffers of at least three times the L2, median of 7 rounds."""


class Way(NamedTuple):
    """One program with its tile and cluster."""

    program: str
    schedule: str
    tile: tuple[int, int]
    cluster: tuple[int, int]

    @property
    def sizes(self) -> str:
        return f"{self.tile[0]}x{self.tile[1]} {self.cluster[0]}x{self.cluster[1]}"

    @property
    def name(self) -> str:
        return f"{self.schedule} {self.sizes}"


WAYS = (
    Way("hopper_dense_gemm", "one role", (128, 256), (2, 1)),
    Way("hopper_dense_gemm", "one role", (128, 128), (2, 1)),
    Way("hopper_pingpong_gemm", "cooperative", (128, 256), (2, 1)),
    Way("hopper_pingpong_gemm", "cooperative", (128, 256), (1, 1)),
    Way("hopper_pingpong_gemm", "cooperative", (128, 128), (2, 1)),
    Way("hopper_pingpong_gemm", "pingpong", (64, 256), (2, 1)),
    Way("hopper_pingpong_gemm", "pingpong", (128, 128), (2, 1)),
)


def load(name: str) -> ModuleType:
    """A program as a module; ``tilewright.compat`` is installed."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, PROGRAMS / f"{name}.py")
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def tensors_of(*matrices: torch.Tensor) -> list[Any]:
    """(rows, columns), columns contiguous, as the programs want them: (rows, columns, 1) with a dynamic layout."""
    from tilewright.cute.runtime import from_dlpack

    found = []
    for matrix in matrices:
        tensor = from_dlpack(matrix.unsqueeze(-1), assumed_align=16).mark_layout_dynamic(leading_dim=1)
        found.append(tensor.mark_compact_shape_dynamic(mode=1, stride_order=(2, 0, 1), divisibility=8))
    return found


def compiled(way: Way, tensors: list[Any], stream: Any, multiprocessors: int = 132) -> Any:
    """The program compiled for these tensors, to be called with them and a stream."""
    from tilewright import Float32, cute

    module = load(way.program)
    if way.schedule == "one role":
        return cute.compile(module.OneRoleGemm(Float32, way.tile, way.cluster), *tensors, stream)
    clusters = multiprocessors // (way.cluster[0] * way.cluster[1])
    # Tiles go down columns of 8: what runs at one time shares operands in L2.
    gemm = module.PersistentGemm(way.schedule, Float32, way.tile, way.cluster, 8, True)
    return cute.compile(gemm, *tensors, clusters, stream)


def artifact(way: Way) -> Any:
    """The machine code for sm_90a."""
    import tilewright.cuda
    from tilewright.cute.runtime import make_fake_stream

    tensors = tensors_of(*(torch.zeros(256, 256, dtype=torch.float16) for _ in range(3)))
    (kernel,) = compiled(way, tensors, make_fake_stream()).kernels
    return tilewright.cuda.compile(kernel, "sm_90a")


def measure(size: int, rounds: int, seconds: float) -> list[dict[str, Any]]:
    from gemm_hopper import problem
    from sides import Side, cublas, interleaved

    from tilewright.torch import current_stream

    sets = problem(size, size, size, "f16", "k")
    count = torch.cuda.get_device_properties(0).multi_processor_count
    flops = 2.0 * size**3
    sides = [Side("cuBLAS", cublas, sets, flops, 3, seconds=seconds)]
    for way in WAYS:
        calls = {s[2].data_ptr(): tensors_of(s[0], s[1].t(), s[2]) for s in sets}
        program = compiled(way, next(iter(calls.values())), current_stream(), count)

        def run(a: Any, b: Any, out: Any, _: Any, program: Any = program, calls: Any = calls) -> None:
            program(*calls[out.data_ptr()], current_stream())

        sides.append(Side(way.name, run, sets, flops, seconds=seconds))
    us = interleaved(sides, rounds)
    ways = {way.name: way for way in WAYS}
    return [
        {"set": "programs", "mnk": [size] * 3, "dtype": "f16", "b": "k", "kernel": side.name, "us": us[side.name],
         "cublas_us": us["cuBLAS"], "error": side.error,
         "cutedsl_us": PEER.get(size, {}).get(ways[side.name].sizes) if side.name in ways else None,
         "cutedsl_cublas_us": PEER.get(size, {}).get("cublas")}
        for side in sides
    ]  # fmt: skip


def rows_of(records: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    rows = []
    for r in records:
        peer, peer_cublas = r["cutedsl_us"], r["cutedsl_cublas_us"]
        theirs = (f"{peer:.1f}", f"{peer_cublas / peer:.3f}", f"{peer / r['us']:.3f}") if peer else ("", "", "")
        rows.append((str(r["mnk"][0]), r["kernel"], f"{r['us']:.1f}", f"{r['cublas_us'] / r['us']:.3f}", *theirs))
    return rows


def main(given: list[str] | None = None) -> int:
    import tilewright.compat

    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path)
    parser.add_argument("--sizes", nargs="*", type=int, default=[4096, 8192])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.02, help="of one turn")
    parser.add_argument("--dry-run", action="store_true")
    args = parser.parse_args(given)
    tilewright.compat.install(replace=True)
    if args.dry_run:
        for way in WAYS:
            made = artifact(way)
            print(f"{way.name}: {made.registers} registers, {made.spills} bytes spilled {' '.join(made.warnings)}")
        return 0
    records = [record for size in args.sizes for record in measure(size, args.rounds, args.seconds)]
    header = ("n", "program", "us", "of cuBLAS", "CuTe DSL us", "of its cuBLAS", "speed against it")
    table("programs in the CuTe DSL's style, float16", rows_of(records), header)
    if args.write:
        where = "h200" if "H200" in torch.cuda.get_device_name() else "gpu"
        print(write_results("programs", where, records, args.write))
    return 0


if __name__ == "__main__":
    sys.exit(main())
