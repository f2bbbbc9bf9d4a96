"""Host time of one launch of a compiled kernel with three torch tensors, and of a product, beside torch's own.

    python bench/launch.py [--write DIR] [--rounds N] [--only WORD ...]

Launches are enqueued back to back into an idle stream in bursts shorter than the driver's queue; the time is the host's
alone. All take turns, burst by burst; medians. ``--only``: the rows whose names have one of the words.
"""

from __future__ import annotations

import importlib
import itertools
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from figures import gpu_model, table, write_results

from tilewright import cute
from tilewright.gemm import (
    combine_rows,
    compress_2_4,
    gemm,
    grouped_matmul,
    matmul,
    mixed_matmul,
    prepare_weight,
    scaled_grouped_matmul,
    scaled_matmul,
    sparse_matmul,
)
from tilewright.gemm.operators import repeated_call

BURST = 100


@cute.kernel
def add_one_block(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    c[tidx] = a[tidx] + b[tidx]


@cute.jit
def launch_add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    add_one_block(a, b, c).launch(grid=(1, 1, 1), block=(128, 1, 1))


def host_us(runs: dict[str, Callable[[], Any]], rounds: int = 25) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(BURST):
                run()
            times[name].append((time.perf_counter() - start) / BURST)
    return {name: statistics.median(found) * 1e6 for name, found in times.items()}


def drawn(*shape: int, graded: bool = False) -> torch.Tensor:
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=graded)


def products() -> dict[str, Callable[[], Any]]:
    """256^3 in bf16, of which a GPU has each done before the next is there; a stack of two; with a bias; operands that
    are elsewhere in each call; with the gradients of both operands."""
    a, b, out, bias = drawn(256, 256), drawn(256, 256), drawn(256, 256), drawn(256)
    stack, results = drawn(2, 256, 256), drawn(2, 256, 256)
    elsewhere = itertools.cycle([drawn(256, 256) for _ in range(96)])
    left, right = drawn(256, 256, graded=True), drawn(256, 256, graded=True)
    importlib.import_module("tilewright.gemm.operators.torch_op")  # registers the operator
    op = torch.ops.tilewright.matmul

    def gradients(product: Callable[[Any, Any], Any]) -> None:
        left.grad = right.grad = None
        product(left, right).backward(a)

    return {
        "product: matmul(a, b)": lambda: matmul(a, b),
        "product: matmul(a, b, out)": lambda: matmul(a, b, out),
        "product: torch.ops.tilewright.matmul(a, b)": lambda: op(a, b),
        "product: torch.mm(a, b)": lambda: torch.mm(a, b),
        "product: torch.mm(a, b, out=)": lambda: torch.mm(a, b, out=out),
        "stack: matmul(a, b, out)": lambda: matmul(stack, stack, results),
        "stack: torch.bmm(a, b, out=)": lambda: torch.bmm(stack, stack, out=results),
        "bias: matmul(a, b, bias=)": lambda: matmul(a, b, bias=bias),
        "bias: torch.nn.functional.linear": lambda: torch.nn.functional.linear(a, b, bias),
        "elsewhere: matmul(a, b)": lambda: matmul(next(elsewhere), b),
        "elsewhere: torch.mm(a, b)": lambda: torch.mm(next(elsewhere), b),
        "gradients: matmul": lambda: gradients(matmul),
        "gradients: torch.mm": lambda: gradients(torch.mm),
    }


def models_products() -> dict[str, Callable[[], Any]]:
    """What models are made of beside ``matmul``, in small sizes, each beside PyTorch's where it has one."""
    tilewright_ops()
    return {**mixed(), **scaled(), **groups(), **sparse(), **new_rows()}


def tilewright_ops() -> Any:
    """The operators of PyTorch, registered."""
    for name in ("mixed", "scaled", "offsets", "scaled_offsets", "sparse"):
        importlib.import_module(f"tilewright.gemm.operators.torch_{name}")
    return torch.ops.tilewright


def mixed() -> dict[str, Callable[[], Any]]:
    """4096 x 4096 of 4 and 8 bits in groups of 128."""
    op, n = tilewright_ops().mixed_matmul, 4096
    scales = torch.rand(n, n // 128, device="cuda").bfloat16()
    int4 = prepare_weight(torch.randint(-8, 8, (n, n), device="cuda", dtype=torch.int8), scales)
    int8 = prepare_weight(torch.randint(-127, 128, (n, n), device="cuda", dtype=torch.int8), scales, bits=8)
    dense = drawn(n, n)
    runs: dict[str, Callable[[], Any]] = {}
    for rows in (1, 16, 64):
        a, out = drawn(rows, n), drawn(rows, n)
        runs[f"mixed, {rows} rows: mixed_matmul(a, int4)"] = lambda a=a: mixed_matmul(a, int4)
        runs[f"mixed, {rows} rows: mixed_matmul(a, int4, out=)"] = lambda a=a, out=out: mixed_matmul(a, int4, out=out)
        runs[f"mixed, {rows} rows: torch.mm(a, b)"] = lambda a=a: torch.mm(a, dense)
    one, eight = drawn(1, n), drawn(64, n).to(torch.float8_e4m3fn)
    runs["mixed, 1 row: mixed_matmul(a, int8)"] = lambda: mixed_matmul(one, int8)
    runs["mixed, 64 rows of e4m3: mixed_matmul(a, int4)"] = lambda: mixed_matmul(eight, int4)
    runs["mixed, 1 row: torch.ops.tilewright.mixed_matmul"] = lambda: op(one, int4.words, int4.scales)
    return runs


def scaled() -> dict[str, Callable[[], Any]]:
    """256^3 of e4m3, scales of the whole and of rows."""
    op = tilewright_ops().scaled_matmul
    a, b, out = drawn(256, 256).to(torch.float8_e4m3fn), drawn(256, 256).to(torch.float8_e4m3fn).T, drawn(256, 256)
    one, rows, columns = (torch.rand(shape, device="cuda") for shape in ((), (256, 1), (1, 256)))
    mm = torch._scaled_mm
    return {
        "scaled: scaled_matmul(a, b)": lambda: scaled_matmul(a, b, one, one, use_fast_accum=True),
        "scaled: scaled_matmul(a, b, out=)": lambda: scaled_matmul(a, b, one, one, out=out, use_fast_accum=True),
        "scaled: scaled_matmul, rows": lambda: scaled_matmul(a, b, rows, columns, use_fast_accum=True),
        "scaled: torch.ops.tilewright.scaled_matmul": lambda: op(a, b, one, one, use_fast_accum=True),
        "scaled: torch._scaled_mm": lambda: mm(a, b, one, one, out_dtype=torch.bfloat16, use_fast_accum=True),
        "scaled: torch._scaled_mm, rows": lambda: mm(
            a, b, rows, columns, out_dtype=torch.bfloat16, use_fast_accum=True
        ),
    }


def groups() -> dict[str, Callable[[], Any]]:
    """Rows of 8 experts, 256 x 256 each, in bf16 and in e4m3 with scales of rows; rows by index; sums of two rows."""
    op, experts, n = tilewright_ops().grouped_matmul, 8, 256
    a, b, out = drawn(experts * 32, n), drawn(experts, n, n), drawn(experts * 32, n)
    ends = torch.arange(32, 32 * experts + 1, 32, device="cuda", dtype=torch.int32)
    index = torch.randperm(experts * 32, device="cuda", dtype=torch.int32)
    a8, b8 = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).mT
    rows, columns = torch.rand(experts * 32, device="cuda"), torch.rand(experts, n, device="cuda")
    places, weights = index.view(-1, 2), torch.rand(experts * 16, 2, device="cuda")
    bf16 = torch.bfloat16
    return {
        "groups: grouped_matmul(a, b, offsets)": lambda: grouped_matmul(a, b, ends),
        "groups: grouped_matmul(a, b, offsets, out=)": lambda: grouped_matmul(a, b, ends, out=out),
        "groups: grouped_matmul, stream_k": lambda: grouped_matmul(a, b, ends, decomposition="stream_k"),
        "groups: grouped_matmul, rows=": lambda: grouped_matmul(a, b, ends, rows=index),
        "groups: torch.ops.tilewright.grouped_matmul": lambda: op(a, b, ends),
        "groups: torch._grouped_mm": lambda: torch._grouped_mm(a, b, ends),
        "groups: scaled_grouped_matmul": lambda: scaled_grouped_matmul(a8, b8, rows, columns, ends),
        "groups: torch._scaled_grouped_mm": lambda: torch._scaled_grouped_mm(
            a8, b8, rows, columns, ends, out_dtype=bf16
        ),
        "groups: combine_rows": lambda: combine_rows(a, places, weights),
    }


def new_rows() -> dict[str, Callable[[], Any]]:
    """Calls that no launch was kept of, as a program makes them that sees another number of rows each time; all kernels
    are compiled. 1024 x 1024, of 8 experts where rows are in groups. "new rows": the ranges of 8 to 128 rows that plans
    are made for were seen; "first rows": what is planned for them is not known, but there were calls of the kernel."""
    n, experts, e4m3, bf16 = 1024, 8, torch.float8_e4m3fn, torch.bfloat16
    dense, weights, rows = drawn(n, n), drawn(experts, n, n), random.Random(0).sample(range(513, 769), 256)
    int4 = prepare_weight(
        torch.randint(-8, 8, (n, n), device="cuda", dtype=torch.int8), torch.rand(n, n // 128, device="cuda").bfloat16()
    )
    b8, weights8 = drawn(n, n).to(e4m3).T, weights.to(e4m3).mT
    columns, columns8 = torch.rand(1, n, device="cuda"), torch.rand(experts, n, device="cuda")
    whole, scales = drawn(max(rows), n), torch.rand(max(rows), 1, device="cuda")
    whole8, index = whole.to(e4m3), torch.randint(256, (max(rows),), device="cuda", dtype=torch.int32)
    places, factors = (
        torch.randint(256, (max(rows), 2), device="cuda", dtype=torch.int32),
        torch.rand(max(rows), 2, device="cuda"),
    )
    steps = torch.arange(1, experts + 1, device="cuda", dtype=torch.int32)
    ends = {m: steps * (m // experts // 8 * 8) for m in rows}

    products_by_matmul = sys.modules[matmul.__module__].REPEATED_PRODUCTS

    def new(product: Callable[..., Any], first: bool = False) -> Callable[[], Any]:
        numbers = itertools.chain([rows], itertools.cycle([m] for m in rows))  # all ranges first

        def run() -> None:
            for m in next(numbers):
                repeated_call.CALLS.clear()
                products_by_matmul.clear()
                if first:
                    forget_plans()
                product(whole[:m], whole8[:m], scales[:m], ends[m], m)

        return run

    ours: dict[str, Callable[..., Any]] = {
        "mixed_matmul(a, int4)": lambda a, a8, s, ends, m: mixed_matmul(a, int4),
        "scaled_matmul, rows": lambda a, a8, s, ends, m: scaled_matmul(a8, b8, s, columns),
        "grouped_matmul(a, b, offsets)": lambda a, a8, s, ends, m: grouped_matmul(a, weights, ends),
        "grouped_matmul, rows=": lambda a, a8, s, ends, m: grouped_matmul(whole[:256], weights, ends, rows=index[:m]),
        "scaled_grouped_matmul": lambda a, a8, s, ends, m: scaled_grouped_matmul(a8, weights8, s[:, 0], columns8, ends),
        "grouped_matmul, K cut": lambda a, a8, s, ends, m: grouped_matmul(a.T, a, ends),
        "combine_rows": lambda a, a8, s, ends, m: combine_rows(whole, places[:m], factors[:m]),
    }
    peers: dict[str, Callable[..., Any]] = {
        "matmul(a, b)": lambda a, a8, s, ends, m: matmul(a, dense),
        "torch.mm(a, b)": lambda a, a8, s, ends, m: torch.mm(a, dense),
        "torch._scaled_mm, rows": lambda a, a8, s, ends, m: torch._scaled_mm(a8, b8, s, columns, out_dtype=bf16),
        "torch._grouped_mm": lambda a, a8, s, ends, m: torch._grouped_mm(a, weights, ends),
        "torch._scaled_grouped_mm": lambda a, a8, s, ends, m: torch._scaled_grouped_mm(
            a8, weights8, s[:, 0], columns8, ends, out_dtype=bf16
        ),
        "torch._grouped_mm, K cut": lambda a, a8, s, ends, m: torch._grouped_mm(a.T, a, ends),
    }
    found = {f"new rows: {name}": new(product) for name, product in (ours | peers).items()}
    return found | {f"first rows: {name}": new(product, True) for name, product in ours.items()}


def forget_plans() -> None:
    """Forget what is decided for ranges of rows."""
    for calls in repeated_call.OPEN.values():
        for known, _ in calls.decided.values():
            for decision in known.call.decisions:
                choice = getattr(decision.again, "__self__", decision.again)
                getattr(choice, "plans", {}).clear()


def sparse() -> dict[str, Callable[[], Any]]:
    """256^3 in bf16, and a product by ``gemm``, which also times the kernel."""
    a = drawn(256, 256)
    a.view(-1, 2)[:, 1] = 0
    compressed, b, out, single = compress_2_4(a), drawn(256, 256), drawn(256, 256), drawn(256, 256).float()
    op = tilewright_ops().sparse_matmul
    return {
        "sparse: sparse_matmul(a, b)": lambda: sparse_matmul(compressed, b),
        "sparse: sparse_matmul(a, b, out=)": lambda: sparse_matmul(compressed, b, out=out),
        "sparse: torch.ops.tilewright.sparse_matmul": lambda: op(*compressed, b),
        "report: gemm(a, b, kernel='simt_f32')": lambda: gemm(single, single, kernel="simt_f32"),
    }


def kind_of(name: str) -> str:
    """Which rows take turns: those that forget launches do so among themselves."""
    return next((kind for kind in ("new rows", "first rows") if name.startswith(kind)), "")


def main() -> None:
    a, b, c = (torch.randn(128, device="cuda") for _ in range(3))
    compiled = cute.compile(launch_add, a, b, c)
    compiled(a, b, c)
    torch.testing.assert_close(c, a + b)
    runs: dict[str, Callable[[], Any]] = {
        "launch: tilewright, three torch tensors": lambda: compiled(a, b, c),
        "launch: torch.add(out=)": lambda: torch.add(a, b, out=c),
        **products(),
        **models_products(),
    }
    words = sys.argv[sys.argv.index("--only") + 1 :] if "--only" in sys.argv else [""]
    runs = {name: run for name, run in runs.items() if any(word in name for word in words)}
    for run in runs.values():
        for _ in range(10):
            run()  # after a few launches of a product, only addresses are written anew
    rounds = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else 25
    figures: dict[str, float] = {}
    for kind in ("", "new rows", "first rows"):  # the last two forget launches, those of others too
        of_kind = {name: run for name, run in runs.items() if kind_of(name) == kind}
        figures |= host_us(of_kind, rounds)
    records = [{"what": name, "us": us} for name, us in figures.items()]
    table("host time of a launch", [(name, f"{us:.2f}") for name, us in figures.items()], ("launch", "us"))
    if "--write" in sys.argv:
        print(
            write_results(
                "launch",
                gpu_model(),
                records,
                Path(sys.argv[sys.argv.index("--write") + 1]),
            )
        )


if __name__ == "__main__":
    main()
