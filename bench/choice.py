"""What the choice of a kernel costs for a shape that was not seen before, and for one that was; needs no GPU.

    python bench/choice.py

Each of 200 shapes is chosen for in turn, 80 times over, without what the library remembers; the time of a shape is the
least of its 80, so that other work on the machine counts little.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from figures import table

from tilewright.gemm import kernels
from tilewright.gemm.choice.choose import KernelOptions, fastest
from tilewright.gemm.family.plan_options import Problem

H200 = (132, 232448)
KERNELS = "hopper_f16", "hopper_e4m3", "tensorop_f16", "small_m_f16"


def shapes(count: int, rng: random.Random) -> list[Problem]:
    """Half of them even in size, half in its logarithm."""

    def extent(uniform: bool) -> int:
        return 8 * rng.randint(2, 1024) if uniform else round(2 ** rng.uniform(3, 14))

    return [(extent(i % 2 == 0), extent(i % 2 == 0), extent(i % 2 == 0), 1) for i in range(count)]


def least_us(call: Callable[[Problem], Any], problems: list[Problem], rounds: int = 80) -> list[float]:
    """Microseconds of each call, the least of ``rounds``."""
    least = [float("inf")] * len(problems)
    for _ in range(rounds):
        for i, problem in enumerate(problems):
            start = time.perf_counter_ns()
            call(problem)
            least[i] = min(least[i], (time.perf_counter_ns() - start) / 1000)
    return least


def main() -> None:
    rng = random.Random(0)
    problems = shapes(200, rng)
    gc.disable()
    lines = []
    for name in KERNELS:
        entry = kernels()[name]
        options = KernelOptions.of(entry, H200)
        new = least_us(lambda problem, options=options: options.fastest(problem, "auto"), problems)
        seen = least_us(lambda problem, entry=entry: fastest(entry, "auto", problem, H200), problems)
        us = statistics.mean(new), max(new), statistics.mean(seen)
        lines.append((name, str(len(options.plan_options)), *(f"{one:.2f}" for one in us)))
    table("choice of a kernel, us", lines, ("kernel", "options", "new shape", "slowest of them", "seen"))


if __name__ == "__main__":
    main()
