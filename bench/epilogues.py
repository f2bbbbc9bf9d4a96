"""Activations in the epilogue against the same product without, and against PyTorch's product and activation, on a GPU.

    python bench/epilogues.py [--write DIR] [--shapes 8192,8192,1024 ...] [--names gelu "gated silu" ...]

"gated silu" is SwiGLU of interleaved gate and up columns, "gelu and before" writes what GELU is applied to, too: both
have two outputs, on both sides.

bf16, normal inputs, a bias for each column; buffers rotate so that together they exceed three times the L2; launches
are replayed from CUDA graphs in turns, in random order; medians. 64 rows of every result are compared with PyTorch's
in float64 before the times are shown.
"""

from __future__ import annotations

from typing import Any

import torch
from figures import gpu_model, table, write_results
from sides import medians, parser_of

from tilewright.gemm import matmul
from tilewright.gemm.epilogue.activations import ACTIVATIONS, Activation, Gated
from tilewright.gemm.epilogue.functions import Store

SHAPES = [(8192, 8192, 1024), (4096, 16384, 2048), (4096, 16384, 4096), (512, 4096, 4096)]
NAMES = ("relu", "gelu", "gelu_tanh", "silu", "gated silu", "gelu and before")
PLAIN = "bias alone"
TOLERANCE = 2e-2  # of bf16 sums, relative to the largest


GATED, BEFORE = "gated ", " and before"
KNOWN = [*ACTIVATIONS, *(GATED + name for name in ACTIVATIONS), *(name + BEFORE for name in ACTIVATIONS)]


class Form:
    """An activation, a gated one, or one beside the numbers that it is applied to: by the library and by PyTorch."""

    def __init__(self, name: str) -> None:
        self.gated, self.before = name.startswith(GATED), name.endswith(BEFORE)
        self.activation = name.removeprefix(GATED).removesuffix(BEFORE)
        self.seconds: dict[int, torch.Tensor] = {}  # the second output that belongs to each ``out``

    def second(self, out: torch.Tensor) -> torch.Tensor:
        if out.data_ptr() not in self.seconds:
            columns = out.shape[1] // 2 if self.gated else out.shape[1]
            self.seconds[out.data_ptr()] = out.new_empty(out.shape[0], columns)
        return self.seconds[out.data_ptr()]

    def ours(self, a: torch.Tensor, w: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        if self.gated:
            matmul(a, w.T, out, bias=b, epilogue=Gated(self.activation, self.second(out)))
        elif self.before:
            matmul(a, w.T, out, bias=b, epilogue=(Store(self.second(out)), Activation(self.activation)))
        else:
            matmul(a, w.T, out, bias=b, activation=self.activation)

    def theirs(self, a: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """What an activation gives; the sums stay, as they do in a program that keeps them."""
        functional, of_torch = torch.nn.functional, ACTIVATIONS[self.activation].of_torch
        sums = functional.linear(a, w, b)
        return of_torch(functional, sums[:, ::2]) * sums[:, 1::2] if self.gated else of_torch(functional, sums)


def operands(m: int, n: int, k: int) -> list[tuple[torch.Tensor, ...]]:
    """Sets of (a, weight (n, k), bias, out)."""
    size = 2 * (m * k + n * k + m * n)
    count = max(2, -(-3 * torch.cuda.get_device_properties(0).L2_cache_size // size))
    return [
        tuple(torch.randn(s, device="cuda", dtype=torch.bfloat16) for s in ((m, k), (n, k), (n,), (m, n)))
        for _ in range(count)
    ]


def error(name: str, a: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, out: torch.Tensor) -> float:
    """The largest difference of 64 rows from float64, as a part of the largest number."""
    form = Form(name)
    form.ours(a, weight, bias, out)
    rows = torch.randperm(a.shape[0], device="cuda")[:64]
    exact = form.theirs(a[rows].double(), weight.double(), bias.double())
    found = form.second(out) if form.gated else out
    return float((found[rows].double() - exact).abs().max() / exact.abs().max())


def measure(shape: tuple[int, int, int], names: list[str], rounds: int) -> list[dict[str, Any]]:
    m, n, k = shape
    sets = operands(m, n, k)
    errors = {name: error(name, *sets[0]) for name in names}
    assert all(found < TOLERANCE for found in errors.values()), errors
    sides: dict[str, Any] = {PLAIN: lambda a, w, b, out: matmul(a, w.T, out, bias=b)}
    for name in names:
        form = Form(name)
        for one in sets:
            form.second(one[3])  # before a graph captures
        sides[name] = form.ours
        sides[f"torch {name}"] = lambda a, w, b, out, form=form: form.theirs(a, w, b)
    found = medians(sides, sets, 2.0 * m * n * k, rounds)
    return [
        {
            "set": "epilogues",
            "mnk": list(shape),
            "dtype": "bf16",
            "kernel": name,
            "us": found[name],
            "alone_us": found[PLAIN],
            "torch_us": found[f"torch {name}"],
            "error": errors[name],
        }
        for name in names
    ]


def main() -> None:
    parser = parser_of(__doc__, SHAPES)
    parser.add_argument("--names", nargs="*", default=list(NAMES), choices=KNOWN)
    args = parser.parse_args()
    torch.manual_seed(0)
    records: list[dict[str, Any]] = []
    for text in args.shapes:
        m, n, k = map(int, text.split(","))
        found = measure((m, n, k), args.names, args.rounds)
        records += found
        rows = [
            (one["kernel"], f"{one['us']:.1f}", f"{one['us'] / one['alone_us']:.3f}", f"{one['torch_us']:.1f}")
            for one in found
        ]
        table(f"{text}, bf16", rows, ("activation", "us", "of bias alone", "torch, us"))
    if args.write:
        write_results("epilogues", gpu_model(), records, args.write)


if __name__ == "__main__":
    main()
