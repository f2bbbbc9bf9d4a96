"""Shared and tensor memory of resources: they say what they need, and an allocator lays it out once.

Allocations of an alias group lie in phases, which begin at the same place: memory that one phase has done with is the
next one's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright._names import attach
from tilewright.errors import ConstraintError
from tilewright.lang.device.array import Array
from tilewright.lang.numbers.numeric import Int64, Uint8, Uint64
from tilewright.lang.tensors.pointer import AddressSpace

__all__ = ["BarrierAllocator", "ResourceContext", "SmemAllocation", "SmemAllocator", "TmemAllocation", "TmemAllocator"]

DEFAULT_ALIGNMENT = 128
TMEM_COLUMNS = 512


@dataclass(frozen=True, eq=False)
class ResourceContext:
    """Where the memory of a kernel is: ``smem_base``, the block of shared memory that the allocator laid out, of bytes;
    ``tmem_ptr_i32``: the place in shared memory of tensor memory's address (``add_tmem_ptr``)."""

    smem_base: Any = None
    tmem_ptr_i32: Any = None


class SmemAllocation:
    """Shared memory by its name: ``count`` elements of ``dtype`` (one by default), or ``size_bytes``. ``offset``: from
    the allocator's block on, once it is laid out.

    >>> from tilewright import Float16
    >>> SmemAllocation("tile", dtype=Float16, count=256).size
    512
    """

    def __init__(
        self,
        name: str,
        size_bytes: int | None = None,
        alignment: int = DEFAULT_ALIGNMENT,
        dtype: Any = None,
        count: int | None = None,
    ) -> None:
        if size_bytes is None and dtype is None:
            raise ConstraintError(f"SmemAllocation {name!r}: give dtype= and count=, or size_bytes=")
        count = 1 if count is None and size_bytes is None else count
        self.name, self.alignment, self.dtype, self.count = name, alignment, dtype, count
        self.size_bytes: int = -(-count * dtype.width // 8) if size_bytes is None else size_bytes  # type: ignore[operator]  # given
        self.offset: int | None = None

    @property
    def size(self) -> int:
        return self.size_bytes


class TmemAllocation:
    """``num_columns`` columns of tensor memory. ``offset``: the first one, once it is laid out.

    >>> TmemAllocation("sums", 128).size
    128
    """

    alignment = 1

    def __init__(self, name: str, num_columns: int) -> None:
        self.name, self.num_columns = name, num_columns
        self.offset: int | None = None

    @property
    def size(self) -> int:
        return self.num_columns


class _Allocator:
    """Lays out allocations one after the other, those of an alias group at one place."""

    unit = "bytes"
    requirements = ""

    def __init__(self) -> None:
        self.allocations: list[Any] = []
        self.groups: list[list[list[Any]]] = []
        self.total: int | None = None

    def add(self, allocation: Any) -> Any:
        """Add an allocation, which is given back."""
        if self.total is not None:
            raise ConstraintError(f"{type(self).__name__}: the layout is computed; add {allocation.name!r} before it")
        if allocation not in self.allocations:
            self.allocations.append(allocation)
        return allocation

    def add_resource(self, resource: Any) -> None:
        """Add what the resource needs."""
        for allocation in getattr(resource, self.requirements)():
            self.add(allocation)

    def add_alias_group(self, phases: Sequence[Iterable[Any]]) -> None:
        """The allocations of each phase are used together, those of different phases never: they share memory."""
        group = [[self.add(allocation) for allocation in phase] for phase in phases]
        self.groups.append(group)

    def compute_layout(self) -> int:
        """Give each allocation its offset; how much there is altogether. Once."""
        if self.total is not None:
            raise ConstraintError(f"{type(self).__name__}.compute_layout is called a second time")
        grouped = {id(x) for group in self.groups for phase in group for x in phase}
        end = 0
        for group in self.groups:
            first = _up(end, max(x.alignment for phase in group for x in phase))
            end = max(_lay_out(phase, first) for phase in group)
        # Large alignments first, so that little is lost between.
        alone = sorted((x for x in self.allocations if id(x) not in grouped), key=lambda x: -x.alignment)
        self.total = _lay_out(alone, end)
        return self.total

    @property
    def alias_pairs(self) -> list[tuple[Any, Any]]:
        """Allocations of different phases of a group, which may not be used at once."""
        pairs = []
        for group in self.groups:
            for i, phase in enumerate(group):
                pairs += [(x, y) for later in group[i + 1 :] for x in phase for y in later]
        return pairs


class SmemAllocator(_Allocator):
    """One block of shared memory for all resources.

    >>> from tilewright import Float16, Int32
    >>> allocator = SmemAllocator()
    >>> a, b = SmemAllocation("a", dtype=Float16, count=64), SmemAllocation("b", dtype=Int32, count=96)
    >>> allocator.add_alias_group([[a], [b]])
    >>> allocator.compute_layout(), a.offset, b.offset
    (384, 0, 0)
    """

    requirements = "get_smem_requirements"

    def __init__(self) -> None:
        super().__init__()
        self.block: Any = None
        self.tmem_ptr: SmemAllocation | None = None
        self.piped: list[Any] = []

    def add_resource(self, resource: Any) -> None:
        """Add what the resource needs, and the mbarriers of its pipeline."""
        super().add_resource(resource)
        self.piped.append(resource)

    def add_pipeline_group(self, group: Any) -> None:
        """Add the mbarriers of a group."""
        self.piped.append(group)

    def add_tmem_ptr(self, allocation: SmemAllocation) -> SmemAllocation:
        """Add the place of tensor memory's address, which is given back."""
        self.tmem_ptr = self.add(allocation)
        return allocation

    @property
    def barrier_smem_bytes(self) -> int:
        """The mbarriers of all pipelines: 16 bytes for each stage."""
        return sum(_barrier_bytes(resource) for resource in self.piped)

    def allocate(self) -> Any:
        """The block, an array of bytes in shared memory. Called while the kernel is staged, after the layout."""
        if self.total is None:
            self.compute_layout()
        if self.block is None and self.total:
            alignment = max(x.alignment for x in self.allocations)
            self.block = Array(Uint8, self.total, space=AddressSpace.smem, alignment=alignment)
        return self.block

    @property
    def smem_base(self) -> Any:
        """The block, as :meth:`allocate` gives it."""
        return self.allocate()

    def assign_barrier_ptrs(self) -> None:
        """Nothing to do by hand: pipelines allocate their mbarriers when they are made."""

    def get(self, allocation: SmemAllocation, dtype: Any = None) -> Any:
        """The allocation as an array of its type; of 128 bits as twice as many Uint64."""
        kind = dtype or allocation.dtype or Uint8
        kind = Uint64 if kind.width == 128 else kind  # answers of cluster launch control, which are no elements
        if allocation.offset is None:
            raise ConstraintError(f"SmemAllocator.get: {allocation.name!r} is not laid out; call compute_layout")
        base = self.allocate().data_ptr(allocation.offset)
        return Array(base, allocation.size * 8 // kind.width, dtype=kind)

    @property
    def context(self) -> ResourceContext:
        """Where everything is."""
        place = None if self.tmem_ptr is None else self.get(self.tmem_ptr)
        return ResourceContext(self.allocate(), place)


def _barrier_bytes(resource: Any) -> int:
    """Of a group, or of a resource whose pipeline is no group's."""
    if hasattr(resource, "barrier_bytes"):
        return int(resource.barrier_bytes)
    config = getattr(resource, "pipeline_config", None)
    return 0 if config is None or getattr(resource, "_group", None) is not None else 16 * int(config.num_stages)


class TmemAllocator(_Allocator):
    """Columns of tensor memory for all resources: offsets alone; the kernel itself allocates them.

    >>> allocator = TmemAllocator()
    >>> sums, scores = allocator.add(TmemAllocation("sums", 128)), allocator.add(TmemAllocation("scores", 64))
    >>> allocator.compute_layout(), sums.offset, scores.offset
    (192, 0, 128)
    """

    unit = "columns"
    requirements = "get_tmem_requirements"

    def compute_layout(self) -> int:
        """Give each allocation its first column; how many there are altogether, at most 512 (ConstraintError)."""
        total = super().compute_layout()
        if total > TMEM_COLUMNS:
            raise ConstraintError(f"TmemAllocator: {total} columns; tensor memory has {TMEM_COLUMNS}")
        return total


class BarrierAllocator:
    """The mbarriers of pipelines. Each pipeline allocates its own when it is made, so this keeps the list alone.

    >>> from tilewright import Int64
    >>> BarrierAllocator().compute_layout()
    0
    """

    def __init__(self) -> None:
        self.stages: dict[str, int] = {}

    def add_resource(self, resource: Any) -> None:
        """Add a resource with a pipeline."""
        self.stages[resource.label] = 2 * resource.pipeline_config.num_stages

    def add_pipeline_group(self, name: str, group: Any) -> None:
        """Add a group."""
        self.stages[name] = group.barrier_bytes // 8

    def compute_layout(self) -> int:
        """The bytes of all mbarriers."""
        return sum(self.stages.values()) * (Int64.width // 8)

    def set_backing(self, smem_allocator: SmemAllocator) -> None:
        """The allocator whose kernel has the mbarriers."""
        self.backing = smem_allocator


def _lay_out(allocations: Iterable[Any], end: int) -> int:
    for allocation in allocations:
        allocation.offset = _up(end, allocation.alignment)
        end = allocation.offset + allocation.size
    return end


def _up(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


attach(__name__)
