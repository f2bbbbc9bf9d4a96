"""The library's default choice against cuBLAS (torch.mm), in one run, on all sets of shapes and on random draws.

    python bench/gemm_library.py [--write DIR] [--sets large decode streamk_random unaligned] [--dtypes f16 bf16]
    python bench/gemm_library.py --sets --random 32 --seed 7          # shapes of our own draw, as streamk_random's
    python bench/gemm_library.py --search --sets decode               # the choice beside every size and decomposition
    python bench/gemm_library.py --tuned --sets streamk_random        # what tuning finds beside the choice
    python bench/gemm_library.py --sets --sharing                     # Stream-K beside data-parallel, hostile shapes
    python bench/gemm_library.py --sets --few                         # 1 to 16 rows, with the kernel for few rows
    python bench/gemm_library.py --sets --ampere                      # mma.sync decompositions beside CUTLASS's example
    python bench/gemm_library.py --behind itself small cold           # behind other kernels, as in a model
    python bench/gemm_library.py --dry-run ...                        # what would be compiled, and compile it: no GPU

Inputs are normal; buffers rotate so that together they exceed three times the L2 (as far as 16 sets do); launches are
replayed from CUDA graphs in turns of a few milliseconds in random order; medians. 64 rows of every product are compared
with float64 before it is timed. ``--a``: A is contiguous along K or M; ``--b``: B along K (weights as PyTorch keeps
them) or N.

A product that follows other products of the library overlaps with them at its beginning. ``--behind small`` puts a
small kernel of PyTorch's before each product, whose time is subtracted: what a product costs in a model. ``operand``
and ``cold``: bench/sides.py.

``--processes`` processes stage and compile kernels side by side, without the GPU; each measures alone what it has
prepared (bench/pool.py). A shape that fails or hangs is reported and the others go on. ``--minutes`` ends the run
earlier; with ``--write`` the results file is written after each shape.

``--search`` times the sizes of the Hopper kernel with all ways to share tiles, coarsely at first, then the best
``--finalists`` of them in turns with the default choice; its last column is how much of the best speed the choice
reaches. It takes the ``--options`` that the model finds best (0: all). ``--tuned`` does as ``tune``: the model's best
12 once each, the best of these in turns, and then the fastest, the choice and cuBLAS in other turns. ``--limit`` takes
the first shapes of each set.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from figures import gpu_model, table, write_results
from library_jobs import (
    CHOICE,
    CUBLAS,
    EXAMPLE,
    EXAMPLE_SIDES,
    NAMES,
    SPACERS,
    TUNED,
    Answer,
    Job,
    Record,
    Shape,
    tiles_of,
    work,
)
from pool import Failure, Pool

from tilewright.errors import ArgumentError
from tilewright.gemm.tuning.candidate import Candidate
from tilewright.gemm.tuning.stand_in import stand_in
from tilewright.gemm.tuning.tune import best_by_model

HOSTILE = (
    (1152, 3840, 16384),
    (1280, 3584, 16384),
    (1536, 3072, 16384),
    (1152, 1920, 9216),
    (640, 7168, 8192),
    (768, 768, 8192),
    (384, 512, 16384),
    (136, 512, 32768),
    (1408, 664, 11264),
    (320, 1736, 6592),
)
"""A wave of 128 x 256 or 128 x 128 tiles and a bit, or far fewer tiles than multiprocessors with K >= 8 M."""

FEW = [(m, n, k) for m in (1, 2, 4, 8, 16) for n, k in ((6144, 4096), (4096, 14336), (28672, 8192))]
"""Decoding one to sixteen tokens."""


def draw(count: int, seed: int) -> list[Shape]:
    """Shapes as streamk_random has them: each extent log-uniform in [128, 8192], a multiple of 8."""
    rng = random.Random(seed)

    def extent() -> int:
        return 8 * round(math.exp(rng.uniform(math.log(128), math.log(8192))) / 8)

    return [(extent(), extent(), extent()) for _ in range(count)]


def jobs_of(args: argparse.Namespace) -> list[Job]:
    """One for each shape, in the order of the report."""
    how = {"rounds": args.rounds, "seconds": args.seconds, "dry": args.dry_run}
    sets = json.loads((Path(__file__).parent / "shapes.json").read_text(encoding="utf-8"))["sets"]
    named = [(name, [tuple(shape) for shape in sets[name]]) for name in args.sets]
    if args.random:
        named.append((f"random, seed {args.seed}", draw(args.random, args.seed)))
    if args.shapes:
        named.append(("shapes", [tuple(map(int, shape.split(","))) for shape in args.shapes]))
    found = [
        Job("compare", name, shape, dtype, b, behind="" if behind == "itself" else behind, a=a, **how)
        for name, shapes in named
        for behind in args.behind
        for dtype in args.dtypes
        for a in args.a
        for b in args.b
        for shape in shapes[: args.limit]
    ]
    if args.few:
        found += [Job("few", "few rows", shape, d, "k", **how) for d in args.dtypes for shape in FEW[: args.limit]]
    if args.sharing:
        found += [Job("sharing", "sharing", s, d, "k", **how) for d in args.dtypes for s in HOSTILE[: args.limit]]
    if args.ampere:
        found += [Job("ampere", "ampere", shape, "f16", "n", **how) for shape in list(EXAMPLE)[: args.limit]]
    return found


class Run:
    """The jobs of a run on a pool: results as they come, on the screen and in the results file."""

    def __init__(self, pool: Pool, args: argparse.Namespace, jobs: list[Job]) -> None:
        self.pool, self.args, self.jobs = pool, args, jobs
        self.began = time.monotonic()
        self.records: list[Record] = []
        self.failed: list[str] = []
        self.coarse: dict[Job, dict[Candidate, float]] = {}
        self.open: dict[Job, int] = {}  # coarse jobs that are still to come, by what they are for
        self.done = self.kernels = self.compiled = 0
        self.path: Path | None = None
        default = 12 if args.tuned else 160
        self.options = default if args.options is None else args.options

    def run(self) -> None:
        end = self.began + 60 * self.args.minutes
        for job in self.jobs:
            if (self.args.search or self.args.tuned) and job.kind == "compare":
                self.search(job)
            else:
                self.pool.submit(job)
        for job, answer in self.pool.results(end):
            if isinstance(answer, Failure):
                self.note_failure(job, answer.reason)
            else:
                self.note(job, answer)
            if job.kind == "coarse":
                self.finish_search(job)

    # -- exhaustive search --------------------------------------------------------------------------------------------

    def search(self, job: Job) -> None:
        """Time each of the options once: the same size always in the same process, which has it compiled then."""
        try:
            problem = stand_in(job.shape, NAMES[job.dtype], None, job.a, job.b)
            found = best_by_model(problem, self.options or 1 << 30)
        except ArgumentError:
            found = []
        shares: dict[int, list[Candidate]] = {}
        for one in found:
            number = int.from_bytes(repr((one.kernel, one.size)).encode(), "little")
            shares.setdefault(number % 1000003 % len(self.pool.members), []).append(one)
        self.coarse[job], self.open[job] = {}, len(shares)
        for member, listed in shares.items():
            self.pool.submit(replace(job, kind="coarse", found=tuple(listed)), member)
        if not shares:
            self.pool.submit(job)

    def finish_search(self, part: Job) -> None:
        """When all parts of a search are there: the best of them against the choice."""
        job = replace(part, kind="compare", found=())
        self.open[job] -= 1
        if self.open[job] == 0:
            us = self.coarse.pop(job)
            best = sorted(us, key=us.__getitem__)[: self.args.finalists]
            kind = "tuned" if self.args.tuned else "compare"
            self.pool.submit(replace(job, kind=kind, found=tuple(best)), first=True)

    # -- results ------------------------------------------------------------------------------------------------------

    def note(self, job: Job, answer: Answer) -> None:
        self.kernels, self.compiled = self.kernels + answer.kernels, self.compiled + answer.compiled
        if job.kind == "coarse":
            self.coarse[replace(job, kind="compare", found=())].update(answer.us)
            return
        self.done += 1
        self.records += answer.records
        self.say(answer.text)
        if self.args.write and not job.dry:  # after each shape, so that a run that is cut short leaves what it has
            self.path = write_results("gemm_library", gpu_model(), self.records, self.args.write)

    def note_failure(self, job: Job, reason: str) -> None:
        if job.kind != "coarse":
            self.done += 1
        self.failed.append(f"{job} ({job.kind}): {reason}")
        self.say(f"FAILED {self.failed[-1]}")

    def say(self, text: str) -> None:
        print(f"[{self.done}/{len(self.jobs)} {time.monotonic() - self.began:4.0f} s] {text}", flush=True)


def ratios(records: list[Record]) -> Iterator[tuple[tuple[str, ...], float]]:
    """(set, dtype, A and B along, behind what, which speed) and the speed, of each product."""
    products: dict[tuple[Any, ...], dict[str, Record]] = {}
    for one in records:
        majors, behind = one.get("a", "k") + one["b"], one.get("behind", "")
        products.setdefault((one["set"], one["dtype"], majors, behind, *one["mnk"]), {})[one["kernel"]] = one
    for (name, dtype, majors, behind, *_), sides in products.items():
        us = {side: one["us"] for side, one in sides.items()}
        key = name, dtype, majors, behind or "itself"
        if name == "ampere":
            yield from (((*key, f"{side} of the example's"), sides[side]["ratio"]) for side in EXAMPLE_SIDES)
            continue
        yield (*key, "of cuBLAS"), us[CUBLAS] / us[CHOICE]
        if name == "sharing":
            yield (*key, "Stream-K of data-parallel"), us["data-parallel"] / us["Stream-K"]
            yield (*key, "the choice of data-parallel"), us["data-parallel"] / us[CHOICE]
            for tile in tiles_of(us):
                ratio = us[f"data-parallel {tile}"] / us[f"Stream-K {tile}"]
                yield (*key, f"Stream-K of data-parallel, both {tile}"), ratio
        elif TUNED in us:
            yield (*key, "tuned of cuBLAS"), us[CUBLAS] / us[TUNED]
            yield (*key, "the choice of tuned"), us[TUNED] / us[CHOICE]
        elif len(us) > 2:
            yield (*key, "of the best size"), min(time for side, time in us.items() if side != CUBLAS) / us[CHOICE]


def summary(records: list[Record]) -> None:
    """Geometric mean, worst and best for each set, dtype and side."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for key, ratio in ratios(records):
        groups.setdefault(key, []).append(ratio)
    rows = [
        (*key, str(len(found)), *(f"{x:.3f}" for x in (statistics.geometric_mean(found), min(found), max(found))))
        for key, found in groups.items()
    ]
    table(
        "speed reached",
        rows,
        ("set", "dtype", "majors", "behind", "speed", "shapes", "geometric mean", "worst", "best"),
    )


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path)
    parser.add_argument("--sets", nargs="*", default=["large", "decode", "streamk_random", "unaligned"])
    parser.add_argument("--dtypes", nargs="*", default=["f16"], choices=list(NAMES))
    parser.add_argument("--b", nargs="*", default=["k"], choices=["k", "n"])
    parser.add_argument("--a", nargs="*", default=["k"], choices=["k", "m"])
    parser.add_argument("--behind", nargs="*", default=["itself"], choices=["itself", *SPACERS], help="see sides.py")
    parser.add_argument("--shapes", nargs="*", default=[], metavar="M,N,K", help="as well")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="shapes of our own draw, as well")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--limit", type=int, help="the first shapes of each set only")
    parser.add_argument("--search", action="store_true", help="every size and decomposition beside the choice")
    parser.add_argument("--tuned", action="store_true", help="beside the choice, what tuning finds")
    parser.add_argument("--options", type=int, help="of the search, the model's best (160; 12 to tune); 0: all")
    parser.add_argument("--finalists", type=int, default=6, help="of the search, for the exact comparison")
    parser.add_argument("--sharing", action="store_true", help="Stream-K against data-parallel on hostile shapes")
    parser.add_argument("--few", action="store_true", help="1 to 16 rows, with the kernel for few rows beside")
    parser.add_argument("--ampere", action="store_true", help="mma.sync decompositions and the example's figures")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.006, help="of one turn")
    parser.add_argument("--processes", type=int, default=max(1, min(16, (os.cpu_count() or 2) - 1)))
    parser.add_argument("--minutes", type=float, default=math.inf, help="after which the run ends with what it has")
    parser.add_argument("--dry-run", action="store_true", help="choose and compile, measure nothing: needs no GPU")
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> int:
    args = arguments(given)
    jobs = jobs_of(args)
    with Pool(max(1, min(args.processes, 1 << 30 if args.search or args.tuned else len(jobs))), work) as pool:
        run = Run(pool, args, jobs)
        run.run()
    print(
        f"{run.done} of {len(jobs)} shapes in {time.monotonic() - run.began:.0f} s; {run.compiled} kernels compiled "
        f"of {run.kernels} staged"
    )
    if run.records:
        summary(run.records)
    for failure in run.failed:
        print(f"FAILED {failure}")
    if run.path:
        print(run.path)
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
