"""What crosses from the host to a machine: device pointers, launch configurations and the machine protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from tilewright.ir.core import Function


class DevicePointer(NamedTuple):
    """The run-time value of a pointer parameter.

    ``address`` is in bytes; ``[low, high)`` are the bytes of the array behind it (bounds for the simulator);
    ``device`` is ``"cpu"`` or ``"cuda:N"``; ``owner`` keeps the memory alive.
    """

    address: int
    device: str
    low: int
    high: int
    owner: Any


class LaunchConfig(NamedTuple):
    """``grid``, ``block`` and ``cluster`` are ``(x, y, z)``; ``smem`` is dynamic shared memory in bytes (None: what the
    kernel's own allocations need); ``stream`` is a driver handle as an int (None: the caller's current stream)."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] = (1, 1, 1)
    smem: int | None = None
    stream: int | None = None


class LoadedKernel(Protocol):
    """A kernel made ready for one machine. Calling it launches it (asynchronously on a GPU)."""

    def __call__(self, config: LaunchConfig, args: Sequence[Any]) -> None:
        """``args`` match the function's parameters: Python numbers for scalars, DevicePointer for pointers."""
        ...


class Machine(Protocol):
    """A machine that runs kernels: the simulator (``cpu``) or an NVIDIA GPU (``cuda``)."""

    def load(self, function: Function) -> LoadedKernel: ...
