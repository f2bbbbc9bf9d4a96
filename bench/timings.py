"""Times many ways to compute many products: what the model of the choice is fitted to (bench/fit.py).

    python bench/timings.py --write DIR [--part 0/4] [--minutes 3]
    python bench/timings.py --dry-run                              # what would be compiled, and compile it: no GPU

For each product the options that the model finds best, and the best of each kind of option (clusters, transposed,
k tiles shared in clusters, warpgroups that take turns, Stream-K, blocks that add up together) that it takes to be at
most ``--within`` as slow. ``--part 1/4``: every fourth product, from the second on, so that four GPUs share the work.
Method and processes as bench/gemm_library.py; each option is timed in two turns of a millisecond, the lesser counts.
``--choice`` times only the first few options of each product: after a fit, what the new model takes now. ``--behind
small``: each launch behind a small kernel of PyTorch's, whose time is subtracted, as bench/gemm_library.py.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from figures import write_results
from library_jobs import NAMES, SPACERS, Job, Shape, work
from pool import Failure, Pool

from tilewright.gemm.choice.choose import KernelOptions
from tilewright.gemm.choice.registry import kernels
from tilewright.gemm.config import HopperConfig
from tilewright.gemm.family.hopper_cost import FIXED_US
from tilewright.gemm.family.plan_options import INFEASIBLE_US, PlanOption
from tilewright.gemm.host.plan import limits
from tilewright.gemm.tuning.candidate import Candidate

WEIGHTS = (
    (6144, 4096),
    (4096, 14336),
    (28672, 8192),
    (8192, 8192),
    (14336, 4096),
    (5120, 5120),
    (4096, 4096),
    (11008, 4096),
    (1024, 8192),
    (8192, 1024),
)
"""N and K of the layers of language models."""


SETS = {"random": 96, "small": 24, "few": 28, "deep": 24, "large": 20}
"""Products as streamk_random's, small ones, few rows on large weights, few tiles with a deep K, large ones."""


def shapes(seed: int, counts: dict[str, int]) -> list[Shape]:
    """So many products of each of the ``SETS``, in random order."""
    rng = random.Random(seed)

    def extent(least: int, most: int, step: int = 8) -> int:
        return step * round(math.exp(rng.uniform(math.log(least), math.log(most))) / step)

    found = [(extent(128, 8192), extent(128, 8192), extent(128, 8192)) for _ in range(counts["random"])]
    found += [(extent(64, 1024), extent(64, 1024), extent(64, 1024)) for _ in range(counts["small"])]
    found += [(extent(8, 256), *rng.choice(WEIGHTS)) for _ in range(counts["few"])]
    found += [(extent(64, 1536), extent(64, 1536), extent(4096, 65536, 64)) for _ in range(counts["deep"])]
    found += [(extent(1024, 8192), extent(1024, 8192), extent(512, 8192)) for _ in range(counts["large"])]
    rng.shuffle(found)
    return found


def options_of(shape: Shape, dtype: str, best: int, others: int, within: float) -> list[Candidate]:
    """The ``best`` options by the model, and of ``others`` kinds the best that is not among them."""
    options = KernelOptions.of(kernels()[f"hopper_{dtype}"], limits("gpu"))
    times = options.model.times((*shape, 1)) + FIXED_US
    found: dict[Candidate, None] = {}
    kinds: dict[Any, Candidate] = {}
    before: tuple[Any, ...] = ()
    for index in times.argsort(kind="stable").tolist():
        way = options.plan_options[index]
        if times[index] > min(within * times.min(), INFEASIBLE_US / 2):
            break
        mirrored = times[index], way.config.tile, way.config.cluster_size, way.parts, way.shared_reduction
        if mirrored == before:  # the same transposed, which the model takes to be as fast
            continue
        before = mirrored
        one = Candidate.of(options.entries[id(way.config)], way.plan((*shape, 1), options.limits))
        if len(found) < best:
            found[one] = None
        if one not in found:
            kinds.setdefault(kind(way), one)
    return [*found, *list(kinds.values())[:others]]


def kind(way: PlanOption) -> tuple[Any, ...]:
    config = way.config
    assert isinstance(config, HopperConfig)
    return config.transposed, config.cluster, config.cluster_k, config.pingpong, way.parts, way.shared_reduction


def run(pool: Pool, args: argparse.Namespace) -> None:
    began = time.monotonic()
    part, parts = map(int, args.part.split("/"))
    timed: dict[Shape, dict[Candidate, float]] = {}
    counts = SETS | {name: int(count) for name, count in (given.split("=") for given in args.sets)}
    for shape in shapes(args.seed, counts)[part::parts][: args.limit]:
        how = (1, 0, 2.0) if args.choice else (args.best, args.others, args.within)
        listed: dict[int, list[Candidate]] = {}
        for one in options_of(shape, args.dtype, *how):
            listed.setdefault(member_of(one, len(pool.members)), []).append(one)
        for member, found in listed.items():
            job = Job("coarse", "timings", shape, args.dtype, "k", tuple(found), dry=args.dry_run, behind=args.behind)
            pool.submit(job, member)
    for job, answer in pool.results(began + 60 * args.minutes):
        if isinstance(answer, Failure):
            print(f"FAILED {job}: {answer.reason}", flush=True)
            continue
        timed.setdefault(job.shape, {}).update(answer.us)
    print(f"{sum(map(len, timed.values()))} timings of {len(timed)} products in {time.monotonic() - began:.0f} s")
    if args.write:
        write_results("timings", args.name, list(records(timed, args.dtype, args.behind)), args.write)


def member_of(one: Candidate, members: int) -> int:
    """The same process for the same kernel."""
    return int.from_bytes(repr((one.kernel, one.size, one.shares is None)).encode(), "little") % 1000003 % members


def records(timed: dict[Shape, dict[Candidate, float]], dtype: str, behind: str) -> Iterator[dict[str, Any]]:
    for shape, us in timed.items():
        for one, value in us.items():
            yield {"mnk": list(shape), "dtype": NAMES[dtype], "behind": behind, **one.to_json(), "us": round(value, 3)}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path)
    parser.add_argument("--name", default="gpu", help="in the name of the file that is written")
    parser.add_argument("--dtype", default="f16", choices=list(NAMES))
    parser.add_argument("--behind", default="", choices=["", *SPACERS], help="see sides.py; empty: in a row")
    parser.add_argument("--seed", type=int, default=101, help="of the products")
    parser.add_argument("--sets", nargs="*", default=[], metavar="NAME=COUNT", help=f"other than {SETS}")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--best", type=int, default=26)
    parser.add_argument("--others", type=int, default=10)
    parser.add_argument("--within", type=float, default=1.6)
    parser.add_argument("--choice", action="store_true", help="the model's best only")
    parser.add_argument("--limit", type=int, help="the first products only")
    parser.add_argument("--processes", type=int, default=max(1, min(16, (os.cpu_count() or 2) - 1)))
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--dry-run", action="store_true")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    print(json.dumps(vars(args), default=str))
    with Pool(args.processes, work) as pool:
        run(pool, args)


if __name__ == "__main__":
    main()
