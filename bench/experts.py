"""A mixture of experts, forward, against PyTorch with ``torch._grouped_mm`` under torch.compile, on a GPU.

    python bench/experts.py [--write DIR] [--shapes 64,8,4096,2048,1408 ...] [--eager]

Shapes are experts, experts of a token, tokens, features, hidden features; bf16, routed by a random router. Launches are
replayed from CUDA graphs in turns, in random order; medians. ``--eager`` times PyTorch without torch.compile, too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from figures import gpu_model, table, write_results
from sides import medians, parser_of

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from experts import Routing, mixture

from tilewright.gemm import combine_rows, grouped_matmul
from tilewright.gemm.epilogue.activations import Gated
from tilewright.gemm.epilogue.scatter import ScatterAdd

SHAPES = ["64,8,4096,2048,1408", "64,8,4096,4096,1536", "8,2,4096,4096,14336"]


def theirs(x: Any, router: Any, first: Any, second: Any, each: int) -> Any:
    """``first`` has all gate columns before all up columns."""
    weights, chosen = (x.float() @ router.float()).softmax(-1).topk(each)
    weights = weights / weights.sum(-1, keepdim=True)
    tokens, ends, places = Routing.of(chosen, len(first))
    both = torch._grouped_mm(x[tokens], first, offs=ends)
    gate, up = both.chunk(2, -1)
    given = torch._grouped_mm(torch.nn.functional.silu(gate) * up, second, offs=ends)
    return (given[places.long()] * weights[..., None]).sum(1).to(x.dtype)


def atomic(x: Any, router: Any, first: Any, second: Any, each: int) -> Any:
    """The second product adds to the tokens in its epilogue."""
    weights, chosen = (x.float() @ router.float()).softmax(-1).topk(each)
    weights = weights / weights.sum(-1, keepdim=True)
    tokens, ends, places = Routing.of(chosen, len(first))
    of_rows = weights.new_empty(len(tokens)).scatter_(0, places.view(-1).long(), weights.view(-1))
    gated = x.new_empty(len(tokens), first.shape[2] // 2)
    grouped_matmul(x, first, ends, rows=tokens, epilogue=Gated("silu", gated, store_preact=False))
    result = torch.zeros_like(x, dtype=torch.float32)
    grouped_matmul(gated, second, ends, epilogue=ScatterAdd(result, tokens, of_rows, store_result=False))
    return result.to(x.dtype)


def mixture_of_copies(x: Any, router: Any, first: Any, second: Any, each: int) -> Any:
    """The rows of the tokens are copied before the first product."""
    weights, chosen = (x.float() @ router.float()).softmax(-1).topk(each)
    weights = weights / weights.sum(-1, keepdim=True)
    tokens, ends, places = Routing.of(chosen, len(first))
    gated = x.new_empty(len(tokens), first.shape[2] // 2)
    grouped_matmul(x[tokens], first, ends, epilogue=Gated("silu", gated, store_preact=False))
    return combine_rows(grouped_matmul(gated, second, ends), places, weights)


def measure(text: str, eager: bool, rounds: int) -> list[dict[str, Any]]:
    experts, each, tokens, features, hidden = map(int, text.split(","))
    x, router = torch.randn(tokens, features), torch.randn(features, experts) / features**0.5
    first = torch.randn(experts, 2 * hidden, features, device="cuda", dtype=torch.bfloat16).mT / features**0.5
    second = torch.randn(experts, features, hidden, device="cuda", dtype=torch.bfloat16).mT / hidden**0.5
    x, router = x.to("cuda", torch.bfloat16), router.to("cuda", torch.bfloat16)
    apart = torch.cat((first[..., ::2].mT, first[..., 1::2].mT), 1).contiguous().mT
    compiled = torch.compile(theirs, dynamic=False)
    sides: dict[str, Any] = {
        "ours": lambda x: mixture(x, router, first, second, each),
        "ours, rows copied": lambda x: mixture_of_copies(x, router, first, second, each),
        "ours, atomic": lambda x: atomic(x, router, first, second, each),
        "PyTorch, compiled": lambda x: compiled(x, router, apart, second, each),
    }
    if eager:
        sides["PyTorch"] = lambda x: theirs(x, router, apart, second, each)
    with torch.no_grad():
        found = {name: side(x).float() for name, side in sides.items()}
        error = max(float((y - found["ours"]).norm() / found["ours"].norm()) for y in found.values())
        assert error < 2e-2, f"{text}: relative difference {error}"
        times = medians(sides, [(x,)], 6.0 * tokens * each * features * hidden, rounds)
    return [
        {"shape": text, "kernel": name, "us": us, "compiled_us": times["PyTorch, compiled"], "difference": error}
        for name, us in times.items()
    ]


def main() -> None:
    parser = parser_of(__doc__, SHAPES)
    parser.add_argument("--eager", action="store_true", help="PyTorch without torch.compile, too")
    args = parser.parse_args()
    torch.manual_seed(0)
    records = []
    for text in args.shapes:
        found = measure(text, args.eager, args.rounds)
        records += found
        if args.write:
            write_results("experts", gpu_model(), records, args.write)
        rows = [
            (one["kernel"], f"{one['us']:.1f}", f"{one['compiled_us'] / one['us']:.3f}")
            for one in sorted(found, key=lambda record: record["us"])
        ]
        table(text, rows, ("", "us", "of compiled"))


if __name__ == "__main__":
    main()
