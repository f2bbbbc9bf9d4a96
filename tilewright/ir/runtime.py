"""The interface between the host and a machine: device pointers, launch configurations and the machine protocol."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tilewright.reports import Report, Row

if TYPE_CHECKING:
    from tilewright.ir.core import Function

MOST_ROWS = 12  # of mnemonics in the report of a profile


class DevicePointer(NamedTuple):
    """The run-time value of a pointer parameter.

    ``address`` is in bytes; ``[low, high)`` are the bytes of the array behind it (bounds for the simulator);
    ``device`` is ``"cpu"`` or ``"cuda:N"``; ``owner`` keeps the memory alive; ``readonly``: the owner does not let it
    be written; ``shape``: the extents that were passed, of a view for instance (None: those of ``owner``).
    """

    address: int
    device: str
    low: int
    high: int
    owner: Any
    readonly: bool = False
    shape: tuple[int, ...] | None = None

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(getattr(self.owner, "shape", ())) if self.shape is None else self.shape

    def __add__(self, distance: int) -> DevicePointer:  # type: ignore[override]  # addresses move; tuples grow
        """The pointer moved by a number of bytes, as a plain address would be."""
        return DevicePointer(self.address + distance, *self[1:])

    def __int__(self) -> int:
        return self.address


#: What a launch can ask for besides: ``use_pdl``: begin while the kernel before it in the stream still runs (it waits
#: for that one with griddepcontrol.wait); ``cooperative``: all blocks at once, or an error; ``non_portable_cluster``:
#: clusters of 9 to 16 blocks.
LAUNCH_ATTRIBUTES = ("use_pdl", "cooperative", "non_portable_cluster")
PORTABLE_CLUSTER, LARGEST_CLUSTER = 8, 16  # blocks


def cluster_fault(grid: Sequence[int], cluster: Sequence[int], attributes: Sequence[str] = ()) -> str | None:
    """The rule, with the numbers, that forbids launching ``grid`` in clusters; None if none does."""
    shown, size = tuple(cluster), math.prod(cluster)
    if size == 1:
        return None
    if size > LARGEST_CLUSTER:
        return f"a cluster of {shown} has {size} blocks, the most is {LARGEST_CLUSTER}"
    if size > PORTABLE_CLUSTER and "non_portable_cluster" not in attributes:
        return (
            f"a cluster of {shown} has {size} blocks; every GPU with clusters takes {PORTABLE_CLUSTER}, and up to "
            f"{LARGEST_CLUSTER} where you allow it: launch(..., non_portable_cluster=True)"
        )
    if any(g % c for g, c in zip(grid, cluster, strict=True)):
        fits = tuple(-(-g // c) * c for g, c in zip(grid, cluster, strict=True))
        return f"grid {tuple(grid)} is not divisible by the cluster {shown}; the grid counts blocks, {fits} would do"
    return None


def fallback_fault(grid: Sequence[int], cluster: Sequence[int], fallback: Sequence[int]) -> str | None:
    """The rule that forbids ``cluster`` as the preferred one where ``fallback`` is what every GPU finds room for."""
    if any(not 1 <= f <= c or c % f for c, f in zip(cluster, fallback, strict=True)):
        return (
            f"clusters of {tuple(cluster)} are preferred to {tuple(fallback)}, of which they are no whole multiples "
            "along x, y and z"
        )
    return cluster_fault(grid, cluster, LAUNCH_ATTRIBUTES)


class LaunchConfig(NamedTuple):
    """``grid``, ``block`` and ``cluster`` are ``(x, y, z)``; ``smem`` is dynamic shared memory in bytes (None: what the
    kernel's own allocations need); ``stream`` is a driver handle as an int (None: the caller's current stream).

    ``attributes``: names out of ``LAUNCH_ATTRIBUTES``. ``fallback``: the clusters of those blocks for which a GPU finds
    no room in clusters of ``cluster`` (None: all are of ``cluster``). ``part``: the first block and the extents of the
    part of the grid that is meant (None: all of it); machines that run a grid in parts set it.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] = (1, 1, 1)
    smem: int | None = None
    stream: int | None = None
    attributes: tuple[str, ...] = ()
    fallback: tuple[int, int, int] | None = None
    part: tuple[tuple[int, ...], tuple[int, ...]] | None = None

    def in_both_clusters(self) -> list[LaunchConfig]:
        """A launch with a fallback in two parts, as a GPU without room for all preferred clusters may run it: the first
        half of the grid (along its longest extent in clusters) in preferred ones, the rest in others."""
        if self.fallback is None:
            return [self]
        counts = [g // c for g, c in zip(self.grid, self.cluster, strict=True)]
        axis = counts.index(max(counts))
        first, second = list(self.grid), list(self.grid)
        first[axis] = -(-counts[axis] // 2) * self.cluster[axis]
        second[axis] -= first[axis]
        origin = tuple(first[axis] if k == axis else 0 for k in range(3))
        parts = [self._replace(fallback=None, part=((0, 0, 0), tuple(first)))]
        if second[axis]:
            parts.append(self._replace(cluster=self.fallback, fallback=None, part=(origin, tuple(second))))
        return parts


class LoadedKernel(Protocol):
    """A kernel made ready for one machine. Calling it launches it (asynchronously on a GPU)."""

    def __call__(self, config: LaunchConfig, args: Sequence[Any]) -> None:
        """``args`` match the function's parameters: Python numbers for scalars, DevicePointer for pointers."""
        ...


@dataclass
class RunProfile(Report):
    """What a machine saw while it ran kernels: launches, kernel time in seconds, instructions per warp by mnemonic and
    extra shared-memory wavefronts (both None where the machine cannot count them).

    >>> once = LaunchConfig((2, 1, 1), (32, 1, 1))
    >>> print(RunProfile([("add", once), ("add", once)], 0.5e-3, {"ld.global": 8, "add": 4}, 0))
    2 launches in 0.5 ms
      add              grid (2, 1, 1), block (32, 1, 1), 2 times
      instructions     12, of warps
        ld.global      8
        add            4
      bank conflicts   0 extra wavefronts of shared memory
    """

    launches: list[tuple[str, LaunchConfig]] = field(default_factory=list)
    seconds: float = 0.0
    instructions: dict[str, int] | None = None
    bank_conflicts: int | None = None

    def heading(self) -> str:
        count = len(self.launches)
        return f"{count} launch{'es' * (count != 1)} in {self.seconds * 1e3:.3g} ms"

    def rows(self) -> list[Row]:
        rows = []
        for (name, config), times in Counter(self.launches).items():
            where = f"grid {config.grid}, block {config.block}"
            rows.append((name, where + (f", {times} times" if times > 1 else "")))
        if self.instructions is not None:
            rows.append(("instructions", f"{sum(self.instructions.values()):,}, of warps"))
            most = sorted(self.instructions.items(), key=lambda item: -item[1])
            rows += [(f"  {name}", f"{count:,}") for name, count in most[:MOST_ROWS]]
            if most[MOST_ROWS:]:
                rows.append(("  others", f"{sum(count for _, count in most[MOST_ROWS:]):,}"))
        if self.bank_conflicts is not None:
            rows.append(("bank conflicts", f"{self.bank_conflicts:,} extra wavefronts of shared memory"))
        return rows


class Machine(Protocol):
    """A machine that runs kernels: the simulator (``cpu``) or an NVIDIA GPU (``cuda``)."""

    def load(self, function: Function, options: Any = None) -> LoadedKernel:
        """Make a kernel ready; compiles or lowers it once. ``options`` are those of ``cute.compile``."""
        ...

    def profile(
        self, progress: Callable[[float], None] | None = None, multiply_adds: int = 0
    ) -> AbstractContextManager[RunProfile]:
        """Gather a profile of the launches inside the context. ``progress`` is called with the fraction done: of the
        ``multiply_adds``, if their number is given and the machine sees them (a GPU tells the end alone)."""
        ...

    def checking(self, check: str) -> AbstractContextManager[Any]:
        """Launches inside the context run under these checks. Raises MachineError where the machine has none."""
        ...

    def upload(self, array: Any) -> Any:
        """A copy of a NumPy array where this machine's kernels can reach it (the array itself on the CPU)."""
        ...

    def download(self, source: Any, target: Any) -> None:
        """Copy an uploaded array back into a NumPy array of the same shape and dtype."""
        ...
