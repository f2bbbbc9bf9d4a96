"""Timing of launches: the wall clock on the CPU, driver events (and CUDA graphs, if asked for) on a GPU."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.errors import ArgumentError, MachineError
from tilewright.lang.arguments import stream_handle

Launch = Callable[[], Any]


def microseconds(launches: Sequence[Launch], warmup: int, device: str, stream: Any, graphs: bool) -> float:
    """The mean time of one launch: ``warmup`` launches are run first, then the rest is timed as a whole."""
    if device == "cpu":
        return _wall_clock(launches, warmup)
    return _Events(device, stream).run(launches, warmup, graphs)


def _wall_clock(launches: Sequence[Launch], warmup: int) -> float:
    for launch in launches[:warmup]:
        launch()
    started = time.perf_counter()
    for launch in launches[warmup:]:
        launch()
    return (time.perf_counter() - started) * 1e6 / max(1, len(launches) - warmup)


class _Events:
    """The clock of one CUDA stream."""

    def __init__(self, device: str, stream: Any) -> None:
        try:
            from cuda.bindings import driver
        except ImportError:
            raise MachineError("timing on a GPU needs the package cuda-bindings: pip install cuda-bindings") from None
        self.driver: Any = driver
        self.number = int(device.partition(":")[2] or 0)
        self.call("cuInit", 0)
        handle = self.call("cuDeviceGet", self.number)
        self.call("cuCtxSetCurrent", self.call("cuDevicePrimaryCtxRetain", handle))
        found = stream_handle(stream) if stream is not None else self._current()
        if found is None:
            raise ArgumentError(f"benchmark: {stream!r} is no CUDA stream")
        self.stream = driver.CUstream(found)

    def _current(self) -> int:
        torch = sys.modules.get("torch")
        return int(torch.cuda.current_stream(self.number).cuda_stream) if torch is not None else 0

    def call(self, name: str, *args: Any) -> Any:
        error, *results = getattr(self.driver, name)(*args)
        if int(error):
            raise MachineError(f"{name}: {error.name}")
        return results[0] if len(results) == 1 else None if not results else results

    def run(self, launches: Sequence[Launch], warmup: int, graphs: bool) -> float:
        for launch in launches[:warmup]:
            launch()
        timed = launches[warmup:]
        work = self._captured(timed) if graphs else lambda: [launch() for launch in timed]
        first, last = self.call("cuEventCreate", 0), self.call("cuEventCreate", 0)
        self.call("cuEventRecord", first, self.stream)
        work()
        self.call("cuEventRecord", last, self.stream)
        self.call("cuEventSynchronize", last)
        elapsed = float(self.call("cuEventElapsedTime", first, last))
        for event in (first, last):
            self.call("cuEventDestroy", event)
        return elapsed * 1e3 / max(1, len(timed))

    def _captured(self, timed: Sequence[Launch]) -> Launch:
        """All launches as one graph, which has run once before it is timed."""
        if int(self.stream) == 0:
            raise ArgumentError("benchmark(use_cuda_graphs=True) needs a stream of its own: pass stream=, and launch on it")
        mode = self.driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self.call("cuStreamBeginCapture", self.stream, mode)
        for launch in timed:
            launch()
        graph = self.call("cuGraphInstantiate", self.call("cuStreamEndCapture", self.stream), 0)
        self.call("cuGraphLaunch", graph, self.stream)
        self.call("cuStreamSynchronize", self.stream)
        return lambda: self.call("cuGraphLaunch", graph, self.stream)


def l2_bytes() -> int:
    """The L2 cache of the current GPU; that of an H100 (50 MiB) where there is none."""
    try:
        from cuda.bindings import driver

        driver.cuInit(0)
        kind = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
        error, size = driver.cuDeviceGetAttribute(kind, 0)
        return int(size) if not int(error) and size else 50 << 20
    except (ImportError, RuntimeError):
        return 50 << 20
