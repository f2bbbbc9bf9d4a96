"""The CPU machine for programs that are told they have a GPU: it counts launches, and records them into CUDA graphs.

A captured launch does not run; it runs at each launch of the graph, as on a GPU.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tilewright.ir.core import Function
from tilewright.ir.runtime import LaunchConfig, LoadedKernel, RunProfile
from tilewright.lang.launch.machine import MACHINES, register_machine

Step = Callable[[], Any]


class Graph:
    """The work between the begin and the end of a capture, in order."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def launch(self) -> None:
        for step in self.steps:
            step()


class _Counts:
    def __init__(self) -> None:
        self.launches: dict[str, int] = {}
        self.tensors = 0
        self.capture: Graph | None = None


counts = _Counts()


def begin_capture() -> Graph:
    """Record what is launched from here on instead of running it."""
    counts.capture = Graph()
    return counts.capture


def end_capture() -> Graph:
    graph, counts.capture = counts.capture, None
    return graph or Graph()


class RecordingMachine:
    """The simulator, with the launches counted, or recorded while a graph is captured."""

    def __init__(self, simulator: Any) -> None:
        self.simulator = simulator

    def load(self, function: Function, options: Any = None) -> LoadedKernel:
        kernel: LoadedKernel = self.simulator.load(function, options)
        name = function.name
        if function.kind != "kernel":  # a part of a host function
            return kernel

        def run(config: LaunchConfig, args: Sequence[Any]) -> None:
            if counts.capture is None:
                counts.launches[name] = counts.launches.get(name, 0) + 1
                kernel(config, args)
            else:
                counts.capture.steps.append(functools.partial(run, config, list(args)))

        return run

    def profile(
        self, progress: Callable[[float], None] | None = None, multiply_adds: int = 0
    ) -> AbstractContextManager[RunProfile]:
        return self.simulator.profile(progress, multiply_adds)

    def upload(self, array: Any) -> Any:
        return self.simulator.upload(array)

    def download(self, source: Any, target: Any) -> None:
        self.simulator.download(source, target)


def machine() -> RecordingMachine:
    return RecordingMachine(importlib.import_module(_before or MACHINES["cpu"]).machine())


_before: str | None = None


def install() -> None:
    global _before, counts
    if _before is None:
        _before = MACHINES["cpu"]
        counts.__init__()  # type: ignore[misc]  # begins to count again
        register_machine("cpu", __name__)


def uninstall() -> None:
    global _before
    if _before is not None:
        register_machine("cpu", _before)
        _before = None


def summary() -> str:
    """The launches and tensors that were served, in a sentence; empty if none were."""
    notices = []
    if counts.launches:
        total = sum(counts.launches.values())
        names = ", ".join(f"{n} ({k})" if k > 1 else n for n, k in counts.launches.items())
        notices.append(f"{total} kernel launch{'es' * (total > 1)} ran in the simulator: {names}")
    if counts.tensors:
        notices.append('tensors on "cuda" lay in the memory of the CPU')
    return "; ".join(notices)
