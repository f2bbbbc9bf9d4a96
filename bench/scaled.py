"""Products of scaled 8-bit floats against torch._scaled_mm (cuBLASLt), both in one run, interleaved, on a GPU.

    python bench/scaled.py [--write DIR] [--kinds tensor row block] [--shapes 4096,4096,4096 ...]
    python bench/scaled.py --kinds block --sizes 12 --shapes 4096,4096,4096     # the best sizes by the model, too

Operands are normal numbers, rounded to e4m3 after a division by the scale that makes the largest 448: one scale of an
operand ("tensor"; "slow" without use_fast_accum), of a row of A and a column of B ("row"), of 128 elements of a row of
A and 128 x 128 of B ("block"). The result is bf16. Buffers rotate so that together they exceed three times the L2;
launches are replayed from CUDA graphs in turns, in random order; medians. 64 rows of every product are compared with
the float64 product of the rounded operands before it is timed.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

import torch
from figures import gpu_model, table, write_results
from sides import beyond_l2, medians, parser_of

from tilewright.gemm import kernels, scaled_matmul
from tilewright.gemm.choice.choose import KernelOptions
from tilewright.gemm.config import AnyConfig
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.operators.scaled import BLOCKWISE, FAST, PROMOTED
from tilewright.gemm.tuning.stand_in import numeric_class

SHAPES = [
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (2048, 7168, 2048),
    (512, 4096, 7168),
    (64, 8192, 8192),
    *(
        (m, n, k)
        for m in (64, 128, 4096)
        for n, k in ((2112, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048))
    ),
]
"""Squares and linear layers, then those of DeepSeek-V3."""

KINDS: dict[str, dict[Any, list[str]]] = {
    "tensor": FAST,
    "slow": PROMOTED,
    "row": FAST,
    "block": BLOCKWISE,
    "int8": FAST,
}
"""With the kernels that each takes."""

H200 = 132, 232448  # multiprocessors, bytes of shared memory
DTYPES = dict.fromkeys(KINDS, torch.float8_e4m3fn) | {"int8": torch.int8}
LARGEST = {torch.float8_e4m3fn: 448.0, torch.int8: 127.0}
BLOCK = 128


@dataclass
class Operands:
    """Quantised operands of one product, and where both sides write."""

    a: torch.Tensor
    b: torch.Tensor
    scale_a: torch.Tensor
    scale_b: torch.Tensor
    ours: torch.Tensor
    theirs: torch.Tensor

    @classmethod
    def draw(cls, m: int, n: int, k: int, kind: str) -> Operands:
        dtype = DTYPES[kind]
        of_a, of_b = {"block": ((1, BLOCK), (BLOCK, BLOCK)), "row": ((1, k), (1, k)), "int8": ((1, k), (1, k))}.get(
            kind, ((m, k), (n, k))
        )
        a, scale_a = quantised(m, k, of_a, dtype)
        b, scale_b = quantised(n, k, of_b, dtype)
        if kind == "block":  # as cuBLASLt wants them: those of A column by column, rows of B's padded to four
            scale_a = scale_a.T.contiguous().T
            padded = scale_b.new_empty(scale_b.shape[0], -(-scale_b.shape[1] // 4) * 4)
            scale_b = padded[:, : scale_b.shape[1]].copy_(scale_b)
        out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        return cls(a, b.T, scale_a, scale_b.T, out, torch.empty_like(out))

    def error(self, out: torch.Tensor) -> float:
        """||out - exact|| / ||exact|| on 64 rows, in float64."""
        (m, k), n = self.a.shape, self.b.shape[1]
        rows = torch.randperm(m, device="cuda")[:64]
        left = self.a[rows].double() * spread(self.scale_a, m, k)[rows]
        exact = left @ (self.b.T.double() * spread(self.scale_b.T, n, k)).T
        return float((out[rows].double() - exact).norm() / exact.norm())


def quantised(rows: int, columns: int, group: tuple[int, int], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Normal numbers rounded to ``dtype``, and the scales of groups, ``group`` (rows, columns)."""
    x = torch.randn(rows, columns, device="cuda")
    up, across = (-(-extent // size) for extent, size in zip((rows, columns), group, strict=True))
    padded = x.new_zeros(up * group[0], across * group[1])
    padded[:rows, :columns] = x.abs()
    scale = padded.view(up, group[0], across, group[1]).amax((1, 3)) / LARGEST[dtype]
    x /= spread(scale, rows, columns)
    return (x if dtype.is_floating_point else x.round()).to(dtype), scale


def spread(scale: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """The scale of each element."""
    for mode, extent in enumerate((rows, columns)):
        size = extent if scale.shape[mode] == 1 else 1 if scale.shape[mode] == extent else BLOCK
        scale = scale.repeat_interleave(size, mode).narrow(mode, 0, extent)
    return scale


def ours(x: Operands, kind: str, kernel: Any = None) -> None:
    scaled_matmul(x.a, x.b, x.scale_a, x.scale_b, out=x.ours, use_fast_accum=kind in ("tensor", "row"), kernel=kernel)


def theirs(x: Operands, kind: str) -> None:
    if kind == "int8":
        torch.mul(torch._int_mm(x.a, x.b) * x.scale_a, x.scale_b, out=x.theirs)
        return
    fast = kind in ("tensor", "row")
    torch._scaled_mm(x.a, x.b, x.scale_a, x.scale_b, out_dtype=torch.bfloat16, use_fast_accum=fast, out=x.theirs)


def best_sizes(shape: tuple[int, int, int], kind: str, count: int) -> list[KernelEntry]:
    """The kernel of a kind in the ``count`` sizes that the model of time finds best for the product."""
    entry: Any = kernels()[KINDS[kind][numeric_class(DTYPES[kind])][0]]
    if kind == "block":
        entry = entry.for_block_scales(1, BLOCK)
    options = KernelOptions.of(entry, H200)
    times, first = options.times((*shape, 1), "auto")
    found: dict[str, KernelEntry] = {}
    for index in times.argsort(kind="stable").tolist():
        if len(found) == count:
            break
        config = options.plan_options[first + index].config
        found.setdefault(size_name(config), entry.only(config))
    return list(found.values())


def size_name(config: AnyConfig) -> str:
    """The tile, the cluster, and what else tells sizes apart."""
    words = [f"{config.tile[0]}x{config.tile[1]}", f"cluster {'x'.join(map(str, config.cluster))}"]
    words += [f"{config.cluster_k} slices"] if config.cluster_k > 1 else []
    words += ["in turns"] if config.pingpong else []
    return " ".join(words + (["transposed"] if config.transposed else []))


def measure(shape: tuple[int, int, int], kind: str, sizes: int, rounds: int) -> list[dict[str, Any]]:
    m, n, k = shape
    flops = 2.0 * m * n * k
    sets = [Operands.draw(m, n, k, kind) for _ in range(max(1, min(16, beyond_l2(m * k + k * n + 4 * m * n))))]
    sides: dict[str, Any] = {"cublas": lambda x: theirs(x, kind), "ours": lambda x: ours(x, kind)}
    for entry in best_sizes(shape, kind, sizes):
        sides[size_name(entry.config)] = lambda x, entry=entry: ours(x, kind, entry)
    found = medians(sides, [(x,) for x in sets], flops, rounds)
    error = max(x.error(x.ours) for x in sets)
    # bf16 keeps 8 bits, and the tensor cores 14 of a sum; an error of scales or of a layout is far larger.
    assert error < (2e-2 if kind in ("tensor", "row") else 4e-3), f"{shape} {kind}: relative error {error}"
    rest = {
        "set": kind,
        "mnk": list(shape),
        "dtype": "int8" if kind == "int8" else "e4m3",
        "error": error,
        "cublas_us": found.get("cublas"),
    }
    return [{**rest, "kernel": name, "us": us} for name, us in found.items() if name != "cublas"]


def main() -> None:
    parser = parser_of(__doc__, SHAPES)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--sizes", type=int, default=0, help="so many of the kernel's sizes, too")
    args = parser.parse_args()
    torch.manual_seed(0)
    records = []
    for kind in args.kinds:
        rows = []
        for text in args.shapes:
            shape = tuple(map(int, text.split(",")))
            found = measure(shape, kind, args.sizes, args.rounds)
            records += found
            if args.write:
                write_results("scaled", gpu_model(), records, args.write)
            flops = 2e-6 * shape[0] * shape[1] * shape[2]
            for one in sorted(found, key=lambda record: record["us"])[:8]:
                ratio = one["cublas_us"] / one["us"] if one["cublas_us"] else float("nan")
                rows.append((text, one["kernel"], f"{one['us']:.2f}", f"{flops / one['us']:.0f}", f"{ratio:.3f}"))
        table(f"scales: {kind}", rows, ("m,n,k", "kernel", "us", "TFLOP/s", "of cuBLASLt"))
        ratios = [
            r["cublas_us"] / r["us"] for r in records if r["set"] == kind and r["kernel"] == "ours" and r["cublas_us"]
        ]
        if ratios:
            print(f"{kind}: geometric mean {statistics.geometric_mean(ratios):.3f}, worst {min(ratios):.3f}")


if __name__ == "__main__":
    main()
