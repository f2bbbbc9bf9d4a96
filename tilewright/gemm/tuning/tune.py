"""``tune``: which way to multiply a problem is fastest on this GPU, measured and remembered for ``matmul``."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import Any

from tilewright.errors import MachineError
from tilewright.gemm.choice.choose import KernelOptions
from tilewright.gemm.choice.registry import candidates
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.family.plan_options import INFEASIBLE_US
from tilewright.gemm.family.suited import suited_entry
from tilewright.gemm.host.packing import Packing
from tilewright.gemm.host.plan import Plan, capability_of, limits, packed_us, packing_for, refusal
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.schedule.shared_units import SharedUnits
from tilewright.gemm.schedule.splitk import SplitK
from tilewright.gemm.schedule.streamk_blocks import positive
from tilewright.gemm.tuning import store
from tilewright.gemm.tuning.candidate import Candidate
from tilewright.gemm.tuning.stand_in import stand_in
from tilewright.gemm.tuning.worker import COMMAND, FailedCandidate, Worker
from tilewright.reports import Report, Row

FINALISTS = 5
FINAL_ROUNDS = 3
OF_EACH = 4
"""Each kernel that can take the problem gets at least one in this many candidates."""
STOPPED_AFTER = 20.0
"""Seconds that one candidate may take, its compilation included."""


@dataclass
class Tuned(Report):
    """What :func:`tune` found. ``default_us`` is the time of the model's choice, ``us`` of the fastest; ``failed``
    names candidates that could not be measured, with the reason; ``complete`` is false where the time was up first."""

    shape: tuple[int, int, int, int]
    best: Candidate
    us: float
    default: Candidate
    default_us: float
    measured: int
    failed: dict[str, str] = field(default_factory=dict)
    complete: bool = True
    file: Any = None

    def heading(self) -> str:
        return "tuned for " + " x ".join(map(str, self.shape))

    def rows(self) -> list[Row]:
        rows = [
            ("fastest", f"{self.best}: {self.us:.4g} us"),
            ("the model's choice", f"{self.default}: {self.default_us:.4g} us"),
            ("measured", f"{self.measured}" + ("" if self.complete else ", when the time was up")),
            *((f"failed: {name}", why) for name, why in self.failed.items()),
        ]
        return rows + ([("remembered in", str(self.file))] if self.file is not None else [])


def tune(
    shape: Sequence[int],
    dtype: Any = "float16",
    *,
    out_dtype: Any = None,
    a_major: str = "k",
    b_major: str = "n",
    candidates: int = 48,
    seconds: float = 120.0,
    progress: bool = True,
    command: Sequence[str] = COMMAND,
) -> Tuned:
    """Measure the ways to multiply that the model finds best, and remember the fastest for :func:`matmul`.

    Args:
        shape: (M, N, K), or (M, N, K, L) for L products.
        dtype: of A and B, a framework's dtype or its name; ``out_dtype``: of the result, as :func:`matmul` would have
            it by default.
        a_major: "k" for row-major A, "m" for column-major; ``b_major``: "n" for row-major B, "k" for column-major.
        candidates: how many ways to measure.
        seconds: the limit of the whole search; it then ends with the results so far.
        progress: show a bar on standard error.
        command: the program that measures, in a process of its own.

    Rows (columns) of the operands follow each other without gaps. Where they do not begin at multiples of 16 bytes, the
    ways are kernels that read them so, and faster ones with copies of the matrices to aligned rows before (and after)
    them. Needs a GPU and PyTorch. Raises ArgumentError for a bad problem, and MachineError where nothing can be
    measured.
    """
    problem = stand_in(shape, dtype, out_dtype, a_major, b_major)
    key = store.problem_key(problem)
    assert key is not None, "a stand-in has no rows by index"
    ways = best_by_model(problem, positive("candidates", candidates))
    with progress_bar(progress, len(ways)) as advance:
        result = search(problem, ways, specification(problem, a_major, b_major), seconds, command, advance)
    result.file = store.keep(key, result.best)
    return result


def search(
    problem: Problem, ways: list[Candidate], spec: dict[str, Any], seconds: float, command: Sequence[str], advance: Any
) -> Tuned:
    """Each candidate once, then the best of them and the model's choice in turns."""
    times: dict[Candidate, list[float]] = {}
    failed: dict[str, str] = {}
    end = time.monotonic() + seconds

    def measure(way: Candidate) -> None:
        remaining = end - time.monotonic()
        if remaining <= 0 or str(way) in failed:
            return
        answer = worker.us(way, min(STOPPED_AFTER, max(remaining, 1.0)))
        if isinstance(answer, FailedCandidate):
            failed[str(way)] = answer.reason
            times.pop(way, None)
        else:
            times.setdefault(way, []).append(answer)

    with Worker(spec, command) as worker:
        for way in ways:
            measure(way)
            advance()
        first = sorted(times, key=lambda way: times[way][0])[:FINALISTS]
        finalists = list(dict.fromkeys([*first, *(way for way in ways[:1] if way in times)]))
        for _ in range(FINAL_ROUNDS):
            for way in finalists:
                measure(way)
    us = {way: statistics.median(times[way]) for way in finalists if way in times}
    if not us:
        reasons = "; ".join(f"{way}: {reason}" for way, reason in list(failed.items())[:3])
        raise MachineError(f"no candidate could be measured in {seconds:g} seconds: {reasons or 'none was tried'}")
    best = min(us, key=us.__getitem__)
    default = ways[0]
    return Tuned(
        problem.shape,
        best,
        us[best],
        default,
        us.get(default, float("nan")),
        len(times),
        failed,
        complete=len(times) + len(failed) >= len(ways),
    )


def best_by_model(problem: Problem, count: int) -> list[Candidate]:
    """The ways that the model finds best, its own choice first; where there are several kernels, with copies and
    without, some of each, as their estimates can be told apart less well."""
    entries, machine = default_kernels(problem), "gpu"
    plan = Plan.of(problem, entries, "auto", machine, may_pack="ABCD")
    shares = plan.shares
    assert not isinstance(shares, SplitK | SharedUnits), "the choice never takes these"
    candidates = [Candidate.of(plan.entry, shares, plan.packing is not None)]
    taken = next(entry for entry in entries if refusal(entry, problem, "auto", capability_of(machine)) is None)
    ranked = [estimates(*one, count) for one in ways_to_lie(problem, entries, taken)]
    sure = dict.fromkeys([*candidates, *(way for one in ranked for _, way in one[: max(1, count // OF_EACH)])])
    spare = count - len(sure)
    for _, way in sorted(chain(*ranked), key=itemgetter(0)):
        if way not in candidates and (way in sure or spare > 0):
            candidates.append(way)
            spare -= way not in sure
    return candidates[:count]


def ways_to_lie(
    problem: Problem, entries: list[KernelEntry], taken: KernelEntry
) -> Iterator[tuple[Problem, KernelEntry, Packing | None]]:
    """The problem as it is laid out, with the kernel that takes it so; and as its copies are, with the faster
    kernels before that one."""
    yield problem, suited_entry(taken, problem), None
    for entry in entries[: entries.index(taken)]:
        if (packing := packing_for(entry, problem, "auto", "gpu", None, "ABCD")) is not None:
            yield packing.placed(problem), entry, packing


def estimates(
    problem: Problem, entry: KernelEntry, packing: Packing | None, count: int
) -> list[tuple[float, Candidate]]:
    """Microseconds of a kernel's ``count`` best ways."""
    options = KernelOptions.of(entry, limits("gpu"))
    times, more = options.model.times(problem.shape), 0.0 if packing is None else packed_us(packing)
    found: dict[Candidate, float] = {}
    for index in times.argsort(kind="stable").tolist():
        if times[index] > INFEASIBLE_US / 2 or len(found) == count:
            break
        way = options.plan_options[index]
        shares = way.plan(problem.shape, options.limits)
        one = Candidate.of(options.entries[id(way.config)], shares, packing is not None)
        found.setdefault(one, float(times[index]) + more)
    return [(us, one) for one, us in found.items()]


def default_kernels(problem: Problem) -> list[KernelEntry]:
    return candidates(problem.A.dtype, None)


def specification(problem: Problem, a_major: str, b_major: str) -> dict[str, Any]:
    """The message to the process that measures the problem."""
    names = {
        name: str(matrix.dtype.torch_dtype).removeprefix("torch.")
        for name, matrix in (("dtype", problem.A), ("out_dtype", problem.D))
    }
    return {"shape": problem.shape, **names, "a_major": a_major, "b_major": b_major}


def progress_bar(shown: bool, total: int) -> Any:
    """A context that gives the function to call after each candidate."""
    if not shown:
        return nullcontext(lambda: None)
    from tilewright.gemm.tuning.progress import progress_bar

    return progress_bar("tuning", total)
