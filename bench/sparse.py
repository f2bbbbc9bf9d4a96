"""2:4 sparse products against torch.sparse.to_sparse_semi_structured and dense cuBLAS, on a GPU.

    python bench/sparse.py [--write DIR] [--shapes 4096,4096,4096 ...] [--dtype float16] [--sizes]

Shapes are m,n,k; A (m, k) is sparse, B is (k, n), contiguous along K as a layer's tokens are, or along N with
``--b-rows``. Buffers rotate so that together they exceed three times the L2; launches are replayed from CUDA graphs in
turns, in random order; medians. Each result is compared with the float64 product of 64 rows before it is timed.
``--sizes`` times a list of the kernel's sizes, too. float32 is multiplied as tf32 by all sides.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import Any

import torch
from figures import gpu_model, table, write_results
from sides import beyond_l2, medians, parser_of

from tilewright.gemm import CompressedMatrix, compress_2_4, sparse_matmul
from tilewright.gemm.choice.registry import sparse_kernels

SHAPES = [(4096, 4096, 4096), (8192, 8192, 8192), (4096, 512, 4096), (11008, 4096, 4096)]
NAMES = {"float16": "hopper_sparse_f16", "bfloat16": "hopper_sparse_bf16", "float32": "hopper_sparse_tf32"}
SIZES: list[dict[str, Any]] = [
    {"tile": (128, 256, 64), "stages": 4},
    {"tile": (128, 256, 64), "stages": 5, "epilogue_columns": 32},
    {"tile": (128, 256, 64), "stages": 5, "epilogue_columns": 32, "cluster": (2, 1)},
    {"tile": (128, 256, 64), "stages": 5, "epilogue_columns": 32, "cluster": (1, 2)},
    {"tile": (128, 256, 128), "stages": 2, "epilogue_columns": 32, "cluster": (2, 1)},
    {"tile": (128, 256, 64), "stages": 4, "cluster": (2, 1)},
    {"tile": (256, 128, 64), "stages": 4, "cluster": (2, 1)},
    {"tile": (256, 176, 64), "stages": 5, "epilogue_columns": 16, "cluster": (2, 1)},
    {"tile": (128, 192, 128), "stages": 3, "epilogue_columns": 32, "cluster": (2, 1)},
    {"tile": (128, 192, 64), "stages": 6, "epilogue_columns": 32, "pingpong": True, "cluster": (2, 1)},
    {"tile": (256, 128, 64), "stages": 5, "epilogue_columns": 32, "cluster": (2, 1)},
    {"tile": (256, 192, 64), "stages": 4, "epilogue_columns": 32, "cluster": (1, 2)},
    {"tile": (256, 128, 128), "stages": 3, "epilogue_columns": 16, "cluster": (1, 2)},
]


@dataclass
class Operands:
    """One product for all sides."""

    dense: torch.Tensor
    compressed: CompressedMatrix
    theirs: Any
    b: torch.Tensor
    ours: torch.Tensor

    @classmethod
    def draw(cls, m: int, n: int, k: int, dtype: Any, b_rows: bool) -> Operands:
        of = 2 if dtype is torch.float32 else 4  # tf32: one of two is kept
        chunks = torch.randn(m, k // of, of, device="cuda", dtype=dtype)
        keep = torch.rand(m, k // of, of, device="cuda").argsort(-1) < of // 2
        dense = (chunks * keep).reshape(m, k)
        b = torch.randn(k, n, device="cuda", dtype=dtype) if b_rows else torch.randn(n, k, device="cuda", dtype=dtype).T
        try:
            theirs = torch.sparse.to_sparse_semi_structured(dense)
        except RuntimeError as error:
            print(f"  to_sparse_semi_structured: {str(error).splitlines()[0][:150]}")
            theirs = None
        return cls(dense, compress_2_4(dense), theirs, b, dense.new_empty(m, n))

    def error(self) -> float:
        """||out - exact|| / ||exact|| on 64 rows."""
        exact = self.dense[:64].double() @ self.b.double()
        return float((self.ours[:64].double() - exact).norm() / exact.norm())


def in_size(dtype: Any, b_rows: bool, change: dict[str, Any]) -> Any:
    """The kernel in one size; None where it does not fit."""
    entry = sparse_kernels()[NAMES[str(dtype).partition(".")[2]]]
    return entry.only(replace(entry.config, **change))


def measure(m: int, n: int, k: int, args: argparse.Namespace) -> list[dict[str, Any]]:
    dtype = getattr(torch, args.dtype)
    one = dtype.itemsize * (m * k + k * n + m * n)
    sets = [Operands.draw(m, n, k, dtype, args.b_rows) for _ in range(max(2, min(8, beyond_l2(one))))]
    sides: dict[str, Any] = {
        "ours": lambda x: sparse_matmul(x.compressed, x.b, x.ours),
        "cublas": lambda x: torch.mm(x.dense, x.b),
    }
    if sets[0].theirs is not None:
        sides["semi_structured"] = lambda x: torch.mm(x.theirs, x.b)
    for change in SIZES if args.sizes else []:
        entry = in_size(dtype, args.b_rows, change)
        sides[" ".join(f"{name}={value}" for name, value in change.items())] = lambda x, entry=entry: sparse_matmul(
            x.compressed, x.b, x.ours, kernel=entry
        )
    for name, side in list(sides.items()):
        if name in ("cublas", "semi_structured"):
            continue
        sets[0].ours.fill_(float("nan"))
        try:
            side(sets[0])
            torch.cuda.synchronize()
        except Exception as error:
            print(f"  {name}: {str(error).splitlines()[0][:200]}")
            if name == "ours":
                raise
            del sides[name]
            continue
        error_of = sets[0].error()
        assert error_of < 2e-3 * (8 if dtype is torch.bfloat16 else 1), f"{name} {m} {n} {k}: relative error {error_of}"
    found = medians(sides, [(x,) for x in sets], 2.0 * m * n * k, args.rounds)
    return [
        {
            "mnk": [m, n, k],
            "dtype": args.dtype,
            "kernel": name,
            "us": us,
            "cublas_us": found["cublas"],
            "semi_structured_us": found.get("semi_structured"),
            "tflops": 2e-6 * m * n * k / us,
        }
        for name, us in found.items()
    ]


def main() -> None:
    parser = parser_of(__doc__, SHAPES)
    parser.add_argument("--dtype", choices=list(NAMES), default="float16")
    parser.add_argument("--b-rows", action="store_true", help="B contiguous along N")
    parser.add_argument("--sizes", action="store_true", help="a list of the kernel's sizes, too")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    records = []
    for text in args.shapes:
        m, n, k = map(int, text.split(","))
        found = measure(m, n, k, args)
        records += found
        if args.write:
            write_results("sparse", gpu_model(), records, args.write)
        theirs = found[0]["semi_structured_us"] or found[0]["cublas_us"]
        rows = [
            (one["kernel"], f"{one['us']:.2f}", f"{one['tflops']:.0f}", f"{theirs / one['us']:.3f}")
            for one in sorted(found, key=lambda record: record["us"])
        ]
        table(text, rows, ("kernel", "us", "TFLOP/s", "of semi_structured"))


if __name__ == "__main__":
    main()
