"""The decomposition as an argument of a launch: the plan's numbers, and the memory that blocks share sums through."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from tilewright import Int32
from tilewright.errors import ConstraintError
from tilewright.gemm.config import AnyConfig
from tilewright.gemm.schedule.decomposition import DataParallel, DynamicTiles, LaunchedTiles, PersistentTiles
from tilewright.gemm.schedule.semaphore import KeptSlices, SerialSplitK
from tilewright.gemm.schedule.shared import BatchSharedTiles, OrderedSharedTiles, PersistentSharedTiles, SharedTiles
from tilewright.gemm.schedule.shared_units import SharedUnits
from tilewright.gemm.schedule.splitk import ClusterSlices, SplitK
from tilewright.gemm.schedule.streamk import CACHE_LINE, StreamK
from tilewright.lang.arguments.arrays import Array, array_of
from tilewright.lang.arguments.dlpack import tensor_over
from tilewright.lang.tools.hardware import clusters_at_once

Decomposition = (
    DataParallel
    | PersistentTiles
    | DynamicTiles
    | LaunchedTiles
    | SharedTiles
    | OrderedSharedTiles
    | PersistentSharedTiles
    | ClusterSlices
    | SerialSplitK
    | KeptSlices
)
Shares = StreamK | SharedUnits | SplitK | None
"""How tiles are shared; None: not at all."""


@dataclass(frozen=True)
class Workspace:
    """Device memory of a launch: ``partials`` accumulators of ``dtype``, then ``flags`` Int32 that are zero between
    launches, then the ``packed`` bytes of matrices that are copied there."""

    partials: int
    dtype: Any
    flags: int
    packed: int = 0

    @property
    def flags_offset(self) -> int:
        """Bytes from the beginning to the flags: whole cache lines."""
        return -(-self.partials * self.dtype.width // 8 // CACHE_LINE) * CACHE_LINE

    @property
    def packed_offset(self) -> int:
        """Bytes from the beginning to the packed matrices."""
        return self.flags_offset + -(-4 * self.flags // CACHE_LINE) * CACHE_LINE

    @property
    def size(self) -> int:
        """Bytes of all of it."""
        return self.packed_offset + self.packed


def workspace_of(plan: Shares, config: AnyConfig, shape: tuple[int, int, int, int], dynamic: bool = False) -> Workspace:
    """The memory that a launch needs for an (M, N, K, L) problem, as the kernel sees it."""
    (bM, bN, _), (m, n, _, _) = config.cluster_tile, shape
    partials, flags = 0, int(dynamic)
    if isinstance(plan, StreamK | SharedUnits):
        handed_over = plan.reduction_blocks > 0 or plan.shared_reduction
        partials = plan.sk_blocks * bM * bN * (2 if handed_over else 1)
        holders = plan.sk_tiles if plan.shared_reduction else plan.sk_blocks
        flags = max(holders * config.cluster_size, plan.reduction_blocks)
    elif isinstance(plan, SplitK) and plan.mode == "serial":
        # A semaphore for each tile of a block.
        flags = -(-m // bM) * -(-n // bN) * config.cluster_size
    elif isinstance(plan, SplitK) and plan.mode == "parallel":
        # A matrix for each slice.
        partials = plan.slices * m * padded(n, config.acc_dtype)
    return Workspace(partials, config.acc_dtype, flags)


def padded(n: int, dtype: Any) -> int:
    """Elements from one row of a slice of parallel split-K to the next: rows begin at multiples of 16 bytes."""
    vector = 128 // int(dtype.width)
    return -(-n // vector) * vector


def decomposition_of(
    plan: Shares,
    config: AnyConfig,
    partials: Any,
    flags: Any,
    multiprocessors: int,
    dynamic: bool = False,
    reduction: str = "mixed",
    numbered: bool = False,
) -> Decomposition:
    """The kernel's argument, with the arrays of a :class:`Workspace` (any where it needs none). ``dynamic``: tiles are
    dealt at run time. ``numbered``: blocks and tiles are numbered as Stream-K's plan has them, on Ampere."""
    # The blocks of a cluster add up in shared memory: no plan, and no workspace.
    if config.cluster_k > 1:
        return ClusterSlices(config.cluster_k)
    if isinstance(plan, SplitK):
        slices = Int32(plan.slices)
        return KeptSlices(slices) if plan.mode == "parallel" else SerialSplitK(slices, tensor(flags))
    if isinstance(plan, StreamK | SharedUnits):
        if plan.shared_reduction:
            reduction = "shared"
        elif plan.reduction_blocks and reduction == "mixed":
            reduction = "separate"
        shared = tensor(partials), tensor(flags), plan, reduction
        if config.persistent:
            return PersistentSharedTiles(*shared, workers=Int32(workers_of(plan, config, multiprocessors)))
        if numbered:
            return SharedTiles(*shared)
        several = isinstance(plan, StreamK) and plan.tiled_shape[2] > 1
        return BatchSharedTiles(*shared) if several else OrderedSharedTiles(*shared)
    if dynamic and config.deals_by_launch:
        return LaunchedTiles()
    if config.persistent:
        workers = Int32(clusters_at_once(multiprocessors, config.cluster_size))
        return DynamicTiles(workers, tensor(flags)) if dynamic else PersistentTiles(workers)
    return DataParallel()


def workers_of(plan: StreamK | SharedUnits, config: AnyConfig, multiprocessors: int) -> int:
    """Clusters of a launch. ConstraintError where they have to run at once, and are more than the GPU holds."""
    at_once = clusters_at_once(multiprocessors, config.cluster_size)
    # Each of them waits for the sums of the others: one that is not resident would never write its own.
    if plan.shared_reduction and plan.sk_blocks > at_once:
        raise ConstraintError(
            f"{plan.sk_blocks} {'blocks' if config.cluster_size == 1 else 'clusters'} share tiles and wait for each "
            f"other (reduction 'shared'), and a GPU of {multiprocessors} multiprocessors runs {at_once} at once: plan "
            "for as many at most, or take another reduction"
        )
    if isinstance(plan, SharedUnits):
        return max(plan.sk_blocks, at_once)
    if plan.shared_reduction:
        whole = prod(plan.tiled_shape) - plan.sk_tiles
        return max(plan.sk_blocks, min(whole, at_once))
    return max(plan.sk_blocks, plan.avail_sms)


def tensor(array: Any) -> Any:
    """A vector of the workspace: the user's array, or a part of one."""
    return tensor_over(array if isinstance(array, Array) else array_of(array), 16).mark_layout_dynamic()
