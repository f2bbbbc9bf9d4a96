"""What crosses from the host to a machine: device pointers, launch configurations and the machine protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
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


@dataclass
class RunProfile:
    """What a machine saw while it ran kernels: launches, kernel time in seconds, instructions per warp by mnemonic and
    extra shared-memory wavefronts (both None where the machine cannot count them)."""

    launches: list[tuple[str, LaunchConfig]] = field(default_factory=list)
    seconds: float = 0.0
    instructions: dict[str, int] | None = None
    bank_conflicts: int | None = None


class Machine(Protocol):
    """A machine that runs kernels: the simulator (``cpu``) or an NVIDIA GPU (``cuda``)."""

    def load(self, function: Function, options: Any = None) -> LoadedKernel:
        """Make a kernel ready; compiles or lowers it once. ``options`` are those of ``cute.compile``."""
        ...

    def profile(self, progress: Callable[[float], None] | None = None) -> AbstractContextManager[RunProfile]:
        """Gather a profile of the launches inside the context; ``progress`` hears the fraction done."""
        ...

    def upload(self, array: Any) -> Any:
        """A copy of a NumPy array where this machine's kernels can reach it (the array itself on the CPU)."""
        ...

    def download(self, source: Any, target: Any) -> None:
        """Copy an uploaded array back into a NumPy array of the same shape and dtype."""
        ...
