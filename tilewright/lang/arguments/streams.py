"""CUDA streams: of the host program, by their handles, and inside host code that is staged."""

from __future__ import annotations

from typing import Any

from tilewright.ir.core import Value


class StreamHandle(int):
    """A stream's driver handle as a number (0: the default stream). PyTorch's name for it is an attribute."""

    @property
    def cuda_stream(self) -> int:
        return int(self)


class EnvironmentStream:
    """Stands for a stream that calls do not pass: whatever is current when they are made."""


ENVIRONMENT_STREAM = EnvironmentStream()


def default_stream() -> StreamHandle:
    """The device's default stream."""
    return StreamHandle(0)


def current_stream(device: Any = None) -> StreamHandle:
    """PyTorch's current stream; the default stream where PyTorch sees no GPU."""
    import torch

    if not torch.cuda.is_available():
        return default_stream()
    return StreamHandle(torch.cuda.current_stream(device).cuda_stream)


class Stream:
    """A CUDA stream inside host code: pass it to ``launch(stream=...)``."""

    def __init__(self, value: Value) -> None:
        self.value = value

    def __extract_mlir_values__(self) -> list[Value]:
        return [self.value]

    def __new_from_mlir_values__(self, values: list[Value]) -> Stream:
        return Stream(values[0])


def stream_handle(value: Any) -> int | None:
    """The driver's handle of a stream: cuda-bindings' CUstream, PyTorch's stream, or the number itself."""
    handle = getattr(value, "cuda_stream", value)
    try:
        return int(handle)
    except (TypeError, ValueError):
        return None


def is_stream(value: Any) -> bool:
    return type(value).__name__ == "CUstream" or hasattr(type(value), "cuda_stream") or type(value) is Stream


def wants_stream(annotation: Any) -> bool:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return text.rpartition(".")[2] in ("CUstream", "Stream")
