"""The process that measures: ``python -m tilewright.gemm.tuning.measure``.

It reads one line of JSON that describes the problem, then one for each candidate, and answers each by a line: the
microseconds, or why the candidate failed. A candidate that hangs or breaks the GPU takes only this process with it.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from typing import Any

from tilewright.errors import MachineError, TilewrightError
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.host.universal import PreparedProblem, epilogue_of
from tilewright.gemm.tuning.candidate import Candidate

MOST_SETS = 16
ROUNDS = 5
SECONDS = 0.002  # of one replay
LARGEST_ERROR = 2e-2


class CandidateBenchmark:
    """Operands of one problem, in sets that together exceed three times the L2, and the graphs of candidates."""

    def __init__(self, spec: dict[str, Any]) -> None:
        import torch

        if not torch.cuda.is_available():
            raise MachineError("tuning measures on a GPU, and PyTorch sees none")
        self.torch = torch
        m, n, k, batch = self.problem = tuple(spec["shape"])
        dtype, out = (getattr(torch, spec[name]) for name in ("dtype", "out_dtype"))
        size = batch * (dtype.itemsize * (m + n) * k + out.itemsize * m * n)
        # One replay goes through all sets: each product finds its operands in memory, not in L2.
        count = -(-3 * torch.cuda.get_device_properties(0).L2_cache_size // size)
        self.sets = []
        for _ in range(max(1, min(MOST_SETS, count))):
            a, b = self.draw(m, k, dtype, spec["a_major"] == "k"), self.draw(n, k, dtype, spec["b_major"] == "k").mT
            d = torch.empty(batch, m, n, dtype=out, device="cuda")
            self.sets.append(tuple(x[0] if batch == 1 else x for x in (a, b, d)))
        a, b, _ = self.sets[0]
        # 64 rows, anywhere, suffice to notice a wrong kernel.
        self.rows = torch.randperm(m, device="cuda")[:64]
        self.expected = a[..., self.rows, :].double() @ b.double()
        self.graphs: dict[Candidate, tuple[Any, int]] = {}

    def draw(self, rows: int, k: int, dtype: Any, along_k: bool) -> Any:
        torch, batch = self.torch, self.problem[3]
        shape = (batch, rows, k) if along_k else (batch, k, rows)
        floats = dtype.is_floating_point
        drawn = torch.randn(shape, device="cuda") if floats else torch.randint(-4, 5, shape, device="cuda")
        return drawn.to(dtype) if along_k else drawn.to(dtype).mT

    def us(self, candidate: Candidate) -> float:
        """Microseconds of one product; TilewrightError if it is wrong."""
        if candidate not in self.graphs:
            self.graphs[candidate] = self.captured(candidate)
        graph, products = self.graphs[candidate]
        times = []
        for _ in range(ROUNDS):
            start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) * 1e3 / products)
        return statistics.median(times)

    def captured(self, candidate: Candidate) -> tuple[Any, int]:
        torch = self.torch
        runs = [launch_of(candidate, *s) for s in self.sets]
        self.sets[0][2].fill_(float("nan") if self.sets[0][2].is_floating_point() else -1)
        runs[0]()
        result = self.sets[0][2][..., self.rows, :].double()
        error = float((result - self.expected).norm() / self.expected.norm())
        if not error < LARGEST_ERROR:
            raise MachineError(f"the result is wrong: relative error {error:g}")
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for run in runs:
                run()
            end.record()
            end.synchronize()
            repeat = max(1, min(1000, round(SECONDS / max(start.elapsed_time(end) * 1e-3, 1e-6))))
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                for _ in range(repeat):
                    for run in runs:
                        run()
        graph.runs = runs  # and with them their workspaces
        return graph, repeat * len(runs)


def launch_of(candidate: Candidate, a: Any, b: Any, out: Any) -> Callable[[], None]:
    """A callable that launches out = a @ b in this way, on memory of its own."""
    problem = Problem.of(a, b, None, out)
    plan = candidate.plan(problem, problem.machine)
    ready = PreparedProblem(problem, epilogue_of(plan.entry, problem, 1.0, 0.0, None), plan)
    ready.compile()
    return ready.handle.bound()


def main() -> None:
    """Answer until the input ends."""

    def say(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), flush=True)

    try:
        bench = CandidateBenchmark(json.loads(sys.stdin.readline()))
    except (TilewrightError, ImportError, RuntimeError) as error:
        say({"fatal": f"{type(error).__name__}: {error}"})
        return
    say({"ready": True})
    for line in sys.stdin:
        try:
            say({"us": bench.us(Candidate.from_json(json.loads(line)))})
        except (TilewrightError, RuntimeError) as error:
            say({"failure": f"{type(error).__name__}: {str(error).splitlines()[0]}"})
            if "CUDA error" in str(error):
                return  # nothing more can run in this process


if __name__ == "__main__":
    main()
