"""A launch that can be run again: with other options, another schedule, or a kernel that was changed.

>>> with intercepting(lambda launch: launch.run()):
...     pass
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.errors import SimulationError
from tilewright.ir.core import Function
from tilewright.ir.runtime import LaunchConfig
from tilewright.sim.checks.running_kernels import kernels_running, set_running
from tilewright.sim.memory import AddressSpace

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.events import Observer
    from tilewright.sim.machine import SimKernel
    from tilewright.sim.program import Program

MemoryContents = list[np.ndarray]
Handler = Callable[["Replay"], None]


class Replay:
    """A launch that a program asks for: its kernel, configuration and arguments, and the memory that it can write."""

    def __init__(self, kernel: SimKernel, config: LaunchConfig, args: Sequence[Any]) -> None:
        self.kernel = kernel
        self.config = config
        self.args = args
        space = AddressSpace()
        kernel.values(args, space)
        self._running = kernels_running()  # kernels of the stream that this one may overlap with
        self._memory = [b.bytes[b.low : b.high] for b in space.exposed() if not b.read_only and b.high > b.low]

    @property
    def name(self) -> str:
        return self.kernel.name

    def run(
        self, program: Program | None = None, observers: Sequence[Observer] = (), make: type[Launch] | Any = None
    ) -> None:
        """Run it once, under the options that hold now. ``program``: another than the kernel's own; ``make``: another
        class of launch than the engine's."""
        set_running(self._running)
        self.kernel.run(self.config, self.args, program, list(observers), make)

    def memory(self) -> MemoryContents:
        """A copy of the bytes that the launch can write."""
        return [data.copy() for data in self._memory]

    def restore(self, memory: MemoryContents) -> None:
        """Set the bytes that the launch can write to what they were."""
        for data, saved in zip(self._memory, memory, strict=True):
            data[:] = saved


def error_kind(error: SimulationError) -> str:
    """The kind of an error of the simulator: ``deadlock``, ``hang``, the rules of the checks that found something, or
    ``fault``."""
    first = str(error).split("\n", 1)[0]
    if first.startswith("deadlock"):
        return "deadlock"
    if " hangs:" in first:
        return "hang"
    if first.startswith("checks of kernel") and error.findings is not None:
        return ", ".join(sorted({finding.rule for finding in error.findings.errors}))
    return "fault"


_handler: Handler | None = None
"""The function that takes launches at present: one for all threads, set by :func:`intercepting` alone."""


class _Taking(threading.local):
    """The handler that a launch of this thread has been handed to, until it returns."""

    handler: Handler | None = None


_taking = _Taking()


@contextmanager
def intercepting(take: Handler, launches: int | None = None) -> Iterator[None]:
    """Hand each launch inside the block to ``take`` instead of running it; ``take`` runs it, as often as it likes.
    What it launches itself it does not get. ``launches``: of one kernel, from the first on; later ones just run."""
    global _handler
    before, _handler = _handler, take if launches is None else _first(launches, take)
    try:
        yield
    finally:
        _handler = before


def _first(launches: int, take: Handler) -> Handler:
    counts = Counter[Function]()

    def handle(replay: Replay) -> None:
        function = replay.kernel.program.function
        counts[function] += 1
        run = take if counts[function] <= launches else Replay.run
        run(replay)

    return handle


def offer_to_handler(kernel: SimKernel, config: LaunchConfig, args: Sequence[Any]) -> bool:
    """Whether a handler has taken this launch."""
    take, before = _handler, _taking.handler
    if take is None or take is before:
        return False
    _taking.handler = take
    try:
        take(Replay(kernel, config, args))
    finally:
        _taking.handler = before
    return True
