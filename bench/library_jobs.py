"""The jobs of bench/gemm_library.py: what a process of its pool prepares and measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tilewright.errors import TilewrightError
from tilewright.gemm import SplitK, StreamK, kernels
from tilewright.gemm.host.plan import limits
from tilewright.gemm.tuning.ahead import compile_ahead
from tilewright.gemm.tuning.candidate import Candidate
from tilewright.gemm.tuning.stand_in import stand_in

Shape = tuple[int, int, int]
Record = dict[str, Any]
NAMES = {"f16": "float16", "bf16": "bfloat16"}

EXAMPLE = {
    (2048, 2048, 2048): (484, 454, 425, 420),
    (4096, 4096, 4096): (538, 525, 513, 511),
    (5120, 5120, 5120): (507, 535, 518, 511),
    (8192, 8192, 8192): (495, 531, 489, 489),
    (1408, 664, 7424): (191, 299, 317, 299),
    (320, 1736, 6592): (114, 117, 191, 176),
    (128, 4096, 14336): (113, 167, 201, 189),
    (3816, 272, 1440): (186, 174, 157, 156),
}
"""TFLOP/s of CUTLASS's example program of Stream-K (fp16, 128 x 128 x 32 tiles, integer inputs) on one H200: basic
data-parallel, Stream-K, basic split-K 2, Stream-K as split-K 2."""
EXAMPLE_SIDES = ("data-parallel", "Stream-K", "split-K 2", "Stream-K as split-K 2")

CHOICE, CUBLAS, TUNED = "tilewright", "cuBLAS", "tuned"
SPACERS = ("small", "operand", "cold")
"""What may run before each product: ``sides.spacer``."""
SMALL = 1024
"""Rows or columns below which Stream-K is compared on tiles of 128 x 128, too."""
TUNING_ROUNDS = 3
IN = " in "
"""Between the name of a side and the size of its tiles, where it is timed in several."""


@dataclass(frozen=True)
class Variant:
    """A side of a comparison: what ``launcher`` takes as kernel and decomposition."""

    name: str
    kernel: Any = None
    decomposition: Any = "auto"


@dataclass(frozen=True)
class Job:
    """``kind`` is "compare" (the default choice, and ``found``), "coarse" (each of ``found`` once), "tuned" (the best
    of ``found`` beside the choice), "sharing", "ampere" or "few". ``a`` and ``b`` say along which mode A and B are
    contiguous. ``behind`` is one of SPACERS, or empty where products follow each other directly."""

    kind: str
    set: str
    shape: Shape
    dtype: str
    b: str
    found: tuple[Candidate, ...] = ()
    rounds: int = 7
    seconds: float = 0.006
    dry: bool = False
    behind: str = ""
    a: str = "k"

    def __str__(self) -> str:
        return f"{'x'.join(map(str, self.shape))} {self.dtype} {self.a}{self.b}"


@dataclass
class Answer:
    """``records`` for the results file, and a line of ``text``; or the ``us`` of the candidates of a coarse job.
    ``kernels`` were prepared, ``compiled`` of them in this job."""

    records: list[Record]
    text: str
    us: dict[Candidate, float]
    kernels: int = 0
    compiled: int = 0


def work(job: Job, alone: Callable[[], Any]) -> Answer:
    """Compile what the job needs, then measure it ``alone``."""
    ways, kernels_, compiled, texts = [], 0, 0, []
    for way in ways_of(job):
        problem = stand_in(job.shape, NAMES[job.dtype], None, job.a, job.b)
        try:
            plan, artifacts = compile_ahead(problem, way.kernel, way.decomposition)
        except TilewrightError:
            if not job.found or way.name == CHOICE:
                raise
            continue  # the size cannot take the operands
        ways.append(way)
        kernels_, compiled = kernels_ + len(artifacts), compiled + sum(not one.cached for one in artifacts)
        texts.append(f"{way.name}: {plan.entry.name} {'x'.join(map(str, plan.config.tile))} {plan.decomposition}")
    answer = Answer([], f"{job}: {'; '.join(texts[:5])}", {}, kernels_, compiled)
    if not job.dry:
        import_module("gemm_hopper")  # PyTorch takes seconds to import: while other processes measure, not alone
        with alone():
            measure(job, ways, answer)
    return answer


def ways_of(job: Job) -> list[Variant]:
    """The sides of the comparison, but for cuBLAS."""
    choice = Variant(CHOICE)
    candidates = [Variant(str(one), one.entry, one.decomposition((*job.shape, 1), *limits("gpu"))) for one in job.found]
    match job.kind:
        case "coarse":
            return candidates
        case "sharing":
            return [choice, *sharing_ways(job)]
        case "few":
            return [choice, Variant("few rows", f"small_m_{job.dtype}")]
        case "ampere":
            return ampere_ways(job.shape)
        case _:
            return [choice, *candidates]


def sharing_ways(job: Job) -> list[Variant]:
    """Both decompositions in the best size of each, and in the same size: what a user gains who has fixed the tile."""
    entry = kernels()[f"hopper_{job.dtype}"]
    tiles = [(128, 256)] + [(128, 128)] * (min(job.shape[:2]) < SMALL)
    single = {
        config.tile[:2]: config
        for config in (entry.config, *entry.small)
        if config.cluster_size == 1 and not (config.transposed or config.pingpong)
    }
    both = (("data-parallel", "data_parallel"), ("Stream-K", "stream_k"))
    return [Variant(name, entry, how) for name, how in both] + [
        Variant(f"{name} {x}x{y}", entry.only(single[x, y]), how) for x, y in tiles for name, how in both
    ]


def ampere_ways(shape: Shape) -> list[Variant]:
    """The mma.sync kernel's decompositions as the example program has them, with fp16 sums as it has, in several sizes,
    of which the fastest counts. And two with fp32 sums."""
    entry = kernels()["tensorop_f16_f16"]
    multiprocessors, smem = limits("gpu")
    found = [Variant("data-parallel", entry, "data_parallel"), Variant("Stream-K", entry, "stream_k")]
    for size in (entry.config, entry.shared, entry.large):
        assert size is not None
        plan = StreamK.of(
            shape,
            size.tile,
            multiprocessors=multiprocessors,
            occupancy=size.blocks_at_once(smem),
            fragments=size.fragments,
            split=2,
        )
        whole = StreamK.of(
            shape,
            size.tile,
            multiprocessors=multiprocessors,
            occupancy=size.blocks_at_once(smem),
            fragments=size.fragments,
        )
        name = "x".join(map(str, size.tile))
        found.append(Variant(f"data-parallel{IN}{name}", entry.only(size), "data_parallel"))
        found.append(Variant(f"Stream-K{IN}{name}", entry.only(size), whole))
        found.append(Variant(f"split-K 2{IN}{name}", entry.only(size), SplitK(2)))
        found.append(Variant(f"Stream-K as split-K 2{IN}{name}", entry.only(size), plan))
    wide = kernels()["tensorop_f16"]
    wide_sums = ("data-parallel", "data_parallel"), ("Stream-K", "stream_k")
    found += [Variant(f"{name}, fp32 sums", wide, how) for name, how in wide_sums]
    return found


def fastest_sizes(us: dict[str, float]) -> dict[str, str]:
    """The sides of the example, and the name of the one that was fastest among those in several sizes."""
    found: dict[str, str] = {}
    for name in us:
        side = name.partition(IN)[0]
        if side not in found or us[name] < us[found[side]]:
            found[side] = name
    return found


def measure(job: Job, ways: list[Variant], answer: Answer) -> None:
    """Fill in the answer on the GPU."""
    import torch
    from gemm_gpu import rotation
    from gemm_hopper import problem
    from sides import Side, cublas, interleaved, ours

    (m, n, k), flops = job.shape, 2.0 * job.shape[0] * job.shape[1] * job.shape[2]
    if job.kind == "ampere":  # small integers, as the example program has them
        sets = rotation(m, n, k, torch.float16, integers=True)[:16]
    else:
        sets = problem(m, n, k, job.dtype, job.b, job.a)
    try:
        if job.kind == "coarse":
            for way, candidate in zip(ways, candidates_of(job, ways), strict=True):
                side = Side(
                    way.name, ours(sets, way.kernel, way.decomposition), sets, flops, seconds=1e-3, behind=job.behind
                )
                side.round()
                answer.us[candidate] = min(side.round(), side.round())
            return
        how: dict[str, Any] = {"seconds": job.seconds, "behind": job.behind}
        sides = [Side(CUBLAS, cublas, sets, flops, 3, **how)]
        sides += [Side(way.name, ours(sets, way.kernel, way.decomposition), sets, flops, **how) for way in ways]
        if job.kind == "tuned":  # as tune() does it; the figures are of other turns than those that it was chosen by
            times = interleaved(sides[2:], TUNING_ROUNDS)
            best = min(sides[2:], key=lambda side: times[side.name], default=None)
            # Shapes that are not tuned keep the choice.
            best = best or Side(TUNED, sides[1].run, sets, flops, **how)
            best.name = TUNED
            sides = [*sides[:2], best]
        us = interleaved(sides, job.rounds)
        if job.kind == "ampere":
            named = fastest_sizes(us)
            sides = [side for side in sides if side.name in named.values()]
            sizes = {short: name.partition(IN)[2] for short, name in named.items()}
            us = {short: us[name] for short, name in named.items()}
            for side in sides:
                side.name = side.name.partition(IN)[0]
        answer.text = f"{job}: {line(job, us)}"
        for side in sides:
            one: Record = {
                "set": job.set,
                "mnk": list(job.shape),
                "dtype": job.dtype,
                "a": job.a,
                "b": job.b,
                "behind": job.behind,
                "kernel": side.name,
                "us": us[side.name],
                "cublas_us": us[CUBLAS],
                "error": side.error,
            }
            if job.kind == "ampere" and side.name in EXAMPLE_SIDES:
                example = EXAMPLE[job.shape][EXAMPLE_SIDES.index(side.name)]
                one |= {"tflops": side.tflops(us[side.name]), "example_tflops": example}
                one["ratio"] = one["tflops"] / example
                one["tile"] = sizes[side.name]
            answer.records.append(one)
    finally:
        sides = side = None  # their graphs hold memory
        del sets
        torch.cuda.synchronize()
        torch.cuda.empty_cache()  # for the other processes


def candidates_of(job: Job, ways: list[Variant]) -> list[Candidate]:
    named = {str(one): one for one in job.found}
    return [named[way.name] for way in ways]


def tiles_of(us: dict[str, float]) -> list[str]:
    """The tiles on which both decompositions were timed."""
    return [name.split()[1] for name in us if name.startswith("Stream-K ") and " as " not in name]


def line(job: Job, us: dict[str, float]) -> str:
    """What was found, in few words."""
    if job.kind == "ampere":
        m, n, k = job.shape
        rates = (2e-6 * m * n * k / us[name] for name in EXAMPLE_SIDES)
        pairs = zip(EXAMPLE_SIDES, rates, EXAMPLE[job.shape], strict=True)
        return "of the example's speed: " + ", ".join(f"{name} {rate / theirs:.3f}" for name, rate, theirs in pairs)
    text = f"{us[CHOICE]:.1f} us, {us[CUBLAS] / us[CHOICE]:.3f} of cuBLAS"
    if job.kind == "sharing":
        gain, chosen = us["data-parallel"] / us["Stream-K"], us["data-parallel"] / us[CHOICE]
        same = [f"{us[f'data-parallel {tile}'] / us[f'Stream-K {tile}']:.3f} on {tile}" for tile in tiles_of(us)]
        return f"{text}; Stream-K {gain:.3f} of data-parallel ({', '.join(same)}), the choice {chosen:.3f}"
    if job.kind == "few":
        return f"{text}; few rows {job.shape[1] * job.shape[2] * 2e-6 / us['few rows']:.2f} TB/s"
    if job.kind == "tuned":
        return f"{text}; tuned {us[CUBLAS] / us[TUNED]:.3f}"
    if len(us) > 2:
        best = min((time, side) for side, time in us.items() if side != CUBLAS)
        text += f"; best {best[1]}, the choice reaches {best[0] / us[CHOICE]:.3f}"
    return text
