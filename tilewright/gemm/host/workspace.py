"""The device memory that a launch is given: checked, cut into partial sums and flags, set to zero."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import Int32
from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.schedule.launch_arguments import Workspace
from tilewright.lang.arguments.arrays import Array, array_of
from tilewright.lang.arguments.streams import stream_handle

ALIGNMENT = 16
"""Bytes at whose multiples a workspace begins."""


@dataclass(frozen=True)
class WorkspaceBuffer:
    """An array of bytes that holds a :class:`Workspace`; ``array`` None where nothing is needed."""

    needed: Workspace
    source: Any
    array: Array | None

    def parts(self) -> Callable[[int, Any], Any]:
        """Gives the partial sums at its first call, the flags at its second: ``zeros`` of :meth:`Handle.of`."""
        turn = 0

        def part(n: int, dtype: Any) -> Any:
            nonlocal turn
            turn += 1
            if self.array is None:
                return np.zeros(n, dtype.dtype)  # nothing reads it: an argument has to be there
            start = self.array.address + (0 if turn == 1 else self.needed.flags_offset)
            return self.array._replace(address=start, shape=(n,), stride=(1,), dtype=dtype)

        return part

    def packed(self, offset: int, like: Array) -> Array:
        """``like`` in the memory of packed matrices, ``offset`` bytes from its beginning."""
        assert self.array is not None
        address = self.array.address + self.needed.packed_offset + offset
        return like._replace(address=address, owner=self.array.owner, device=self.array.device, readonly=False)

    def clear(self, stream: Any) -> None:
        """Set the flags to zero, in the order of ``stream``."""
        if self.array is None or not self.needed.flags:
            return
        begin, end = self.needed.flags_offset, self.needed.flags_offset + 4 * self.needed.flags
        if self.array.device == "cpu":
            source = self.source.numpy() if hasattr(self.source, "numpy") else np.asarray(self.source)
            source.reshape(-1).view(np.uint8)[begin:end] = 0
            return
        import torch

        memory = torch.as_tensor(self.source, device=self.array.device).view(-1).view(torch.uint8)
        with torch.cuda.device(memory.device):
            handle = None if stream is None else stream_handle(stream)
            where = torch.cuda.current_stream() if handle is None else torch.cuda.ExternalStream(handle)
            with torch.cuda.stream(where):
                memory[begin:end].zero_()


def workspace_memory(workspace: Any, needed: Workspace, device: str) -> WorkspaceBuffer:
    """``workspace`` as the memory of a launch on ``device``; ArgumentError where it cannot be."""
    if needed.size == 0:
        return WorkspaceBuffer(needed, workspace, None)
    if workspace is None:
        raise ArgumentError(f"the workspace is missing: this product needs {needed.size} bytes (workspace_size)")
    array = array_of(workspace)
    size = int(np.prod(array.shape)) * array.dtype.bytes
    compact = all(
        n == 1 or d == inner for n, d, inner in zip(array.shape, array.stride, _compact(array.shape), strict=True)
    )
    if not compact:
        raise ArgumentError(f"the workspace must be contiguous; it has strides {array.stride}")
    if size < needed.size:
        raise ArgumentError(f"the workspace has {size} bytes; this product needs {needed.size} (workspace_size)")
    if array.device != device:
        raise ArgumentError(f"the workspace is on {array.device}, the operands are on {device}")
    if array.address % ALIGNMENT:
        raise ArgumentError(f"the workspace begins at {array.address:#x}, which is not a multiple of {ALIGNMENT} bytes")
    if array.readonly:
        raise ArgumentError("the workspace is read-only")
    return WorkspaceBuffer(needed, workspace, array)


def check_apart(memory: WorkspaceBuffer, matrices: Sequence[Matrix]) -> None:
    """ArgumentError for a workspace that overlaps with an operand."""
    if memory.array is None:
        return
    low, high = memory.array.bounds
    for matrix in matrices:
        first, last = matrix.array.bounds
        if low < last and first < high:
            raise ArgumentError(f"the workspace overlaps {matrix.name}; give it memory of its own")


def own_memory(needed: Workspace, zeros: Callable[[int, Any], Any]) -> WorkspaceBuffer:
    """New memory, zero already."""
    if needed.size == 0:
        return WorkspaceBuffer(needed, None, None)
    source = zeros(needed.size // 4, Int32)
    return WorkspaceBuffer(needed, source, array_of(source))


def check_stream(stream: Any, device: str) -> None:
    """Raise ArgumentError unless the stream belongs to ``device``."""
    if stream is None:
        return
    if stream_handle(stream) is None:
        raise ArgumentError(f"stream must be a CUDA stream or its handle, got {stream!r}")
    where = getattr(stream, "device", None)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(where, torch.device):
        owner = f"cuda:{where.index or 0}" if where.type == "cuda" else where.type
        if owner != device:
            raise ArgumentError(f"the stream is of {owner}, the operands are on {device}")


def _compact(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
