"""Several kernels on one problem, timed in turns: what the comparisons with cuBLAS share."""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gemm_gpu import graph_of, relative_error, replay_us

from tilewright.gemm import launcher

Run = Callable[..., None]
Sets = list[tuple[torch.Tensor, ...]]
ROUNDS = 21


def ours(sets: Sets, kernel: Any, decomposition: str) -> Run:
    by_address = {s[2].data_ptr(): launcher(s[0], s[1], s[2], kernel=kernel, decomposition=decomposition) for s in sets}
    return lambda a, b, out, _: by_address[out.data_ptr()]()


def cublas(a: torch.Tensor, b: torch.Tensor, _: torch.Tensor, out: torch.Tensor) -> None:
    torch.mm(a, b, out=out)


def parser_of(doc: str, shapes: list[Any], rounds: int = 9) -> argparse.ArgumentParser:
    """The options that all comparisons have; ``shapes`` are texts, or tuples of extents."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    texts = [shape if isinstance(shape, str) else ",".join(map(str, shape)) for shape in shapes]
    parser.add_argument("--shapes", nargs="*", default=texts)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--write", type=Path, help="where the results file goes")
    return parser


def beyond_l2(nbytes: int) -> int:
    """How many buffers of so many bytes exceed three times the L2 together."""
    l2: int = torch.cuda.get_device_properties(0).L2_cache_size
    return -(-3 * l2 // nbytes)


def spacer(kind: str) -> Run:
    """The kernel of PyTorch's that runs before each product, as in a model; ``kind`` is one of library_jobs.SPACERS:

    - "small": an addition to 64 Ki numbers, which neither reads nor writes the operands
    - "operand": writes A, which the product then finds in the L2
    - "cold": writes 256 MiB, after which the L2 holds no operand
    """
    if kind == "operand":
        return lambda a, b, out, theirs: a.mul_(1)
    other = torch.zeros((64 << 10) if kind == "small" else (64 << 20), device="cuda")
    return lambda a, b, out, theirs: other.add_(1)


class Side:
    """One kernel on one problem: its graph of about ``seconds``, its error, its times in microseconds.

    With ``behind`` a kernel of PyTorch's (:func:`spacer`) runs before each product, so that the product's launch cannot
    overlap with the product before it. A second graph has the spacers alone, whose time is subtracted.
    """

    def __init__(
        self, name: str, run: Run, sets: Sets, flops: float, which: int = 2, seconds: float = 0.02, behind: str = ""
    ) -> None:
        self.name, self.run, self.flops = name, run, flops
        for s in sets:
            s[which].fill_(float("nan"))
        each = max(flops / 450e12, 3e-6)
        repeat = max(1, round(seconds / (each * len(sets))))
        self.spacers: torch.cuda.CUDAGraph | None = None
        if behind:
            self.before = before = spacer(behind)  # kept: the graphs write what it writes
            self.spacers, _ = graph_of(before, sets, repeat)
            self.graph, self.products = graph_of(lambda *s: (before(*s), run(*s)), sets, repeat)
        else:
            self.graph, self.products = graph_of(run, sets, repeat)
        self.error = relative_error(sets, which)
        # fp16 accumulators lose some bits on normal inputs; an error of layout or of a race is far larger.
        assert self.error < 2e-2, f"{name}: relative error {self.error}"

    def round(self) -> float:
        us = replay_us(self.graph, self.products)
        if self.spacers is None:
            return us
        alone = us - replay_us(self.spacers, self.products)
        if alone <= 0:
            raise RuntimeError(f"{self.name}: a product takes less than the spacers' times differ by; measure longer")
        return alone

    def tflops(self, us: float) -> float:
        return self.flops / us * 1e-6


def interleaved(sides: list[Side], rounds: int = ROUNDS) -> dict[str, float]:
    """Median microseconds of each side over ``rounds`` turns in random order, after one that is not counted."""
    times: dict[str, list[float]] = {side.name: [] for side in sides}
    for round_ in range(rounds + 1):
        for side in random.sample(sides, len(sides)):
            us = side.round()
            if round_:
                times[side.name].append(us)
    return {name: statistics.median(found) for name, found in times.items()}


def medians(sides: dict[str, Run], sets: list[tuple[Any, ...]], flops: float, rounds: int) -> dict[str, float]:
    """Microseconds of each function, called with each of the sets from CUDA graphs of about 10 ms, in turns. A side
    that refuses the operands is named and left out. What the functions compute is not checked here."""
    each = max(flops / 1000e12, 3e-6)
    repeat = max(1, round(0.01 / (each * len(sets))))
    graphs = {}
    for name, run in sides.items():
        try:
            graphs[name] = graph_of(run, sets, repeat)
        except (RuntimeError, ValueError) as error:
            print(f"  {name}: {str(error).splitlines()[0][:150]}")
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for turn in range(rounds + 1):
        for name in random.sample(list(graphs), len(graphs)):
            us = replay_us(*graphs[name])
            if turn:
                times[name].append(us)
    return {name: statistics.median(found) for name, found in times.items()}
