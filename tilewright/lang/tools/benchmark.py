"""Timing compiled functions: ``benchmark`` and its workspaces.

On a GPU time is taken by events around all iterations (or around a CUDA graph of them); in the simulator by the clock.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilewright.errors import ArgumentError, MachineError
from tilewright.ir.measuring import measuring
from tilewright.lang.arguments.streams import stream_handle


class JitArguments:
    """The arguments of one call. ``add_to_scope`` keeps objects alive that the arguments only point to."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs
        self.references: list[Any] = []

    def add_to_scope(self, references: Sequence[Any]) -> None:
        self.references += list(references)


def benchmark(
    callable: Callable[..., Any],
    *,
    warmup_iterations: int = 10,
    iterations: int = 100,
    stream: Any = None,
    kernel_arguments: JitArguments | None = None,
    workspace_generator: Callable[[], JitArguments] | None = None,
    workspace_count: int = 1,
    use_cuda_graphs: bool = False,
    nvtx_tag: str | None = None,
) -> float:
    """Microseconds of one call of ``callable`` (a compiled function), on average over ``iterations`` calls.

    Args:
        callable: a compiled function.
        warmup_iterations: calls before those that are measured.
        iterations: calls that are measured.
        stream: the stream that the calls use; a graph needs one that is not the default.
        kernel_arguments: what every call takes.
        workspace_generator: makes sets of arguments, which calls take in turn, so that the caches are cold. Their
            contents do not matter: sets of ``torch.empty`` are not a mistake that the simulator's checks report.
        workspace_count: how many sets.
        use_cuda_graphs: measure a graph of the calls.
        nvtx_tag: the name of the NVTX range around the measured calls, by which Nsight shows them; without a profiler
            (and without the package ``nvtx`` or a PyTorch with CUDA) nothing listens.

    >>> from tilewright.cute import testing
    >>> @cute.kernel
    ... def double(x: cute.Tensor):
    ...     i, _, _ = cute.arch.thread_idx()
    ...     x[i] = 2 * x[i]
    >>> @cute.jit
    ... def run(x: cute.Tensor):
    ...     double(x).launch(grid=(1, 1, 1), block=(32, 1, 1))
    >>> x = np.ones(32, np.float32)
    >>> compiled = cute.compile(run, x)
    >>> microseconds = testing.benchmark(
    ...     compiled, kernel_arguments=testing.JitArguments(x), warmup_iterations=1, iterations=2
    ... )
    >>> microseconds > 0, x[0]
    (True, np.float32(8.0))
    """
    if iterations < 1 or warmup_iterations < 0 or workspace_count < 1:
        raise ArgumentError(
            "benchmark: iterations and workspace_count must be positive, warmup_iterations not negative"
        )
    if workspace_generator is None:
        sets = [kernel_arguments or JitArguments()] * workspace_count
    else:
        sets = [workspace_generator() for _ in range(workspace_count)]
    for chosen in sets:
        if not isinstance(chosen, JitArguments):
            raise ArgumentError(f"the timed function takes JitArguments(...), not {type(chosen).__name__}")
    turn = 0

    def calls(count: int) -> None:
        nonlocal turn
        for _ in range(count):
            chosen = sets[turn % len(sets)]
            turn += 1
            callable(*chosen.args, **chosen.kwargs)

    return time_of(calls, sets, warmup_iterations, iterations, stream, nvtx_tag, use_cuda_graphs)


@measuring()
def time_of(
    calls: Callable[[int], None],
    sets: Sequence[JitArguments],
    warmup_iterations: int,
    iterations: int,
    stream: Any = None,
    nvtx_tag: str | None = None,
    use_cuda_graphs: bool = False,
) -> float:
    """Microseconds of one of the calls that ``calls(count)`` makes; ``sets`` are their arguments, which show whether a
    GPU runs them."""
    if not any(_on_gpu(value) for chosen in sets for value in (*chosen.args, *chosen.kwargs.values())):
        calls(warmup_iterations)
        with nvtx_range(nvtx_tag):
            begin = time.perf_counter()
            calls(iterations)
            return (time.perf_counter() - begin) * 1e6 / iterations
    clock = _GpuClock(stream_handle(stream) or 0 if stream is not None else 0, nvtx_tag)
    return (
        clock.graph(calls, warmup_iterations, iterations)
        if use_cuda_graphs
        else clock.events(calls, warmup_iterations, iterations)
    )


@contextlib.contextmanager
def nvtx_range(tag: str | None) -> Iterator[None]:
    """An NVTX range named ``tag`` (None: no range)."""
    push, pop = _nvtx()
    if tag is None or push is None or pop is None:
        yield
        return
    push(tag)
    try:
        yield
    finally:
        pop()


def _nvtx() -> tuple[Callable[[str], Any] | None, Callable[[], Any] | None]:
    """(push, pop) of the package ``nvtx`` or of PyTorch; None where neither can mark ranges."""
    with contextlib.suppress(ImportError):
        nvtx = importlib.import_module("nvtx")
        return nvtx.push_range, nvtx.pop_range
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop
    return None, None


def _on_gpu(value: Any) -> bool:
    device = getattr(value, "device", None)
    if device is None and hasattr(value, "device_pointer"):
        device = value.device_pointer().device
    return str(getattr(device, "type", device)).startswith("cuda")


class _GpuClock:
    """CUDA events on one stream."""

    def __init__(self, stream: int, tag: str | None = None) -> None:
        from cuda.bindings import driver

        self.driver, self.stream, self.tag = driver, stream, tag

    def ask(self, name: str, *args: Any) -> Any:
        error, *rest = getattr(self.driver, name)(*args)
        if int(error):
            raise MachineError(f"{name} failed with error {int(error)}")
        return rest[0] if rest else None

    def events(self, calls: Callable[[int], None], warmup: int, iterations: int) -> float:
        calls(warmup)
        return self.between(lambda: calls(iterations)) / iterations

    def between(self, work: Callable[[], None]) -> float:
        """Microseconds between events before and after ``work``."""
        first, last = self.ask("cuEventCreate", 0), self.ask("cuEventCreate", 0)
        with nvtx_range(self.tag):
            self.ask("cuEventRecord", first, self.stream)
            work()
            self.ask("cuEventRecord", last, self.stream)
            self.ask("cuEventSynchronize", last)
        milliseconds = float(self.ask("cuEventElapsedTime", first, last))
        self.ask("cuEventDestroy", first)
        self.ask("cuEventDestroy", last)
        return milliseconds * 1e3

    def graph(self, calls: Callable[[int], None], warmup: int, iterations: int) -> float:
        if self.stream == 0:
            raise ArgumentError(
                "benchmark(use_cuda_graphs=True) needs a stream of its own: the default one cannot be captured"
            )
        calls(1)  # modules are loaded before the capture begins
        graphs = [self.captured(calls, n) for n in (max(warmup, 1), iterations)]
        self.ask("cuGraphLaunch", graphs[0], self.stream)
        return self.between(lambda: self.ask("cuGraphLaunch", graphs[1], self.stream)) / iterations

    def captured(self, calls: Callable[[int], None], count: int) -> Any:
        mode = self.driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self.ask("cuStreamBeginCapture", self.stream, mode)
        try:
            calls(count)
        finally:
            graph = self.ask("cuStreamEndCapture", self.stream)
        return self.ask("cuGraphInstantiate", graph, 0)


def get_workspace_count(one_workspace_bytes: int, warmup_iterations: int, iterations: int) -> int:
    """How many workspaces of this size overflow the L2 cache three times, at most one for each call.

    >>> get_workspace_count(1 << 40, 10, 100), get_workspace_count(1, 10, 100)
    (1, 110)
    """
    from tilewright.lang.tools.hardware import HardwareInfo

    cache = HardwareInfo().get_l2_cache_size_in_bytes()
    count = -(-3 * cache // max(one_workspace_bytes, 1))
    return max(1, min(count, warmup_iterations + iterations))
