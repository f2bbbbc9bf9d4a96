"""Stacks of products against torch.bmm, in one run, from CUDA graphs and from an eager loop, on a GPU.

    python bench/batched.py [--write DIR] [--shapes 256,128,128,64 ...] [--dtypes f16 bf16]

A shape is batch, m, n, k; A is (batch, m, k), B lies as (batch, n, k), as the keys of attention do. Normal inputs;
buffers rotate so that together they exceed three times the L2; graphs are replayed in turns, in random order; medians.
``eager`` is the wall time of a loop of calls that ends with a synchronisation. Results are compared with PyTorch's.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch
from figures import gpu_model, table, write_results
from sides import medians, parser_of

from tilewright.gemm import matmul

SHAPES = [(256, 128, 128, 64), (64, 512, 512, 64), (32, 1024, 1024, 128), (16, 2048, 2048, 128), (512, 64, 64, 64)]
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
CALLS = 200
TOLERANCE = 2e-2  # of sums of 16 bits, relative to the largest


def ours(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    matmul(a, b, out)


def theirs(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    torch.bmm(a, b, out=out)


def operands(shape: tuple[int, ...], dtype: torch.dtype) -> list[tuple[torch.Tensor, ...]]:
    """Sets of (a, b, out)."""
    batch, m, n, k = shape
    size = dtype.itemsize * batch * (m * k + n * k + m * n)
    count = max(2, -(-3 * torch.cuda.get_device_properties(0).L2_cache_size // size))

    def normal(*extents: int) -> torch.Tensor:
        return torch.randn(extents, device="cuda", dtype=dtype)

    return [(normal(batch, m, k), normal(batch, n, k).mT, normal(batch, m, n)) for _ in range(count)]


def error(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> float:
    ours(a, b, out)
    exact = torch.bmm(a.float(), b.float())
    return float((out.float() - exact).abs().max() / exact.abs().max())


def eager_us(run: Any, sets: list[tuple[torch.Tensor, ...]]) -> float:
    """Microseconds of a call in a loop of calls."""
    for one in sets:
        for _ in range(3):
            run(*one)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for i in range(CALLS):
        run(*sets[i % len(sets)])
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / CALLS * 1e6


def measure(shape: tuple[int, ...], name: str, rounds: int) -> dict[str, Any]:
    batch, m, n, k = shape
    sets = operands(shape, DTYPES[name])
    found = error(*sets[0])
    assert found < TOLERANCE, f"{shape}: relative error {found}"
    graphs = medians({"ours": ours, "torch": theirs}, sets, 2.0 * batch * m * n * k, rounds)
    loops: dict[str, list[float]] = {"ours": [], "torch": []}
    for _ in range(rounds):
        loops["ours"].append(eager_us(ours, sets))
        loops["torch"].append(eager_us(theirs, sets))
    eager = {side: statistics.median(times) for side, times in loops.items()}
    return {
        "set": "batched",
        "bmnk": list(shape),
        "dtype": name,
        "us": graphs["ours"],
        "torch_us": graphs["torch"],
        "eager_us": eager["ours"],
        "torch_eager_us": eager["torch"],
        "error": found,
    }


def main() -> None:
    parser = parser_of(__doc__, SHAPES, rounds=7)
    parser.add_argument("--dtypes", nargs="*", default=["bf16"], choices=list(DTYPES))
    args = parser.parse_args()
    torch.manual_seed(0)
    shapes = [tuple(map(int, text.split(","))) for text in args.shapes]
    records = [measure(shape, name, args.rounds) for name in args.dtypes for shape in shapes]
    rows = [
        (
            f"{one['dtype']} {'x'.join(map(str, one['bmnk']))}",
            f"{one['us']:.1f}",
            f"{one['torch_us'] / one['us']:.3f}",
            f"{one['torch_eager_us'] / one['eager_us']:.3f}",
        )
        for one in records
    ]
    table("stacks of products", rows, ("batch x m x n x k", "us", "of torch.bmm, graphs", "eager"))
    if args.write:
        write_results("batched", gpu_model(), records, args.write)


if __name__ == "__main__":
    main()
