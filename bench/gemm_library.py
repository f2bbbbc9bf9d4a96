"""The library's default choice against cuBLAS (torch.mm), in one run, on all sets of shapes and on random draws.

    python bench/gemm_library.py [--write DIR] [--sets large decode streamk_random unaligned] [--dtypes f16 bf16]
    python bench/gemm_library.py --sets --random 32 --seed 7          # shapes of our own draw, as streamk_random's
    python bench/gemm_library.py --search --sets decode               # the choice beside every size and decomposition
    python bench/gemm_library.py --sets --sharing                     # Stream-K beside data-parallel, hostile shapes
    python bench/gemm_library.py --sets --few                         # 1 to 16 rows, with the kernel for few rows
    python bench/gemm_library.py --sets --ampere                      # mma.sync decompositions beside CUTLASS's example

Inputs are normal; buffers rotate so that together they exceed three times the L2 (as far as 16 sets do); launches are
replayed from CUDA graphs in turns of a few milliseconds in random order; medians. 64 rows of every product are compared
with float64 before it is timed. ``--b``: B is contiguous along K (weights as PyTorch keeps them) or N.

``--search`` times the sizes of the Hopper kernel with all ways to share tiles, coarsely at first, then the best
``--finalists`` of them in turns with the default choice; its last column is how much of the best speed the choice
reaches. It takes the ``--options`` that the model finds best (0: all). Kernels are compiled by ``--threads`` threads.
``--limit`` takes the first shapes of each set only.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from common import table, write_results
from gemm_gpu import rotation
from gemm_hopper import problem
from sides import Run, Sets, Side, cublas, interleaved, ours

from tilewright.errors import TilewrightError
from tilewright.gemm import StreamK, kernels
from tilewright.gemm.choice.choose import Options
from tilewright.gemm.host.plan import limits
from tilewright.gemm.schedule.splitk import SplitK

Shape = tuple[int, int, int]
Record = dict[str, Any]

HOSTILE = (
    (1152, 3840, 16384), (1280, 3584, 16384), (1536, 3072, 16384), (1152, 1920, 9216), (640, 7168, 8192),
    (768, 768, 8192), (384, 512, 16384), (136, 512, 32768), (1408, 664, 11264), (320, 1736, 6592),
)  # fmt: skip
"""A wave of 128 x 256 or 128 x 128 tiles and a bit, or far fewer tiles than multiprocessors with K >= 8 M."""

FEW = [(m, n, k) for m in (1, 2, 4, 8, 16) for n, k in ((6144, 4096), (4096, 14336), (28672, 8192))]
"""Decoding one to sixteen tokens."""

EXAMPLE = {
    (2048, 2048, 2048): (484, 454, 425, 420), (4096, 4096, 4096): (538, 525, 513, 511),
    (5120, 5120, 5120): (507, 535, 518, 511), (8192, 8192, 8192): (495, 531, 489, 489),
    (1408, 664, 7424): (191, 299, 317, 299), (320, 1736, 6592): (114, 117, 191, 176),
    (128, 4096, 14336): (113, 167, 201, 189), (3816, 272, 1440): (186, 174, 157, 156),
}  # fmt: skip
"""TFLOP/s of CUTLASS's example program of Stream-K (fp16, 128 x 128 x 32 tiles, integer inputs) on one H200: basic
data-parallel, Stream-K, basic split-K 2, Stream-K as split-K 2."""
EXAMPLE_SIDES = ("data-parallel", "Stream-K", "split-K 2", "Stream-K as split-K 2")


def draw(count: int, seed: int) -> list[Shape]:
    """Shapes as streamk_random has them: each extent log-uniform in [128, 8192], a multiple of 8."""
    rng = random.Random(seed)

    def extent() -> int:
        return 8 * round(math.exp(rng.uniform(math.log(128), math.log(8192))) / 8)

    return [(extent(), extent(), extent()) for _ in range(count)]


def record(name: str, shape: Shape, dtype: str, b: str, side: Side, us: dict[str, float]) -> Record:
    return {
        "set": name, "mnk": list(shape), "dtype": dtype, "b": b, "kernel": side.name, "us": us[side.name],
        "cublas_us": us["cuBLAS"], "error": side.error,
    }  # fmt: skip


def default(sets: Sets, flops: float, args: argparse.Namespace) -> list[Side]:
    return [
        Side("cuBLAS", cublas, sets, flops, 3, seconds=args.seconds),
        Side("tilewright", library(sets), sets, flops, seconds=args.seconds),
    ]


def library(sets: Sets) -> Run:
    """The library's own choice of kernel, size and decomposition.

    By launchers, which have their workspace before the graph is captured, as a program's own buffers would be; the
    choice is that of ``matmul``.
    """
    return ours(sets, None, "auto")


def compare(name: str, shape: Shape, dtype: str, b: str, args: argparse.Namespace) -> list[Record]:
    """The default choice and cuBLAS, and with --search the best of all sizes."""
    m, n, k = shape
    sets, flops = problem(m, n, k, dtype, b), 2.0 * m * n * k
    sides = default(sets, flops, args)
    if args.search:
        sides += finalists(sets, flops, dtype, args)
    if args.few and m <= 16 and b == "k":
        run = ours(sets, f"small_m_{dtype}", "auto")
        sides.append(Side("few rows", run, sets, flops, seconds=args.seconds))
    us = interleaved(sides, args.rounds)
    best = min((time, side) for side, time in us.items() if side != "cuBLAS")
    text = f"{m}x{n}x{k} {dtype} {b}: {us['tilewright']:.1f} us, {us['cuBLAS'] / us['tilewright']:.3f} of cuBLAS"
    text += f"; best {best[1]}, the choice reaches {best[0] / us['tilewright']:.3f}" if len(us) > 2 else ""
    text += f", few rows {k * n * 2e-6 / us['few rows']:.2f} TB/s" if "few rows" in us else ""
    print(text, flush=True)
    return [record(name, shape, dtype, b, side, us) for side in sides]


# -- exhaustive search ------------------------------------------------------------------------------------------------


def finalists(sets: Sets, flops: float, dtype: str, args: argparse.Namespace) -> list[Side]:
    """The sides that did best in one coarse turn each, of all sizes with all decompositions."""
    a, b, out, _ = sets[0]
    (m, k), n, where = a.shape, b.shape[1], limits("gpu")
    found = Options.of(kernels()[f"hopper_{dtype}"], where)
    order = found.model.times((m, n, k, 1)).argsort(kind="stable").tolist()
    options = [found.ways[i] for i in order[: args.options or None]]

    def made(way: Any) -> tuple[str, Run] | None:
        config, plan = way.config, way.plan((m, n, k, 1), where)
        name = f"{'x'.join(map(str, config.tile[:2]))} cluster {config.cluster} k {config.cluster_k} "
        name += f"{'T ' * config.transposed}{config.stages} stages, {way.parts} parts"
        try:
            return name, ours(sets, found.entries[id(config)], plan or "data_parallel")
        except TilewrightError:
            return None  # the size cannot take the operands

    with ThreadPoolExecutor(args.threads) as pool:
        runs = [run for run in pool.map(made, options) if run is not None]
    timed = []
    for name, run in runs:
        side = Side(name, run, sets, flops, seconds=1e-3)
        side.round()
        timed.append((side.round(), name, run))
        del side
    timed.sort(key=lambda one: one[0])
    return [Side(name, run, sets, flops, seconds=args.seconds) for _, name, run in timed[: args.finalists]]


# -- decompositions against each other --------------------------------------------------------------------------------


def sharing(shape: Shape, dtype: str, args: argparse.Namespace) -> list[Record]:
    """Stream-K against our own data-parallel, each in its best size, and what the model chooses."""
    m, n, k = shape
    sets, flops = problem(m, n, k, dtype, "k"), 2.0 * m * n * k
    sides = default(sets, flops, args)
    for name, how in (("data-parallel", "data_parallel"), ("Stream-K", "stream_k")):
        sides.append(Side(name, ours(sets, f"hopper_{dtype}", how), sets, flops, seconds=args.seconds))
    us = interleaved(sides, args.rounds)
    gain, chosen = us["data-parallel"] / us["Stream-K"], us["data-parallel"] / us["tilewright"]
    print(f"{m}x{n}x{k} {dtype}: Stream-K {gain:.3f} of data-parallel, the choice {chosen:.3f}", flush=True)
    return [record("sharing", shape, dtype, "k", side, us) for side in sides]


def ampere(shape: Shape, args: argparse.Namespace) -> list[Record]:
    """The mma.sync kernel's decompositions on small integers, as the example program ran them."""
    m, n, k = shape
    sets, flops = rotation(m, n, k, torch.float16, integers=True)[:16], 2.0 * m * n * k
    entry = kernels()["tensorop_f16"]
    whole, shared = entry.config, entry.shared or entry.config
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count

    def plan(config: Any, **how: Any) -> StreamK:
        return StreamK.of(
            shape, config.tile, multiprocessors=multiprocessors, occupancy=config.blocks_at_once(232448),
            fragments=config.fragments, **how,
        )  # fmt: skip

    hows: dict[str, tuple[Any, Any]] = {
        "data-parallel": (entry, "data_parallel"),
        "Stream-K": (entry, "stream_k"),
        "split-K 2": (entry.only(whole), SplitK(2)),
        "Stream-K as split-K 2": (entry.only(shared), plan(shared, split=2)),
    }
    sides = default(sets, flops, args)[:1]
    sides += [Side(name, ours(sets, *how), sets, flops, seconds=args.seconds) for name, how in hows.items()]
    us = interleaved(sides, args.rounds)
    found = []
    for side in sides:
        one = record("ampere", shape, "f16", "n", side, us) | {"tflops": side.tflops(us[side.name])}
        if side.name in EXAMPLE_SIDES:
            one["example_tflops"] = EXAMPLE[shape][EXAMPLE_SIDES.index(side.name)]
            one["ratio"] = one["tflops"] / one["example_tflops"]
        found.append(one)
    ratios = ", ".join(f"{one['kernel']} {one['ratio']:.3f}" for one in found if "ratio" in one)
    print(f"{m}x{n}x{k}: of the example's speed: {ratios}", flush=True)
    return found


# -- the run ----------------------------------------------------------------------------------------------------------


def summary(records: list[Record]) -> None:
    """Geometric mean, worst and best for each set, dtype and side."""
    groups: dict[tuple[str, ...], list[float]] = {}

    def add(ratio: float, *key: str) -> None:
        groups.setdefault(key, []).append(ratio)

    products: dict[tuple[Any, ...], dict[str, Record]] = {}
    for one in records:
        products.setdefault((one["set"], one["dtype"], one["b"], *one["mnk"]), {})[one["kernel"]] = one
    for (name, dtype, b, *_), sides in products.items():
        us = {side: one["us"] for side, one in sides.items()}
        if name == "ampere":
            for side in EXAMPLE_SIDES:
                add(sides[side]["ratio"], name, dtype, b, f"{side} of the example's")
            continue
        add(us["cuBLAS"] / us["tilewright"], name, dtype, b, "of cuBLAS")
        best = min(time for side, time in us.items() if side != "cuBLAS")
        if name == "sharing":
            add(us["data-parallel"] / us["Stream-K"], name, dtype, b, "Stream-K of data-parallel")
            add(us["data-parallel"] / us["tilewright"], name, dtype, b, "the choice of data-parallel")
        elif len(us) > 2:
            add(best / us["tilewright"], name, dtype, b, "of the best size")
    rows = [
        (*key, str(len(found)), *(f"{x:.3f}" for x in (statistics.geometric_mean(found), min(found), max(found))))
        for key, found in groups.items()
    ]
    table("speed reached", rows, ("set", "dtype", "B along", "speed", "shapes", "geometric mean", "worst", "best"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path)
    parser.add_argument("--sets", nargs="*", default=["large", "decode", "streamk_random", "unaligned"])
    parser.add_argument("--dtypes", nargs="*", default=["f16"])
    parser.add_argument("--b", nargs="*", default=["k"], choices=["k", "n"])
    parser.add_argument("--random", type=int, default=0, metavar="N", help="shapes of our own draw, as well")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--limit", type=int, help="the first shapes of each set only")
    parser.add_argument("--search", action="store_true", help="every size and decomposition beside the choice")
    parser.add_argument("--options", type=int, default=160, help="of the search, the model's best; 0: all")
    parser.add_argument("--finalists", type=int, default=6, help="of the search, for the exact comparison")
    parser.add_argument("--threads", type=int, default=8, help="that compile kernels for the search")
    parser.add_argument("--sharing", action="store_true", help="Stream-K against data-parallel on hostile shapes")
    parser.add_argument("--few", action="store_true", help="1 to 16 rows, with the kernel for few rows beside")
    parser.add_argument("--ampere", action="store_true", help="mma.sync decompositions and the example's figures")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.006, help="of one turn")
    args = parser.parse_args()
    shapes: dict[str, list[Any]] = json.loads((Path(__file__).parent / "shapes.json").read_text())["sets"]
    work: list[Callable[[], list[Record]]] = []
    named = [(name, shapes[name]) for name in args.sets]
    if args.few:
        named.append(("few rows", FEW))
    if args.random:
        named.append((f"random, seed {args.seed}", draw(args.random, args.seed)))
    for name, listed in named:
        for dtype in args.dtypes:
            for b in args.b:
                for shape in listed[: args.limit]:
                    work.append(lambda *_, o=(name, tuple(shape), dtype, b): compare(*o, args))
    if args.sharing:
        work += [lambda s=s, d=d: sharing(s, d, args) for d in args.dtypes for s in HOSTILE[: args.limit]]
    if args.ampere:
        work += [lambda s=s: ampere(s, args) for s in list(EXAMPLE)[: args.limit]]
    records: list[Record] = []
    where = "h200" if "H200" in torch.cuda.get_device_name() else "gpu"
    for one in work:
        records += one()
        if args.write:  # after each shape, so that a run that is cut short leaves what it has
            path = write_results("gemm_library", where, records, args.write)
    summary(records)
    if args.write:
        print(path)


if __name__ == "__main__":
    main()
