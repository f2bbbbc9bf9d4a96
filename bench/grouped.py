"""Products of groups by offsets on the device against torch._grouped_mm, both in one run, interleaved, on a GPU.

    python bench/grouped.py [--write DIR] [--shapes 64,8192,2816,2048 ...] [--spread even skewed]
    python bench/grouped.py --sizes --shapes 64,8192,2816,2048     # some sizes of the kernel, too

A shape is experts, tokens, n, k. Operands are normal numbers in bf16; weights lie as (experts, n, k). "even" has as
many tokens for each expert, "skewed" sizes that fall as 1 / (1 + i) in a random order. "forward" multiplies tokens by
weights, "weights" is the gradient of the weights, "fp8" is "forward" of e4m3 with scales of rows and columns, beside
torch._scaled_grouped_mm. Launches are replayed from CUDA graphs in turns, in random order;
medians. Every product is compared with the float64 products of some of the rows and columns of the largest, the
smallest and two other groups.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

import torch
from figures import gpu_model, table, write_results
from sides import beyond_l2, medians, parser_of

from tilewright.gemm import grouped_matmul, kernels, scaled_grouped_matmul

SHAPES = [(8, 8192, 14336, 4096), (64, 8192, 2816, 2048), (256, 8192, 4096, 7168)]
"""Experts of Mixtral, of DeepSeek-V2-Lite and of DeepSeek-V3, with 8192 tokens among them."""
SPREADS, FORMS = ("even", "skewed"), ("forward", "weights", "fp8")
TILES = [(256, 192), (128, 256), (256, 128), (128, 192), (128, 128), (256, 64), (128, 64), (256, 32)]


@dataclass
class Operands:
    """The operands of one product, and where both sides write."""

    a: torch.Tensor
    b: torch.Tensor
    offsets: torch.Tensor
    ours: torch.Tensor
    theirs: list[torch.Tensor]
    scales: tuple[torch.Tensor, torch.Tensor] | None = None

    @classmethod
    def draw(cls, shape: tuple[int, int, int, int], ends: torch.Tensor, form: str) -> Operands:
        experts, tokens, n, k = shape

        def normal(*extents: int) -> torch.Tensor:
            return torch.randn(extents, device="cuda", dtype=torch.bfloat16)

        offsets = ends.to("cuda", torch.int32)
        if form == "fp8":
            (a, rows), (b, columns) = (in_eight_bits(normal(*x)) for x in ((tokens, k), (experts, n, k)))
            return cls(a, b.mT, offsets, normal(tokens, n), [], (rows, columns))
        if form == "forward":
            a, b = normal(tokens, k), normal(experts, n, k).mT
            out = normal(tokens, n)
        else:
            a, b = normal(tokens, n).mT, normal(tokens, k)
            out = normal(experts, n, k)
        return cls(a, b, offsets, out, [])

    def error(self, out: torch.Tensor) -> float:
        """The largest ||out - exact|| / ||exact|| of 64 rows and columns of some groups, in float64."""
        ends = [0, *self.offsets.tolist()]
        groups = sorted(range(len(ends) - 1), key=lambda i: ends[i + 1] - ends[i])
        worst = 0.0
        for i in {groups[0], groups[len(groups) // 3], groups[2 * len(groups) // 3], groups[-1]}:
            part = slice(ends[i], ends[i + 1])
            if self.scales is not None:
                a, b = self.a[part].double() * self.scales[0][part, None], self.b[i].double() * self.scales[1][i]
                found = out[part]
            elif self.b.ndim == 3:
                a, b, found = self.a[part], self.b[i], out[part]
            else:
                a, b, found = self.a[:, part], self.b[part], out[i]
            rows, columns = (torch.randperm(extent, device="cuda")[:64] for extent in found.shape)
            exact = a[rows].double() @ b[:, columns].double()
            norm = float(exact.norm())
            difference = float((found[rows][:, columns].double() - exact).norm())
            worst = max(worst, difference / norm if norm else difference)
        return worst


def in_eight_bits(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows rounded to e4m3, and the scale of each."""
    scale = x.abs().amax(-1).float() / 448
    return (x / scale[..., None]).to(torch.float8_e4m3fn), scale


def ends_of(experts: int, tokens: int, spread: str) -> torch.Tensor:
    """Where the groups end."""
    if spread == "even":
        return torch.arange(1, experts + 1) * tokens // experts
    weights = (1.0 / torch.arange(1, experts + 1))[torch.randperm(experts)]
    ends = (weights.cumsum(0) / weights.sum() * tokens).round().to(torch.int32)
    ends[-1] = tokens
    return ends


def ours(x: Operands, kernel: Any = None) -> None:
    if x.scales is None:
        grouped_matmul(x.a, x.b, x.offsets, out=x.ours, kernel=kernel)
    else:
        scaled_grouped_matmul(x.a, x.b, *x.scales, x.offsets, out=x.ours, use_fast_accum=True, kernel=kernel)


def theirs(x: Operands) -> None:
    if x.scales is None:
        x.theirs[:] = [torch._grouped_mm(x.a, x.b, offs=x.offsets)]
    else:
        types = {"out_dtype": torch.bfloat16, "use_fast_accum": True}
        x.theirs[:] = [torch._scaled_grouped_mm(x.a, x.b, *x.scales, offs=x.offsets, **types)]


def measure(shape: tuple[int, int, int, int], spread: str, form: str, sizes: bool, rounds: int) -> list[dict[str, Any]]:
    experts, tokens, n, k = shape
    ends = ends_of(experts, tokens, spread)
    one = Operands.draw(shape, ends, form)
    size = sum(x.numel() * x.element_size() for x in (one.a, one.b, one.ours))
    sets = [one, *(Operands.draw(shape, ends, form) for _ in range(min(8, beyond_l2(size)) - 1))]
    sides: dict[str, Any] = {"torch": theirs, "ours": ours}
    if sizes:
        entry = kernels()["hopper_e4m3" if form == "fp8" else "hopper_bf16"]
        for config in (x for x in entry.sizes if x.cluster_size == 1 and not x.pingpong and x.tile[:2] in TILES):
            name = f"{config.tile[:2]}{' transposed' if config.transposed else ''}"
            sides[name] = lambda x, config=config: ours(x, entry.only(config))
    found = medians(sides, [(x,) for x in sets], 2.0 * tokens * n * k, rounds)
    for x in sets:
        x.ours.fill_(float("nan"))
        ours(x)
    error = max(x.error(x.ours) for x in sets)
    # bf16 keeps 8 bits, and the tensor cores 14 of a sum of 8-bit floats.
    assert error < (2e-2 if form == "fp8" else 4e-3), f"{shape} {spread} {form}: relative error {error}"
    rest = {
        "set": f"{form} {spread}",
        "experts_tokens_n_k": list(shape),
        "error": error,
        "dtype": "e4m3" if form == "fp8" else "bf16",
        "bytes": size,
        "torch_us": found.get("torch"),
    }
    return [{**rest, "kernel": name, "us": us} for name, us in found.items() if name != "torch"]


def main() -> None:
    parser = parser_of(__doc__, SHAPES, rounds=7)
    parser.add_argument("--spread", nargs="*", default=list(SPREADS), choices=SPREADS)
    parser.add_argument("--forms", nargs="*", default=list(FORMS), choices=FORMS)
    parser.add_argument("--sizes", action="store_true", help="all sizes of the Hopper kernel, too")
    args = parser.parse_args()
    torch.manual_seed(0)
    records: list[dict[str, Any]] = []
    for form in args.forms:
        rows = []
        for text in args.shapes:
            for spread in args.spread:
                shape = tuple(map(int, text.split(",")))
                found = measure(shape, spread, form, args.sizes, args.rounds)
                records += found
                if args.write:
                    write_results("grouped", gpu_model(), records, args.write)
                for one in sorted(found, key=lambda record: record["us"])[:8]:
                    rate = 2e-6 * shape[1] * shape[2] * shape[3] / one["us"]
                    ratio = one["torch_us"] / one["us"] if one["torch_us"] else float("nan")
                    rows.append(
                        (
                            text,
                            spread,
                            one["kernel"],
                            f"{one['us']:.1f}",
                            f"{rate:.0f}",
                            f"{one['bytes'] / one['us'] * 1e-6:.2f}",
                            f"{ratio:.3f}",
                        )
                    )
                torch.cuda.empty_cache()
        columns = ("experts,tokens,n,k", "spread", "kernel", "us", "TFLOP/s", "TB/s", "of torch's")
        table(form, rows, columns)
        ratios = [
            r["torch_us"] / r["us"]
            for r in records
            if r["set"].startswith(form) and r["kernel"] == "ours" and r["torch_us"]
        ]
        if ratios:
            print(f"{form}: geometric mean {statistics.geometric_mean(ratios):.3f}, worst {min(ratios):.3f}")


if __name__ == "__main__":
    main()
