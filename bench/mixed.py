"""Rows of 16-bit floats times a weight of 4 or 8 bits, against fp16 cuBLAS and torch._weight_int4pack_mm, on a GPU.

    python bench/mixed.py [--write DIR] [--shapes 4096,4096 ...] [--rows 1 8 16 ...] [--bits 8] [--sizes]

Shapes are n,k of the weight; groups of 128, bf16. Buffers rotate so that the weights together exceed three
times the L2; launches are replayed from CUDA graphs in turns, in random order; medians. Each result is compared with
the float64 product of 64 columns before it is timed. GB/s counts the weight, its scales, rows and result once.
For few rows the product with the weight written out is timed, too; ``--sizes`` times the kernel for them in more sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from figures import gpu_model, table, write_results
from sides import beyond_l2, medians, parser_of

from tilewright.gemm import PreparedWeight, matmul, mixed_matmul, prepare_weight
from tilewright.gemm.operators.mixed import MOST_ROWS, FewRows, written_out

SHAPES = [(4096, 4096), (11008, 4096), (8192, 28672)]
ROWS_TIMED = [1, 8, 16, 64, 256, 4096]
GROUP = 128
SIZES = {
    16: [
        (16, 4, (1, 8), 2), (16, 4, (1, 16), 1), (32, 2, (1, 8), 2), (32, 3, (1, 8), 1), (32, 2, (1, 4), 4),
        (64, 2, (1, 8), 1), (64, 2, (2, 8), 1),
    ],
    32: [
        (16, 2, (1, 8), 1), (32, 2, (2, 4), 1), (32, 2, (2, 8), 1), (64, 2, (4, 2), 1), (64, 3, (4, 2), 1),
        (64, 2, (4, 3), 1), (64, 2, (4, 4), 1), (64, 2, (2, 4), 1), (128, 2, (4, 2), 1), (128, 2, (8, 2), 1),
    ],
    64: [
        (16, 2, (1, 8), 1), (32, 2, (2, 4), 1), (32, 2, (2, 6), 1), (64, 2, (4, 2), 1), (64, 1, (4, 3), 1),
        (64, 2, (4, 3), 1), (128, 2, (8, 1), 1),
    ],
}  # fmt: skip
"""By the most rows: columns of a block, tiles of K under way, warps that share the columns and that share K, blocks a
multiprocessor."""


@dataclass
class Operands:
    """One product for all sides."""

    a: torch.Tensor
    weight: PreparedWeight
    dense: torch.Tensor  # (K, N), what cuBLAS multiplies
    packed: Any  # what torch._weight_int4pack_mm takes
    ours: torch.Tensor

    @classmethod
    def draw(cls, m: int, n: int, k: int, bits: int) -> Operands:
        a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        most = 1 << bits - 1
        numbers = torch.randint(-most, most, (n, k), device="cuda", dtype=torch.int8)
        scales = (torch.rand(n, k // GROUP, device="cuda") + 0.5).bfloat16() / (8 * most)
        dense = (numbers * scales.repeat_interleave(GROUP, 1)).bfloat16()
        weight, ours = prepare_weight(numbers, scales, bits=bits), a.new_empty(m, n)
        if bits == 8:
            return cls(a, weight, dense.T, None, ours)
        try:
            pairs = (numbers + 8).to(torch.uint8)
            words = torch._convert_weight_to_int4pack(pairs[:, ::2] << 4 | pairs[:, 1::2], 8)
            packed = words, torch.stack((scales.T, torch.zeros_like(scales.T)), 2).contiguous()
        except RuntimeError as error:
            print(f"  torch._weight_int4pack_mm: {str(error).splitlines()[0][:150]}")
            packed = None
        return cls(a, weight, dense.T, packed, ours)

    def error(self) -> float:
        """||out - exact|| / ||exact|| on 64 columns."""
        exact = self.a.double() @ self.dense[:, :64].double()
        return float((self.ours[:, :64].double() - exact).norm() / exact.norm())


def few_rows(x: Operands, columns: int, stages: int, warps: tuple[int, int], blocks: int) -> None:
    product = FewRows.of(x.a, x.weight, None, x.ours, None)
    tile = (product.config.tile[0], columns, product.config.tile[2])
    config = replace(product.config, tile=tile, stages=stages, warps=warps, blocks=blocks)
    replace(product, config=config).run()


def measure(m: int, n: int, k: int, bits: int, sizes: bool, rounds: int) -> list[dict[str, Any]]:
    sets = [Operands.draw(m, n, k, bits) for _ in range(max(2, min(12, beyond_l2(n * k * bits // 8))))]
    sides: dict[str, Any] = {
        "ours": lambda x: mixed_matmul(x.a, x.weight, out=x.ours),
        "cublas": lambda x: torch.mm(x.a, x.dense),
        "int4pack": lambda x: torch._weight_int4pack_mm(x.a, x.packed[0], GROUP, x.packed[1]),
    }
    if sets[0].packed is None:
        del sides["int4pack"]
    if m <= MOST_ROWS:
        sides["written out"] = lambda x: matmul(x.a, written_out(x.weight, x.a).T, x.ours)
    if sizes and bits == 4 and m <= MOST_ROWS:
        for size in next(sizes for rows, sizes in SIZES.items() if m <= rows):
            sides["columns {}, stages {}, warps {}, blocks {}".format(*size)] = lambda x, size=size: few_rows(x, *size)
    sets[0].ours.fill_(float("nan"))
    sides["ours"](sets[0])
    error = sets[0].error()
    assert error < 5e-3, f"{m} {n} {k}: relative error {error}"
    gigabytes = (n * k * bits / 8 + 2 * n * k / GROUP + 2 * m * (n + k)) * 1e-9
    found = medians(sides, [(x,) for x in sets], max(2.0 * m * n * k, gigabytes * 3e11), rounds)  # as long as 3 TB/s
    return [
        {
            "mnk": [m, n, k],
            "bits": bits,
            "kernel": name,
            "us": us,
            "gb_s": gigabytes / us * 1e6,
            "error": error,
            "cublas_us": found["cublas"],
        }
        for name, us in found.items()
    ]


def main() -> None:
    parser = parser_of(__doc__, SHAPES)
    parser.add_argument("--rows", nargs="*", type=int, default=ROWS_TIMED)
    parser.add_argument("--bits", type=int, choices=(4, 8), default=4, help="of a number of the weight")
    parser.add_argument("--sizes", action="store_true", help="the kernel for few rows in all sizes, too (4 bits)")
    args = parser.parse_args()
    torch.manual_seed(0)
    records = []
    for text in args.shapes:
        n, k = map(int, text.split(","))
        rows = []
        for m in args.rows:
            found = measure(m, n, k, args.bits, args.sizes, args.rounds)
            records += found
            if args.write:
                write_results("mixed", gpu_model(), records, args.write)
            for one in sorted(found, key=lambda record: record["us"]):
                ratio = one["cublas_us"] / one["us"]
                rows.append((str(m), one["kernel"], f"{one['us']:.2f}", f"{one['gb_s']:.0f}", f"{ratio:.3f}"))
        table(f"weight {text}, {args.bits} bits", rows, ("m", "kernel", "us", "GB/s", "of cuBLAS"))


if __name__ == "__main__":
    main()
