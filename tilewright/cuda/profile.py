"""Timing launches with the driver's events."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator

from tilewright.cuda import libcuda
from tilewright.ir.runtime import LaunchConfig, RunProfile


class Watch:
    """Records an event before and after each launch while it is active."""

    def __init__(self) -> None:
        self.launches: list[tuple[str, LaunchConfig]] = []
        self._spans: list[tuple[int, int, int]] = []

    @contextlib.contextmanager
    def launch(self, name: str, config: LaunchConfig, device: int, stream: int) -> Iterator[None]:
        """Around one launch."""
        with libcuda.current(device):
            start, end = _event(), _event()
            libcuda.check(libcuda.library().cuEventRecord(start, stream), "recording the start of a launch")
            yield
            libcuda.check(libcuda.library().cuEventRecord(end, stream), "recording the end of a launch")
        self.launches.append((name, config))
        self._spans.append((device, start, end))

    def seconds(self) -> float:
        """Time of all launches; waits for the last and releases the events."""
        driver, total = libcuda.library(), 0.0
        for device, start, end in self._spans:
            milliseconds = ctypes.c_float()
            with libcuda.current(device):
                libcuda.check(driver.cuEventSynchronize(end), "waiting for a kernel")
                code = driver.cuEventElapsedTime(ctypes.byref(milliseconds), start, end)
                libcuda.check(code, "asking for the time of a kernel")
                driver.cuEventDestroy_v2(start)
                driver.cuEventDestroy_v2(end)
            total += milliseconds.value / 1000
        self._spans.clear()
        return total


def _event() -> int:
    event = ctypes.c_void_p()
    libcuda.check(libcuda.library().cuEventCreate(ctypes.byref(event), 0), "making an event")
    return event.value or 0


ACTIVE: list[Watch] = []


@contextlib.contextmanager
def profile(progress: Callable[[float], None] | None = None) -> Iterator[RunProfile]:
    """Gather the launches inside the context and their time on the GPU."""
    report, watch = RunProfile(), Watch()
    ACTIVE.append(watch)
    try:
        yield report
    finally:
        ACTIVE.remove(watch)
    report.launches, report.seconds = watch.launches, watch.seconds()
    if progress is not None:
        progress(1.0)
