"""Programs in the style of the CuTe DSL's documentation (tests/compat/programs) against cuBLAS on a Hopper GPU.

    python bench/programs.py [--write DIR] [--sizes 4096 8192] [--dry-run]

float16, both operands K-major, and float32, M and N contiguous; square. Both sides run in turns in one process, as in
bench/gemm_hopper.py; beside them is what the CuTe DSL's own program of these tiles took on an H200, with cuBLAS in that
run, by the same method.
``--dry-run`` compiles for sm_90a and shows registers, spills and warnings; it needs no GPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from figures import gpu_model, table, write_results

PROGRAMS = Path(__file__).parents[1] / "tests" / "compat" / "programs"

CUBLAS = {4096: 192.3, 8192: 1607.3}
PEER = {
    "128x256 2x1": {4096: 198.97, 8192: 1571.61},
    "128x128 2x1": {4096: 203.48, 8192: 1604.26},
    "128x256 1x1": {4096: 193.15, 8192: 1604.46},
}
"""Microseconds of the CuTe DSL's persistent program on an H200 (driver 580, CUDA 13.0), 2026-11-20, and of cuBLAS
beside it: fp16, normal inputs, CUDA graphs over rotating buffers of at least three times the L2, median of 7 rounds."""


def load(name: str) -> ModuleType:
    """A program as a module; ``tilewright.compat`` is installed."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, PROGRAMS / f"{name}.py")
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@dataclass(frozen=True)
class SizedProgram:
    """A program in one size: what makes its tensors of (M, K), (N, K) and (M, N) matrices, and what compiles it for
    these, a stream and a number of multiprocessors; it is then called with tensors and stream."""

    name: str
    tensors: Callable[..., list[Any]]
    compiled: Callable[[list[Any], Any, int], Any]
    dtype: str = "f16"
    peer: dict[int, float] = field(default_factory=dict)


def hopper(program: str, schedule: str, tile: tuple[int, int], cluster: tuple[int, int]) -> SizedProgram:
    sizes = f"{tile[0]}x{tile[1]} {cluster[0]}x{cluster[1]}"

    def compiled(tensors: list[Any], stream: Any, multiprocessors: int) -> Any:
        from tilewright import Float32, cute

        if schedule == "one role":
            return cute.compile(load(program).OneRoleGemm(Float32, tile, cluster), *tensors, stream)
        clusters = multiprocessors // (cluster[0] * cluster[1])
        # Tiles go down columns of 8: what runs at one time shares operands in L2.
        gemm = load(program).PersistentGemm(schedule, Float32, tile, cluster, 8, True)
        return cute.compile(gemm, *tensors, clusters, stream)

    return SizedProgram(f"{schedule} {sizes}", row_major, compiled, peer=PEER.get(sizes, {}))


def row_major(*matrices: torch.Tensor) -> list[Any]:
    """(rows, columns, 1), dynamic layouts."""
    from tilewright.cute.runtime import from_dlpack

    found = []
    for matrix in matrices:
        tensor = from_dlpack(matrix.unsqueeze(-1), assumed_align=16).mark_layout_dynamic(leading_dim=1)
        found.append(tensor.mark_compact_shape_dynamic(mode=1, stride_order=(2, 0, 1), divisibility=8))
    return found


def tensor_op(tensors: list[Any], stream: Any, _: int) -> Any:
    """Blocks of 2x2 warps."""
    from tilewright import Float16, Float32, cute

    gemm = load("tensorop_gemm").TensorOpGemm(Float16, Float16, Float32, (2, 2, 1), (128, 128, 32))
    return cute.compile(gemm, *tensors, stream=stream)


def m_and_n_contiguous(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> list[Any]:
    """(rows, columns): the columns of A and B contiguous, and the rows of the result."""
    from tilewright.cute.runtime import from_dlpack

    found = []
    for matrix, leading in ((a, 0), (b, 0), (out, 1)):
        tensor = from_dlpack(matrix, assumed_align=16).mark_layout_dynamic(leading_dim=leading)
        found.append(tensor.mark_compact_shape_dynamic(mode=leading, divisibility=4))
    return found


def sgemm(tensors: list[Any], stream: Any, _: int) -> Any:
    from tilewright import cute

    return cute.compile(load("sgemm").SGemm((128, 128, 8), 3, 256), *tensors, stream=stream)


WAYS = (
    hopper("hopper_dense_gemm", "one role", (128, 256), (2, 1)),
    hopper("hopper_dense_gemm", "one role", (128, 128), (2, 1)),
    hopper("hopper_pingpong_gemm", "cooperative", (128, 256), (2, 1)),
    hopper("hopper_pingpong_gemm", "cooperative", (128, 256), (1, 1)),
    hopper("hopper_pingpong_gemm", "cooperative", (128, 128), (2, 1)),
    hopper("hopper_pingpong_gemm", "pingpong", (64, 256), (2, 1)),
    hopper("hopper_pingpong_gemm", "pingpong", (128, 128), (2, 1)),
    SizedProgram("mma.sync 128x128x32", row_major, tensor_op),
    SizedProgram("SIMT 128x128x8", m_and_n_contiguous, sgemm, "f32"),
)


def artifact(way: SizedProgram) -> Any:
    """The machine code for sm_90a."""
    import tilewright.cuda
    from tilewright.cute.runtime import make_fake_stream

    dtype = {"f16": torch.float16, "f32": torch.float32}[way.dtype]
    a, b, out = (torch.zeros(256, 256, dtype=dtype) for _ in range(3))
    tensors = way.tensors(a, b, out) if way.dtype == "f16" else way.tensors(a.t(), b.t(), out)
    (kernel,) = way.compiled(tensors, make_fake_stream(), 132).kernels
    return tilewright.cuda.compile(kernel, "sm_90a")


def measure(size: int, dtype: str, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """The programs of one type and cuBLAS, in turns."""
    from gemm_hopper import problem
    from sides import Side, cublas, interleaved

    from tilewright.torch import current_stream

    ways = {way.name: way for way in WAYS if way.dtype == dtype}
    sets = problem(size, size, size, dtype, "k" if dtype == "f16" else "n")
    if dtype == "f32":
        sets = [(a.t().contiguous().t(), *others) for a, *others in sets]
    count = torch.cuda.get_device_properties(0).multi_processor_count
    flops = 2.0 * size**3
    sides = [Side("cuBLAS", cublas, sets, flops, 3, seconds=seconds)]
    for way in ways.values():
        calls = {s[2].data_ptr(): way.tensors(s[0], s[1].t(), s[2]) for s in sets}
        program = way.compiled(next(iter(calls.values())), current_stream(), count)

        def run(a: Any, b: Any, out: Any, _: Any, program: Any = program, calls: Any = calls) -> None:
            program(*calls[out.data_ptr()], current_stream())

        sides.append(Side(way.name, run, sets, flops, seconds=seconds))
    us = interleaved(sides, rounds)
    return [
        {
            "set": "programs",
            "mnk": [size] * 3,
            "dtype": dtype,
            "kernel": side.name,
            "us": us[side.name],
            "cublas_us": us["cuBLAS"],
            "error": side.error,
            "cutedsl_us": ways[side.name].peer.get(size) if side.name in ways else None,
            "cutedsl_cublas_us": CUBLAS.get(size) if dtype == "f16" else None,
        }
        for side in sides
    ]


def rows_of(records: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    rows = []
    for r in records:
        peer, peer_cublas = r["cutedsl_us"], r["cutedsl_cublas_us"]
        of_its = f"{peer_cublas / peer:.3f}" if peer and peer_cublas else ""
        theirs = (f"{peer:.1f}", of_its, f"{peer / r['us']:.3f}") if peer else ("", "", "")
        ours = f"{r['us']:.1f}", f"{r['cublas_us'] / r['us']:.3f}"
        rows.append((str(r["mnk"][0]), f"{r['kernel']} {r['dtype']}", *ours, *theirs))
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
    records = [
        record
        for size in args.sizes
        for dtype in ("f16", "f32")
        for record in measure(size, dtype, args.rounds, args.seconds)
    ]
    header = ("n", "program", "us", "of cuBLAS", "CuTe DSL us", "of its cuBLAS", "speed against it")
    table("programs in the CuTe DSL's style", rows_of(records), header)
    if args.write:
        where = gpu_model()
        print(write_results("programs", where, records, args.write))
    return 0


if __name__ == "__main__":
    sys.exit(main())
