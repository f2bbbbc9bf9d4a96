"""The GEMM kernels against cuBLAS on the GPU that is here, both in one run, interleaved.

    python bench/gemm_gpu.py [--write DIR] [--kernel NAME ...] [--shapes 4096,4096,4096 ...]

Inputs are normal; enough buffers rotate to exceed three times the L2; launches are replayed from CUDA graphs; medians
of 9 rounds; 64 rows of every result are checked against float64 before it is timed.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

import torch
from figures import gpu_model, table, write_results

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
ROUNDS = 9


def rotation(m: int, n: int, k: int, dtype: torch.dtype, integers: bool = False) -> list[tuple[torch.Tensor, ...]]:
    """Sets of (a, b, out, cuBLAS out) that together exceed three times the L2; normal, or integers in [-2, 2]."""
    size = torch.empty((), dtype=dtype).element_size() * (m * k + k * n + m * n)
    l2 = torch.cuda.get_device_properties(0).L2_cache_size

    def draw(*shape: int) -> torch.Tensor:
        values = torch.randint(-2, 3, shape, device="cuda") if integers else torch.randn(shape, device="cuda")
        return values.to(dtype)

    sets = []
    for _ in range(max(1, -(-3 * l2 // size))):
        a, b = draw(m, k), draw(k, n)
        sets.append((a, b, a.new_full((m, n), float("nan")), a.new_full((m, n), float("nan"))))
    return sets


def relative_error(sets: list[tuple[torch.Tensor, ...]], which: int) -> float:
    """The largest ||out - exact|| / ||exact|| over all sets, on 64 rows in float64."""
    worst = 0.0
    for s in sets:
        rows = torch.randperm(s[0].shape[0], device="cuda")[:64]
        exact = s[0][rows].double() @ s[1].double()
        worst = max(worst, float((s[which][rows].double() - exact).norm() / exact.norm()))
    return worst


def graph_of(run: Any, sets: list[tuple[torch.Tensor, ...]], repeat: int) -> tuple[torch.cuda.CUDAGraph, int]:
    """A graph of ``repeat`` passes over all sets, and the number of products in it."""
    stream = torch.cuda.Stream()
    # The operands may still be drawn, and results lie where numbers are that they are drawn from.
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for s in sets:
            run(*s)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(repeat):
                for s in sets:
                    run(*s)
    return graph, repeat * len(sets)


def replay_us(graph: torch.cuda.CUDAGraph, products: int) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3 / products


def measure(kernel: str, m: int, n: int, k: int, integers: bool = False) -> dict[str, Any]:
    from tilewright.gemm import kernels

    return measure_entry(kernels()[kernel], m, n, k, integers)


def measure_entry(
    entry: Any, m: int, n: int, k: int, integers: bool = False, decomposition: str = "auto"
) -> dict[str, Any]:
    """One record of the results file: the kernel and cuBLAS on one shape, interleaved."""
    from tilewright.gemm import launcher

    short = entry.name.split("_")[1]
    dtype = DTYPES[short]
    sets = rotation(m, n, k, dtype, integers)
    by_address = {s[2].data_ptr(): launcher(s[0], s[1], s[2], kernel=entry, decomposition=decomposition) for s in sets}

    def ours(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, _: torch.Tensor) -> None:
        by_address[out.data_ptr()]()

    def cublas(a: torch.Tensor, b: torch.Tensor, _: torch.Tensor, out: torch.Tensor) -> None:
        torch.mm(a, b, out=out)

    estimate = 2 * m * n * k / (300e12 if dtype != torch.float32 else 30e12)
    repeat = max(1, round(0.02 / (estimate * len(sets))))
    graphs = [graph_of(run, sets, repeat) for run in (ours, cublas)]
    error, cublas_error = relative_error(sets, 2), relative_error(sets, 3)
    limit = 1e-5 if dtype == torch.float32 else 1e-2
    assert error < limit, f"{entry.name} {m}x{n}x{k}: relative error {error}"
    times: tuple[list[float], list[float]] = ([], [])
    for round_ in range(ROUNDS + 1):
        for side, (graph, products) in enumerate(graphs):
            us = replay_us(graph, products)
            if round_:
                times[side].append(us)
    us, cublas_us = (statistics.median(t) for t in times)
    tflops = 2 * m * n * k / us * 1e-6
    return {
        "set": "integers" if integers else "normal",
        "mnk": [m, n, k],
        "dtype": short,
        "kernel": entry.name,
        "us": us,
        "cublas_us": cublas_us,
        "error": error,
        "cublas_error": cublas_error,
        "tflops": tflops,
        "cublas_tflops": tflops * us / cublas_us,
        "ratio": cublas_us / us,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path)
    parser.add_argument("--kernel", nargs="*", default=["simt_f32", "tensorop_f16", "tensorop_bf16"])
    parser.add_argument("--shapes", nargs="*", default=["4096,4096,4096", "8192,8192,8192"])
    parser.add_argument("--integers", action="store_true", help="also with small integers, which draw less power")
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    inputs = (False, True) if args.integers else (False,)
    shapes = [tuple(map(int, shape.split(","))) for shape in args.shapes]
    records = [measure(kernel, *shape, i) for kernel in args.kernel for shape in shapes for i in inputs]
    rows = [
        (
            f"{r['kernel']} {r['set']}",
            "x".join(map(str, r["mnk"])),
            f"{r['us']:.1f}",
            f"{r['tflops']:.1f}",
            f"{r['cublas_tflops']:.1f}",
            f"{r['ratio']:.3f}",
            f"{r['error']:.1e}",
        )
        for r in records
    ]
    table("GEMM on the GPU", rows, ("kernel", "m x n x k", "us", "TFLOP/s", "cuBLAS TFLOP/s", "ratio", "error"))
    if args.write:
        print(write_results("gemm", gpu_model(), records, args.write))


if __name__ == "__main__":
    main()
