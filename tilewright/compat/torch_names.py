"""``torch.cuda`` on the CPU: one device, streams and events whose work has ended, graphs that replay what they
recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from types import FunctionType
from typing import Any

from tilewright.compat import device as gpu
from tilewright.compat import recording
from tilewright.compat.device import NAME


class Stream:
    """``torch.cuda.Stream``: a handle; what is launched on it has run when the launch returns."""

    _handles = iter(range(0x2000, 1 << 62, 0x10))

    def __init__(self, device: Any = None, priority: int = 0, *, stream_ptr: int | None = None) -> None:
        self.cuda_stream = next(self._handles) if stream_ptr is None else stream_ptr
        self.priority = priority

    def synchronize(self) -> None:
        """No effect: launches return when their work is done."""

    def wait_event(self, event: Any) -> None:
        """No effect: the event has happened."""

    def wait_stream(self, stream: Any) -> None:
        """No effect: the work of the other stream is done."""

    def query(self) -> bool:
        return True

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        _now.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _now.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.cuda_stream == self.cuda_stream

    def __hash__(self) -> int:
        return self.cuda_stream


_now: list[Stream] = [Stream(stream_ptr=0)]


class Event:
    """``torch.cuda.Event``: the moment when it was recorded."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self.at: float | None = None

    def record(self, stream: Any = None) -> None:
        self.at = time.perf_counter()

    @property
    def cuda_event(self) -> int:
        """The handle, as a number: 0 until the event is recorded for the first time, as PyTorch has it."""
        return 0 if self.at is None else id(self)

    def wait(self, stream: Any = None) -> None:
        """No effect: the event has happened."""

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        """No effect: the event has happened."""

    def elapsed_time(self, end_event: Event) -> float:
        if self.at is None or end_event.at is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end_event.at - self.at) * 1e3


class CUDAGraph:
    """``torch.cuda.CUDAGraph``: what was captured runs at each replay."""

    def __init__(self, keep_graph: bool = False) -> None:
        self.recorded = recording.Graph()

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        recording.begin_capture()

    def capture_end(self) -> None:
        self.recorded = recording.end_capture()

    def replay(self) -> None:
        self.recorded.launch()

    def reset(self) -> None:
        self.recorded = recording.Graph()


@contextmanager
def graph(
    cuda_graph: CUDAGraph,
    pool: Any = None,
    stream: Any = None,
    capture_error_mode: str = "global",
) -> Iterator[None]:
    """``torch.cuda.graph``: capture what is launched inside."""
    cuda_graph.capture_begin()
    try:
        with stream or Stream():
            yield
    finally:
        cuda_graph.capture_end()


@contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """``torch.cuda.stream``: ``stream`` is the current one inside."""
    with stream or _now[-1]:
        yield


@contextmanager
def device(device: Any) -> Iterator[None]:
    """``torch.cuda.device``: there is one."""
    yield


@contextmanager
def nvtx_range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """``torch.cuda.nvtx.range``: the text is formatted, and nothing is measured."""
    msg.format(*args, **kwargs)
    yield


def _nothing(device: Any = None) -> None:
    """A call without effect on the CPU, where there is one device and its work has ended."""


def _zero(device: Any = None) -> int:
    return 0


def _no_seed(seed: int = 0) -> None:
    """Random numbers on "cuda" are those of the CPU."""


def replacements(torch: Any, is_cuda: Callable[[Any], bool], mode: Callable[[], Any]) -> dict[Any, dict[str, Any]]:
    """The replacements of PyTorch's own names, by module. ``mode()`` is the function mode in which programs run."""
    manual_seed = torch.manual_seed

    def set_device_by_default(device: Any) -> None:
        default(None if device is None or is_cuda(device) else device)

    default = torch.set_default_device
    cuda = {
        "Stream": Stream, "ExternalStream": lambda pointer, device=None: Stream(stream_ptr=pointer), "Event": Event,
        "CUDAGraph": CUDAGraph, "graph": graph, "stream": stream, "StreamContext": stream, "device": device,
        "device_of": device, "is_available": lambda: True, "is_initialized": lambda: True, "init": _nothing,
        "is_bf16_supported": lambda including_emulation=True: True,
        "device_count": lambda: 1, "current_device": _zero, "set_device": _nothing, "set_stream": _set_stream,
        "synchronize": _nothing, "current_stream": lambda device=None: _now[-1],
        "default_stream": lambda device=None: _now[0], "get_device_name": lambda device=None: NAME,
        "get_device_capability": lambda device=None: (gpu.device().major, gpu.device().minor),
        "get_device_properties": lambda device=None: gpu.device(),
        "mem_get_info": lambda device=None: 2 * (gpu.device().total_memory,),
        "is_current_stream_capturing": lambda: recording.counts.capture is not None,
        "manual_seed": lambda seed: manual_seed(seed) and None, "seed": _nothing, "seed_all": _nothing,
        "manual_seed_all": _no_seed, "empty_cache": _nothing, "ipc_collect": _nothing, "cudart": _nothing,
        "memory_allocated": _zero, "max_memory_allocated": _zero, "memory_reserved": _zero,
        "max_memory_reserved": _zero, "reset_peak_memory_stats": _nothing, "can_device_access_peer": lambda *_: False,
    }  # fmt: skip
    return {
        torch.cuda: {name: _own(value) for name, value in cuda.items() if name == "graph" or hasattr(torch.cuda, name)},
        torch.cuda.nvtx: {
            "range_push": _own(_zero),
            "range_pop": _own(_zero),
            "mark": _own(_nothing),
            "range": nvtx_range,
        },
        torch: {
            "set_default_device": set_device_by_default,
            "Generator": _generator_class(torch.Generator, is_cuda),
            "compile": _as_written(torch.compile),
        },
        torch.library: {"custom_op": _custom_op(torch.library.custom_op, is_cuda, mode)},
    }


def _own(function: Any) -> Any:
    """A function of its own for each name: PyTorch's compiler keeps a rule for each function of ``torch.cuda``."""
    if not isinstance(function, FunctionType):
        return function
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _custom_op(real: Callable[..., Any], is_cuda: Callable[[Any], bool], mode: Callable[[], Any]) -> Any:
    """``torch.library.custom_op``: an operator of CUDA tensors is one of the CPU's, where the tensors are. PyTorch
    calls its function outside every mode, so it enters the program's again."""

    def custom_op(name: str, fn: Any = None, /, *, device_types: Any = None, **kwargs: Any) -> Any:
        if fn is None:
            return lambda function: custom_op(name, function, device_types=device_types, **kwargs)
        if device_types is not None:
            kinds = (device_types,) if isinstance(device_types, str) else device_types
            device_types = tuple(dict.fromkeys("cpu" if is_cuda(kind) else kind for kind in kinds))

        def enter(*args: Any, **given: Any) -> Any:
            with mode():
                return fn(*args, **given)

        # PyTorch looks up the names in the annotations in the function's globals
        inside = FunctionType(enter.__code__, fn.__globals__, fn.__name__, None, enter.__closure__)
        return real(name, update_wrapper(inside, fn), device_types=device_types, **kwargs)

    return custom_op


def _as_written(real: Callable[..., Any]) -> Any:
    """``torch.compile`` with ``disable=True``: PyTorch's compiler needs a real CUDA device, and the function as it is
    written means the same. What the other arguments must be is checked."""

    def compile(*args: Any, **kwargs: Any) -> Any:
        return real(*args, **kwargs | {"disable": True})

    return update_wrapper(compile, real)


def _generator_class(real: Any, is_cuda: Callable[[Any], bool]) -> Any:
    """A class whose calls give generators of the CPU, and which these are instances of."""

    class Meta(type):
        def __call__(cls, device: Any = "cpu") -> Any:
            return real("cpu" if is_cuda(device) else device)

        def __instancecheck__(cls, x: Any) -> bool:
            return isinstance(x, real)

    return Meta("Generator", (), {"__module__": "torch"})


def _set_stream(stream: Stream) -> None:
    _now[-1] = stream
