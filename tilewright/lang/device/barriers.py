"""Synchronisation of threads: barriers of the block, of a warp, fences, and groups of asynchronous copies."""

from __future__ import annotations

from typing import Any

from tilewright.atoms import cp_async, sync
from tilewright.errors import ConstraintError
from tilewright.ir.core import Value
from tilewright.lang.device.calls import call, i32
from tilewright.lang.device.threads import block_dim

FULL_MASK = 0xFFFFFFFF


def sync_threads(*, loc: Any = None, ip: Any = None) -> None:
    """Wait until every thread of the block is here; memory written before is visible after."""
    call(sync.SyncThreads())


def barrier(*, barrier_id: Any = None, number_of_threads: Any = None, loc: Any = None, ip: Any = None) -> None:
    """``bar.sync``: wait until ``number_of_threads`` (default: the block) have arrived at barrier ``barrier_id``."""
    if barrier_id is None and number_of_threads is None:
        return sync_threads()
    call(sync.BarrierSync(), *_named(barrier_id, number_of_threads, "barrier"))
    return None


def barrier_arrive(*, barrier_id: Any = None, number_of_threads: Any = None, loc: Any = None, ip: Any = None) -> None:
    """``bar.arrive``: arrive at a barrier without waiting."""
    call(sync.BarrierArrive(), *_named(barrier_id, number_of_threads, "barrier_arrive"))


def _named(barrier_id: Any, number_of_threads: Any, what: str) -> tuple[Value, Value]:
    if number_of_threads is None:
        x, y, z = block_dim()
        number_of_threads = x * y * z
        if what == "barrier_arrive":
            raise ConstraintError("barrier_arrive needs number_of_threads: how many arrive or wait at the barrier")
    return i32(barrier_id if barrier_id is not None else 0), i32(number_of_threads)


def sync_warp(mask: Any = None, *, loc: Any = None, ip: Any = None) -> None:
    """Wait for the lanes in ``mask`` (default: the whole warp)."""
    call(sync.SyncWarp(), *([] if mask is None or mask in (FULL_MASK, -1) else [i32(mask)]))


def fence_proxy(
    kind: Any = "async.shared", *, space: Any = None, use_intrinsic: Any = None, loc: Any = None, ip: Any = None
) -> None:
    """Order generic accesses before accesses by the async proxy (TMA, wgmma)."""
    name = str(getattr(kind, "value", kind))
    shared = "shared" in name or "shared" in str(getattr(space, "value", space))
    call(sync.FenceProxy("shared::cta") if shared else sync.FenceProxy("global"))


def fence_view_async_shared(*, loc: Any = None, ip: Any = None) -> None:
    """Make this thread's writes to shared memory visible to the async proxy."""
    fence_proxy("async.shared")


def fence_acq_rel_cta(*, loc: Any = None, ip: Any = None) -> None:
    call(sync.Fence("cta", "acq_rel"))


def fence_acq_rel_cluster(*, loc: Any = None, ip: Any = None) -> None:
    call(sync.Fence("cluster", "acq_rel"))


def fence_acq_rel_gpu(*, loc: Any = None, ip: Any = None) -> None:
    call(sync.Fence("gpu", "acq_rel"))


def fence_acq_rel_sys(*, loc: Any = None, ip: Any = None) -> None:
    call(sync.Fence("sys", "acq_rel"))


def threadfence(scope: str = "gpu", *, loc: Any = None, ip: Any = None) -> None:
    """``__threadfence()``: earlier writes of this thread are seen before later ones by everyone in ``scope``."""
    call(sync.Fence(scope, "sc"))


def cp_async_commit_group(*, loc: Any = None, ip: Any = None) -> None:
    """Close the group of asynchronous copies issued since the last group."""
    call(cp_async.CpAsyncCommit())


def cp_async_wait_group(n: int, *, loc: Any = None, ip: Any = None) -> None:
    """Wait until at most the ``n`` newest groups of copies are unfinished."""
    call(cp_async.CpAsyncWait(int(n)))
