"""Rows of 16-bit floats times a weight of 4 or 8 bits, against fp16 cuBLAS and torch._weight_int4pack_mm, on a GPU.

    python bench/mixed.py [--write DIR] [--shapes 4096,4096 ...] [--rows 1 8 16 ...] [--kinds int4 ...] [--sizes]

Shapes are n,k of the weight; groups of 128, bf16. Buffers rotate so that the weights together exceed three
times the L2; launches are replayed from CUDA graphs in turns, in random order; medians. Each result is compared with
the float64 product of 64 columns before it is timed. GB/s counts the weight, its scales, rows and result once.
The kernels that were not chosen are timed, too: few rows (mma.sync), wgmma, and the weight written out before a
product; ``--sizes`` times those for few rows and of wgmma in more sizes. With ``--rows-of float8_e4m3fn`` "bf16 rows"
is the same product of bf16 rows, and "fp8" torch._scaled_mm of the rows and the weight in e4m3, with one scale each.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
from figures import gpu_model, table, write_results
from sides import beyond_l2, medians, parser_of

from tilewright.gemm import PreparedWeight, mixed_matmul, prepare_weight
from tilewright.gemm.operators.mixed import MOST_ROWS, MixedProduct
from tilewright.gemm.operators.mixed_hopper import chosen_size, entry_of

SHAPES = [(4096, 4096), (11008, 4096), (8192, 28672)]
ROWS_TIMED = [1, 8, 16, 64, 256, 4096]
GROUP = 128
BITS = {"int4": 4, "int8": 8, "e4m3": 8, "e2m1": 4}
E2M1 = [sign * x for sign in (1, -1) for x in (0, 0.5, 1, 1.5, 2, 3, 4, 6)]
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


WGMMA_SIZES = {
    64: [(128, 64, 1, 1), (128, 64, 1, 2), (64, 64, 1, 1), (64, 64, 1, 2), (256, 64, 1, 1), (256, 64, 1, 2)],
    256: [(128, 128, 1, 1), (128, 256, 1, 1), (256, 128, 1, 1), (64, 256, 1, 1), (128, 128, 2, 1), (128, 128, 1, 2)],
    4096: [(128, 256, 1, 1), (256, 128, 1, 1), (128, 256, 2, 1), (256, 128, 2, 1), (128, 192, 1, 1)],
}
"""By the most rows: rows of the weight and of A in a tile, blocks that share rows of A, blocks that share k tiles."""

NARROW_SIZES = {
    64: [(128, 64, 1, 1), (64, 64, 1, 1), (128, 64, 1, 2), (64, 64, 1, 2), (192, 64, 1, 1)],
    256: [(128, 128, 1, 1), (128, 128, 1, 2), (64, 128, 1, 1), (128, 64, 1, 1), (192, 64, 1, 1), (64, 64, 1, 1)],
    4096: [(128, 192, 1, 1), (128, 192, 2, 1), (128, 176, 2, 1), (128, 128, 2, 1), (192, 112, 2, 1), (64, 192, 1, 1)],
}
"""The same for rows of 8 bits."""


@dataclass
class Operands:
    """One product for all sides."""

    a: torch.Tensor
    weight: PreparedWeight
    dense: torch.Tensor  # (K, N), what cuBLAS multiplies
    packed: Any  # what torch._weight_int4pack_mm takes
    ours: torch.Tensor
    wide: torch.Tensor  # a in bf16
    dense_8: torch.Tensor | None  # the weight in e4m3, where a is

    @classmethod
    def draw(cls, m: int, n: int, k: int, kind: str, rows_of: str = "bfloat16") -> Operands:
        a = torch.randn(m, k, device="cuda").to(getattr(torch, rows_of))
        scales, packed = (torch.rand(n, k // GROUP, device="cuda") + 0.5).bfloat16() / 8, None
        if kind in ("int4", "int8"):
            most = 1 << BITS[kind] - 1
            numbers = torch.randint(-most, most, (n, k), device="cuda", dtype=torch.int8)
            scales, values = scales / most, numbers
            weight = prepare_weight(numbers, scales, bits=BITS[kind])
        elif kind == "e4m3":
            numbers = torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn)
            weight, values = prepare_weight(numbers, scales), numbers.bfloat16()
        else:
            pairs = torch.randint(0, 256, (n, k // 2), device="cuda", dtype=torch.uint8)
            codes = torch.stack((pairs & 15, pairs >> 4), -1).reshape(n, k).long()
            weight, values = prepare_weight(pairs, scales), torch.tensor(E2M1, device="cuda").bfloat16()[codes]
        dense = (values * scales.repeat_interleave(GROUP, 1)).bfloat16()
        if kind == "int4":
            try:
                pairs = (numbers + 8).to(torch.uint8)
                words = torch._convert_weight_to_int4pack(pairs[:, ::2] << 4 | pairs[:, 1::2], 8)
                packed = words, torch.stack((scales.T, torch.zeros_like(scales.T)), 2).contiguous()
            except RuntimeError as error:
                print(f"  torch._weight_int4pack_mm: {str(error).splitlines()[0][:150]}")
        dense_8 = (values.float() / 32).to(a.dtype).T if a.itemsize == 1 else None
        ours = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        return cls(a, weight, dense.T, packed, ours, a.bfloat16(), dense_8)

    def product(self) -> MixedProduct:
        return MixedProduct.of(self.a, self.weight, None, self.ours, None)

    def error(self) -> float:
        """||out - exact|| / ||exact|| on 64 columns."""
        exact = self.a.double() @ self.dense[:, :64].double()
        return float((self.ours[:, :64].double() - exact).norm() / exact.norm())


def few_rows(x: Operands, columns: int, stages: int, warps: tuple[int, int], blocks: int) -> None:
    call = x.product()
    usual = call.few_rows_config()
    tile = (usual.tile[0], columns, usual.tile[2])
    call.few_rows(replace(usual, tile=tile, stages=stages, warps=warps, blocks=blocks))


def by_wgmma(x: Operands, size: tuple[int, int, int, int]) -> None:
    """In one size of the kernel."""
    call = x.product()
    entry = entry_of(x.weight, call.problem.A.dtype, call.problem.D.dtype)
    found = [one for one in entry.sizes if (*one.tile[:2], one.cluster[0], one.cluster_k) == size]
    assert call.by_wgmma(entry.only(found[0]))


def sides_of(x: Operands, kind: str, sizes: bool) -> dict[str, Any]:
    """What is timed for operands like these, by name."""
    m = x.a.shape[0]
    sides: dict[str, Any] = {
        "ours": lambda x: mixed_matmul(x.a, x.weight, out=x.ours),
        "cublas": lambda x: torch.mm(x.wide, x.dense),
        "wgmma": lambda x: x.product().by_wgmma(),
    }
    if x.dense_8 is None:
        sides["written out"] = lambda x: x.product().with_weight_written_out()
    else:
        one = torch.ones((), device="cuda")
        types = {"out_dtype": torch.bfloat16, "use_fast_accum": True}
        sides["bf16 rows"] = lambda x: mixed_matmul(x.wide, x.weight, out=x.ours)
        sides["fp8"] = lambda x: torch._scaled_mm(x.a, x.dense_8, one, one, **types)
        sides["written out"] = lambda x: x.product().with_narrow_weight_written_out()
    if x.packed is not None and m <= 256:
        sides["int4pack"] = lambda x: torch._weight_int4pack_mm(x.wide, x.packed[0], GROUP, x.packed[1])
    if m <= MOST_ROWS:
        sides["few rows"] = lambda x: x.product().few_rows()
        for size in next(found for rows, found in SIZES.items() if m <= rows) if sizes and kind == "int4" else []:
            sides["columns {}, stages {}, warps {}, blocks {}".format(*size)] = lambda x, size=size: few_rows(x, *size)
    if sizes and m >= 16:
        known = WGMMA_SIZES if x.dense_8 is None else NARROW_SIZES
        for tile in next(found for rows, found in known.items() if m <= rows):
            sides["wgmma {} x {}, cluster {}, slices {}".format(*tile)] = lambda x, tile=tile: by_wgmma(x, tile)
    return sides


def measure(m: int, n: int, k: int, kind: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    bits, rounds = BITS[kind], args.rounds
    sets = [Operands.draw(m, n, k, kind, args.rows_of) for _ in range(max(2, min(12, beyond_l2(n * k * bits // 8))))]
    sides = sides_of(sets[0], kind, args.sizes)
    if args.sides:
        sides = {name: side for name, side in sides.items() if name in (*args.sides, "cublas")}
    errors = {}
    for name, side in sides.items():
        if name not in ("cublas", "int4pack", "fp8"):
            for operands in (sets[0], sets[-1]):  # the second one is launched as the first one was
                operands.ours.fill_(float("nan"))
                side(operands)
            errors[name] = max(sets[0].error(), sets[-1].error())
            assert errors[name] < 5e-3, f"{name} {m} {n} {k}: relative error {errors[name]}"
    print(f"  {m} rows: {chosen_size(sets[0].product().problem, sets[0].weight)}")
    gigabytes = (n * k * bits / 8 + 2 * n * k / GROUP + 2 * m * (n + k)) * 1e-9
    found = medians(sides, [(x,) for x in sets], max(2.0 * m * n * k, gigabytes * 3e11), rounds)  # as long as 3 TB/s
    return [
        {
            "mnk": [m, n, k],
            "weight": kind,
            "rows": args.rows_of,
            "kernel": name,
            "us": us,
            "gb_s": gigabytes / us * 1e6,
            "error": errors.get(name),
            "cublas_us": found["cublas"],
        }
        for name, us in found.items()
    ]


def main() -> None:
    parser = parser_of(__doc__, SHAPES)
    parser.add_argument("--rows", nargs="*", type=int, default=ROWS_TIMED)
    parser.add_argument("--kinds", nargs="*", choices=BITS, default=["int4"], help="the numbers of the weight")
    parser.add_argument("--rows-of", default="bfloat16", choices=["bfloat16", "float8_e4m3fn"], help="their type")
    parser.add_argument("--sizes", action="store_true", help="the kernels for few rows and of wgmma in more sizes")
    parser.add_argument("--sides", nargs="*", help="only these, beside cuBLAS: ours, wgmma, 'few rows', ...")
    args = parser.parse_args()
    torch.manual_seed(0)
    records = []
    for kind, text in product(args.kinds, args.shapes):
        n, k = map(int, text.split(","))
        rows = []
        for m in args.rows:
            found = measure(m, n, k, kind, args)
            records += found
            if args.write:
                write_results("mixed", gpu_model(), records, args.write)
            for one in sorted(found, key=lambda record: record["us"]):
                ratio = one["cublas_us"] / one["us"]
                rows.append((str(m), one["kernel"], f"{one['us']:.2f}", f"{one['gb_s']:.0f}", f"{ratio:.3f}"))
        table(f"weight {text}, {kind}", rows, ("m", "kernel", "us", "GB/s", "of cuBLAS"))


if __name__ == "__main__":
    main()
