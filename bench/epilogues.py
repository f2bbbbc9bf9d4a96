"""Activations in the epilogue against the same product without, and against PyTorch's product and activation, on a GPU.

    python bench/epilogues.py [--write DIR] [--shapes 8192,8192,1024 ...] [--names gelu silu ...]

bf16, normal inputs, a bias for each column; buffers rotate so that together they exceed three times the L2; launches
are replayed from CUDA graphs in turns, in random order; medians. 64 rows of every result are compared with PyTorch's
in float64 before the times are shown.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from figures import gpu_model, table, write_results
from sides import medians

from tilewright.gemm import matmul
from tilewright.gemm.epilogue.activations import ACTIVATIONS

SHAPES = [(8192, 8192, 1024), (4096, 16384, 2048), (4096, 16384, 4096), (512, 4096, 4096)]
NAMES = ("relu", "gelu", "gelu_tanh", "silu")
PLAIN = "bias alone"
TOLERANCE = 2e-2  # of bf16 sums, relative to the largest


def operands(m: int, n: int, k: int) -> list[tuple[torch.Tensor, ...]]:
    """Sets of (a, weight (n, k), bias, out)."""
    size = 2 * (m * k + n * k + m * n)
    count = max(2, -(-3 * torch.cuda.get_device_properties(0).L2_cache_size // size))
    return [tuple(torch.randn(s, device="cuda", dtype=torch.bfloat16) for s in ((m, k), (n, k), (n,), (m, n)))
            for _ in range(count)]  # fmt: skip


def error(name: str, a: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, out: torch.Tensor) -> float:
    """The largest difference of 64 rows from float64, as a part of the largest number."""
    matmul(a, weight.T, out, bias=bias, activation=name)
    rows = torch.randperm(a.shape[0], device="cuda")[:64]
    exact = a[rows].double() @ weight.double().T + bias.double()
    exact = ACTIVATIONS[name].of_torch(torch.nn.functional, exact)
    return float((out[rows].double() - exact).abs().max() / exact.abs().max())


def measure(shape: tuple[int, int, int], names: list[str], rounds: int) -> list[dict[str, Any]]:
    m, n, k = shape
    sets = operands(m, n, k)
    errors = {name: error(name, *sets[0]) for name in names}
    assert all(found < TOLERANCE for found in errors.values()), errors
    functional = torch.nn.functional
    sides: dict[str, Any] = {PLAIN: lambda a, w, b, out: matmul(a, w.T, out, bias=b)}
    for name in names:
        sides[name] = lambda a, w, b, out, name=name: matmul(a, w.T, out, bias=b, activation=name)
        of_torch = ACTIVATIONS[name].of_torch
        sides[f"torch {name}"] = lambda a, w, b, out, of=of_torch: of(functional, functional.linear(a, w, b))
    found = medians(sides, sets, 2.0 * m * n * k, rounds)
    return [
        {"set": "epilogues", "mnk": list(shape), "dtype": "bf16", "kernel": name, "us": found[name],
         "alone_us": found[PLAIN], "torch_us": found[f"torch {name}"], "error": errors[name]}
        for name in names
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="*", default=[",".join(map(str, shape)) for shape in SHAPES])
    parser.add_argument("--names", nargs="*", default=list(NAMES), choices=list(ACTIVATIONS))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--write", type=Path, help="where the results file goes")
    args = parser.parse_args()
    torch.manual_seed(0)
    records: list[dict[str, Any]] = []
    for text in args.shapes:
        m, n, k = map(int, text.split(","))
        found = measure((m, n, k), args.names, args.rounds)
        records += found
        rows = [(one["kernel"], f"{one['us']:.1f}", f"{one['us'] / one['alone_us']:.3f}", f"{one['torch_us']:.1f}")
                for one in found]  # fmt: skip
        table(f"{text}, bf16", rows, ("activation", "us", "of bias alone", "torch, us"))
    if args.write:
        write_results("epilogues", gpu_model(), records, args.write)


if __name__ == "__main__":
    main()
