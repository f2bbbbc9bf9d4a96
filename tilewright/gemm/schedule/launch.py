"""The decomposition as an argument of a launch: the plan's numbers, and the memory that blocks share sums through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import Int32
from tilewright.cute.runtime import from_dlpack
from tilewright.gemm.config import AnyConfig, HopperConfig
from tilewright.gemm.schedule.decomposition import (
    DataParallel,
    DynamicTiles,
    PersistentSharedTiles,
    PersistentTiles,
    SharedTiles,
)
from tilewright.gemm.schedule.residency import clusters_at_once
from tilewright.gemm.schedule.splitk import ClusterSlices
from tilewright.gemm.schedule.streamk import StreamK

Decomposition = DataParallel | PersistentTiles | DynamicTiles | SharedTiles | PersistentSharedTiles | ClusterSlices


def decomposition_of(
    plan: StreamK | None, config: AnyConfig, zeros: Callable[[int, Any], Any], multiprocessors: int,
    dynamic: bool = False,
) -> Decomposition:  # fmt: skip
    """The kernel's argument; ``zeros(n, dtype)`` makes an array on the machine that runs it. ``dynamic``: tiles are
    dealt at run time."""
    if isinstance(config, HopperConfig) and config.cluster_k > 1:
        return ClusterSlices(config.cluster_k)
    if plan is None and isinstance(config, HopperConfig):
        workers = Int32(clusters_at_once(multiprocessors, config.cluster_size))
        if not dynamic:
            return PersistentTiles(workers)
        return DynamicTiles(workers, from_dlpack(zeros(1, Int32)).mark_layout_dynamic())
    if plan is None:
        return DataParallel()
    bM, bN, _ = config.tile
    workspace, flags = (
        from_dlpack(array, assumed_align=16).mark_layout_dynamic()
        for array in (zeros(plan.sk_blocks * bM * bN, config.acc_dtype), zeros(plan.sk_blocks, Int32))
    )
    if isinstance(config, HopperConfig):
        return PersistentSharedTiles(workspace, flags, plan, Int32(max(plan.avail_sms, plan.sk_blocks)))
    return SharedTiles(workspace, flags, plan)
