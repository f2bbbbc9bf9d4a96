"""The options that the choice compares, timed on the GPU that is here: the best by the model, the choice and cuBLAS.

    python bench/options.py [--shapes M,N,K ...] [--dtype f16] [--b k] [--together 9] [--others 6] [--rounds 7]
                            [--out FILE] [--dry]

What the constants of ``tilewright/gemm/choice/hopper_cost.py`` are fitted to. ``--together``: options whose blocks add
up together, a third of them in clusters of one, two and four blocks each, for all shapes, also where the choice passes
them over; ``--others``: of the rest. Buffers rotate, launches follow each other in graphs, sides are timed in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pool import Failure, Pool

from tilewright.gemm import GemmUniversal, KernelEntry, kernels
from tilewright.gemm.choice import hopper_cost
from tilewright.gemm.choice.choose import Options, adding_together
from tilewright.gemm.choice.hopper_cost import FIXED_US, HopperModel
from tilewright.gemm.choice.ways import EVEN, NEVER, Limits, Way, along
from tilewright.gemm.host.plan import limits
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.host.universal import Ready
from tilewright.gemm.tuning.ahead import compile_ready
from tilewright.gemm.tuning.stand_in import stand_in

SHAPES = [
    (128, 128, 32768), (136, 512, 32768), (384, 512, 16384), (768, 768, 8192), (128, 256, 65536), (256, 256, 16384),
    (512, 512, 8192), (64, 1024, 16384), (1024, 1024, 16384), (1024, 1024, 8192), (512, 512, 4096), (512, 768, 4096),
    (640, 640, 6400), (320, 1736, 6592), (296, 1048, 4168), (968, 376, 6768), (616, 216, 6560), (1440, 232, 4840),
    (192, 472, 7992), (128, 1024, 8192), (64, 512, 16384), (256, 1024, 8192), (256, 2048, 8192), (192, 1536, 12288),
    (384, 384, 3072), (896, 1152, 12288), (504, 136, 5896), (256, 512, 2560),
]  # fmt: skip
"""Few tiles; K from 3 to 256 times the longer of M and N."""

MORE_CLUSTERS = ((2, 2), (2, 4), (4, 2))
NAMES = {"f16": "float16", "bf16": "bfloat16"}
Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Job:
    shape: Shape
    dtype: str
    b: str
    together: int
    others: int
    rounds: int
    seconds: float = 0.006
    dry: bool = False


@dataclass(frozen=True)
class Option:
    """A way, the microseconds that the model has for it, and the name of its side."""

    way: Way
    estimate: float
    chosen: bool = False

    @property
    def name(self) -> str:
        config, way = self.way.config, self.way
        parts = "x".join(map(str, config.tile[:2])) + "T" * config.transposed
        parts += f" {config.cluster[0]}x{config.cluster[1]}" + f"x{config.cluster_k}" * (config.cluster_k > 1)
        kind = "together" if way.together else "shares" if way.parts == EVEN else "pingpong" * config.pingpong
        return f"{parts} {kind}".strip()


def options_of(entry: KernelEntry, shape: Shape, where: Limits, together: int, others: int) -> list[Option]:
    """The choice, then the best of each kind."""
    problem, known = (*shape, 1), Options.of(entry, where)
    chosen = known.best(problem, "auto")
    kept, hopper_cost.JOINED_FROM = hopper_cost.JOINED_FROM, 0
    try:
        more = [replace(joint, cluster=config.cluster) for config in entry.small if config.cluster in MORE_CLUSTERS
                for joint in adding_together(replace(config, cluster=(1, 1)))]  # fmt: skip
        ways = [*known.ways, *(Way(config, EVEN, True) for config in more)]
        times = HopperModel(ways, where).times(problem)
    finally:
        hopper_cost.JOINED_FROM = kept
    listed = [Option(ways[i], float(times[i]) + FIXED_US, ways[i] is chosen)
              for i in np.argsort(times, kind="stable").tolist() if times[i] < NEVER / 2]  # fmt: skip
    listed = [one for one in listed if one.way.parts == 1 or one.way.plan(problem, where) is not None]
    kinds = [([one for one in listed if one.chosen], 1, 1)]
    for sizes in ((1,), (2,), (4, 8)):
        joint = [one for one in listed if one.way.together and blocks(one.way) in sizes]
        kinds.append((joint, together // 3, 1 + (sizes == (1,))))
    kinds.append(([one for one in listed if not one.way.together], others, 2))
    seen = set[Any]()
    return [one for kind in kinds for one in best(*kind, shape[0] == shape[1], seen)]


def blocks(way: Way) -> int:
    return way.config.cluster[0] * way.config.cluster[1]  # type: ignore[union-attr]  # a Hopper kernel


def best(listed: list[Option], count: int, most: int, square: bool, seen: set[Any]) -> list[Option]:
    """The first of them that lay different tiles over D, ``most`` with the same tile."""
    of_tile, found = dict[Any, int](), list[Option]()
    for one in listed:
        config: Any = one.way.config
        tile, cluster = along(config, config.tile[:2]), along(config, config.cluster)
        if square and tile[0] > tile[1]:
            tile, cluster = tile[::-1], cluster[::-1]
        key = tile, cluster, config.cluster_k, one.way.parts, one.way.together, config.pingpong
        if key not in seen and of_tile.get(tile, 0) < most and len(found) < count:
            of_tile[tile] = of_tile.get(tile, 0) + 1
            seen.add(key)
            found.append(one)
    return found


def ready(entry: KernelEntry, way: Way, problem: Problem, where: Limits) -> Ready:
    """The problem with the plan that the choice of this option has."""
    made = GemmUniversal(entry.only(way.config), "data_parallel").ready(problem, 1.0, 0.0, None, "gpu")
    shares = way.plan(problem.shape, where)
    if shares is not None:
        shares = replace(shares, reduction_blocks=0, remap_block_indices=False)
    return Ready(problem, made.function, replace(made.plan, shares=shares))


def work(job: Job, alone: Callable[[], Any]) -> dict[str, Any]:
    """Compile the options of a shape, then time them ``alone``."""
    entry, where = kernels()[f"hopper_{job.dtype}"], limits("gpu")
    found = options_of(entry, job.shape, where, job.together, job.others)
    problem = stand_in(job.shape, NAMES[job.dtype], None, "k", job.b)
    for one in found if not job.dry else ():
        compile_ready(ready(entry, one.way, problem, where))
    record: dict[str, Any] = {"mnk": job.shape, "dtype": job.dtype, "b": job.b}
    record["options"] = list(described(found, job, where))
    if not job.dry:
        with alone():
            measure(job, entry, found, where, record)
    return record


def described(found: list[Option], job: Job, where: Limits) -> Iterator[dict[str, Any]]:
    for one in found:
        config: Any = one.way.config
        fields = {key: value for key, value in asdict(config).items() if key not in ("a", "b", "c", "acc_dtype")}
        plan = one.way.plan((*job.shape, 1), where)
        shares = None if plan is None else (plan.sk_tiles, plan.sk_blocks)
        yield {"name": one.name, "estimate": one.estimate, "chosen": one.chosen, "parts": one.way.parts,
               "together": one.way.together, "shares": shares, "size": fields}  # fmt: skip


def measure(job: Job, entry: KernelEntry, found: list[Option], where: Limits, record: dict[str, Any]) -> None:
    import torch
    from gemm_hopper import problem
    from sides import Side, cublas, interleaved

    (m, n, k), flops = job.shape, 2.0 * job.shape[0] * job.shape[1] * job.shape[2]
    sets = problem(m, n, k, job.dtype, job.b)
    sides = [Side("cuBLAS", cublas, sets, flops, 3, seconds=job.seconds)]
    for one in found:
        runs: dict[int, Callable[[], None]] = {}
        for a, b, out, _ in sets:
            made = ready(entry, one.way, Problem.of(a, b, None, out), where)
            made.compile()
            runs[out.data_ptr()] = made.handle.bound()
        run = partial(launch, runs)
        sides.append(Side(one.name, run, sets, flops, seconds=job.seconds))
    us = interleaved(sides, job.rounds)
    record["cublas_us"] = us["cuBLAS"]
    for option in record["options"]:
        option["us"] = us[option["name"]]
    del sides, sets
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def launch(runs: dict[int, Callable[[], None]], a: Any, b: Any, out: Any, _: Any) -> None:
    runs[out.data_ptr()]()


def text(record: dict[str, Any]) -> str:
    """A line for the shape, and one for each option."""
    name = "x".join(map(str, record["mnk"]))
    if "cublas_us" not in record:
        return "\n".join([name, *(f"    {o['name']:28} {o['estimate']:6.1f} us est." for o in record["options"])])
    ordered = sorted(record["options"], key=lambda o: o["us"])
    chosen, base = next(o for o in ordered if o["chosen"]), record["cublas_us"]
    head = f"{name}: cuBLAS {base:.1f} us, choice {chosen['us']:.1f}, best {ordered[0]['us']:.1f}"
    lines = (f"    {o['name']:28} {o['us']:6.1f} us, est. {o['estimate']:6.1f}" for o in ordered)
    return "\n".join([head, *lines])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes", nargs="*")
    parser.add_argument("--dtype", default="f16", choices=NAMES)
    parser.add_argument("--b", default="k", choices=["k", "n"])
    parser.add_argument("--together", type=int, default=9)
    parser.add_argument("--others", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path)
    parser.add_argument("--dry", action="store_true", help="only list the options")
    args = parser.parse_args()
    shapes = [tuple(map(int, shape.split(","))) for shape in args.shapes] if args.shapes else SHAPES
    began, records = time.monotonic(), list[dict[str, Any]]()
    with Pool(min(args.processes, len(shapes)), work) as pool:
        for shape in shapes:
            pool.submit(Job(shape, args.dtype, args.b, args.together, args.others, args.rounds, dry=args.dry))
        for job, answer in pool.results():
            if isinstance(answer, Failure):
                print(f"FAILED {job.shape}: {answer.reason}", flush=True)
                continue
            print(text(answer), flush=True)
            records.append(answer)
            if args.out:
                args.out.write_text(json.dumps(records), encoding="utf-8")
    print(f"{len(records)} of {len(shapes)} shapes in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
