"""CUDA streams of the host program, by their handles."""

from __future__ import annotations

from typing import Any


class StreamHandle(int):
    """A stream's driver handle as a number (0: the default stream). PyTorch's name for it is an attribute."""

    @property
    def cuda_stream(self) -> int:
        return int(self)


def default_stream() -> StreamHandle:
    """The device's default stream."""
    return StreamHandle(0)


def current_stream(device: Any = None) -> StreamHandle:
    """PyTorch's current stream; the default stream where PyTorch sees no GPU."""
    import torch

    if not torch.cuda.is_available():
        return default_stream()
    return StreamHandle(torch.cuda.current_stream(device).cuda_stream)
