"""The primitives that order threads: barriers, mbarriers, fences, votes and shuffles."""

from __future__ import annotations

from typing import Any

from tilewright.atoms.exit import Exit
from tilewright.atoms.tensormap import FenceTensorMapAcquire, FenceTensorMapRelease
from tilewright.errors import ConstraintError
from tilewright.experimental import choices
from tilewright.experimental.choices import chosen
from tilewright.lang.device import barriers, clusters, registers, warps
from tilewright.lang.device.atomic import pointer_of
from tilewright.lang.device.calls import call
from tilewright.lang.device.threads import block_idx_in_cluster
from tilewright.lang.numbers.numeric import unwrap
from tilewright.lang.tensors.pointer import Pointer

__all__ = [
    "bar_warp_sync",
    "barrier",
    "barrier_cluster_arrive",
    "barrier_cluster_arrive_relaxed",
    "barrier_cluster_wait",
    "barrier_cta_arrive",
    "barrier_cta_red",
    "barrier_cta_sync",
    "barrier_cta_sync_aligned",
    "cluster_ctarank",
    "elect_sync",
    "exit",
    "fence_proxy",
    "fence_proxy_acquire",
    "fence_proxy_release",
    "fence_sync_restrict",
    "mapa",
    "setmaxregister",
    "shfl_sync",
    "vote_sync",
]


def elect_sync(*, membermask: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """A Boolean that is true in one lane of those that execute it, which ``membermask`` names for PTX.

    >>> from tilewright import Int32
    >>> sum(per_thread(lambda t: Int32(elect_sync()), 32))
    1
    """
    return warps.elected()


def barrier_cta_sync(
    barrier_id: Any = None, thread_count: Any = None, *, aligned: bool = True, loc: Any = None, ip: Any = None
) -> None:
    """``barrier.cta.sync``: wait until all threads of the block, or ``thread_count`` of them, are at the barrier.

    >>> per_thread(lambda t: (barrier_cta_sync(), t)[-1], 64)[:2]
    [0, 1]
    """
    if thread_count is None and (barrier_id is None or unwrap(barrier_id) == 0):
        return barriers.sync_threads()
    return barriers.barrier(
        barrier_id=0 if barrier_id is None else barrier_id, number_of_threads=thread_count, aligned=aligned
    )


barrier_cta_sync_aligned = barrier_cta_sync


def barrier(barrier_id: Any = None, number_of_threads: Any = None, *, loc: Any = None, ip: Any = None) -> None:
    """:func:`barrier_cta_sync` as the operation ``nvvm.barrier`` names its operands.

    >>> per_thread(lambda t: (barrier(1, 64), t)[-1], 64)[:2]
    [0, 1]
    """
    barrier_cta_sync(barrier_id, number_of_threads)


def exit(*, loc: Any = None, ip: Any = None) -> None:
    """The warps that are here end. Barriers of all threads of the block (:func:`barrier_cta_sync` without a number of
    threads), and those of the cluster, wait for them no longer. Of a warp all threads end, or none.

    >>> @cute.jit
    ... def first_warp(t, p):
    ...     if t >= 32:
    ...         exit()
    ...     barrier_cta_sync()  # of the first warp alone
    ...     arch.store(p + t, 7)
    ...     return t
    >>> per_thread(first_warp, 64, memory=[0] * 64)[1][31:33]
    [7, 0]
    """
    call(Exit())


def barrier_cta_arrive(
    barrier_id: Any, thread_count: Any, *, aligned: bool = True, loc: Any = None, ip: Any = None
) -> None:
    """``barrier.cta.arrive``: arrive at the barrier and go on.

    >>> per_thread(lambda t: (barrier_cta_arrive(1, 64), t)[-1], 64)[:2]
    [0, 1]
    """
    barriers.barrier_arrive(barrier_id=barrier_id, number_of_threads=thread_count, aligned=aligned)


def barrier_cta_red(
    pred: Any,
    *,
    barrier_id: Any = 0,
    kind: str = "or",
    thread_count: Any = None,
    aligned: bool = True,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """``barrier.cta.red``: wait as :func:`barrier_cta_sync` does; for how many of the threads that meet ``pred`` holds
    (``kind="popc"``, an Int32), or whether it does for all (``"and"``) or some of them (``"or"``, Booleans).

    >>> per_thread(lambda t: barrier_cta_red(t % 3 == 0, kind="popc"), 96)[::40]
    [32, 32, 32]
    """
    return barriers.barrier_reduce(pred, kind, barrier_id=barrier_id, number_of_threads=thread_count, aligned=aligned)


def bar_warp_sync(mask: Any = None, *, loc: Any = None, ip: Any = None) -> None:
    """``bar.warp.sync``: the lanes of a warp meet.

    >>> per_thread(lambda t: (bar_warp_sync(), t)[-1], 64)[:2]
    [0, 1]
    """
    static_mask = unwrap(mask)
    barriers.sync_warp(None if static_mask in (None, 0xFFFFFFFF, -1) else mask)


def barrier_cluster_arrive(*, loc: Any = None, ip: Any = None) -> None:
    """Arrive at the barrier of the cluster.

    >>> per_thread(lambda t: (barrier_cluster_arrive(), barrier_cluster_wait(), t)[-1], 64)[:2]
    [0, 1]
    """
    clusters.cluster_arrive()


def barrier_cluster_arrive_relaxed(*, loc: Any = None, ip: Any = None) -> None:
    """Arrive at the barrier of the cluster, which orders no memory by that.

    >>> per_thread(lambda t: (barrier_cluster_arrive_relaxed(), barrier_cluster_wait(), t)[-1], 64)[:2]
    [0, 1]
    """
    clusters.cluster_arrive_relaxed()


def barrier_cluster_wait(*, loc: Any = None, ip: Any = None) -> None:
    """Wait at the barrier of the cluster.

    >>> per_thread(lambda t: (barrier_cluster_arrive(), barrier_cluster_wait(), t)[-1], 64)[:2]
    [0, 1]
    """
    clusters.cluster_wait()


def mapa(ptr: Any, rank: Any, *, addrspace: Any = None, loc: Any = None, ip: Any = None) -> Pointer:
    """The pointer to the same place in the shared memory of block ``rank`` of the cluster.

    >>> from tilewright import Int64
    >>> per_thread(lambda t: (mapa(arch.alloc_smem(Int64, 1), 0), t)[-1], 64)[:2]
    [0, 1]
    """
    return clusters.mapa(pointer_of(ptr, "mapa"), rank)


def fence_proxy(kind: Any, *, space: Any = None, loc: Any = None, ip: Any = None) -> None:
    """Order this thread's accesses with those of another proxy.

    >>> per_thread(lambda t: (fence_proxy("async.shared", space="cta"), t)[-1], 64)[:2]
    [0, 1]
    """
    proxy = chosen(choices.Proxy, kind, "fence_proxy").value
    where = None if space is None else str(getattr(space, "value", space)).removeprefix("shared_")
    barriers.fence_proxy(proxy, space=where if proxy == "async.shared" else None)


def fence_proxy_acquire(
    scope: Any,
    addr: Any,
    size: int = 128,
    *,
    from_proxy: Any = choices.Proxy.GENERIC,
    to_proxy: Any = choices.Proxy.TENSORMAP,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """``cute.nvgpu.cpasync.fence_tma_desc_acquire``: TMA copies that follow read the tensor map at ``addr`` (``size``
    is 128 bytes, in global memory) as other threads have released it. A scope below the GPU is fenced as the GPU is.

    >>> fence_proxy_acquire(choices.MemScope.SYS, None)
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: fence_proxy_acquire: the scopes are CTA, CLUSTER and GPU, not SYS
    """
    _tensormap_fence("fence_proxy_acquire", scope, from_proxy, to_proxy)
    if size != 128:
        raise ConstraintError(f"fence_proxy_acquire: size is 128, the bytes of a tensor map, not {size!r}")
    call(FenceTensorMapAcquire(), pointer_of(addr, "fence_proxy_acquire"))


def fence_proxy_release(
    scope: Any,
    *,
    from_proxy: Any = choices.Proxy.GENERIC,
    to_proxy: Any = choices.Proxy.TENSORMAP,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """``cute.nvgpu.cpasync.fence_tma_desc_release``: other threads may acquire (:func:`fence_proxy_acquire`) the tensor
    maps that this thread has written. A scope below the GPU is fenced as the GPU is.

    >>> per_thread(lambda t: (fence_proxy_release("gpu"), t)[-1], 64)[:2]
    [0, 1]
    """
    _tensormap_fence("fence_proxy_release", scope, from_proxy, to_proxy)
    call(FenceTensorMapRelease())


def _tensormap_fence(what: str, scope: Any, from_proxy: Any, to_proxy: Any) -> None:
    proxies = tuple(chosen(choices.Proxy, proxy, what) for proxy in (from_proxy, to_proxy))
    if proxies != (choices.Proxy.GENERIC, choices.Proxy.TENSORMAP):
        names = " to ".join(proxy.name for proxy in proxies)
        raise ConstraintError(f"{what}: PTX orders from GENERIC to TENSORMAP this way, not from {names}")
    if chosen(choices.MemScope, scope, what) is choices.MemScope.SYS:
        raise ConstraintError(f"{what}: the scopes are CTA, CLUSTER and GPU, not SYS")


def fence_sync_restrict(order: Any, *, loc: Any = None, ip: Any = None) -> None:
    """``fence.acquire.sync_restrict`` or ``fence.release.sync_restrict``: order this thread's accesses before a relaxed
    arrival, or after a relaxed wait, as seen by the cluster. Here it is a whole fence.

    >>> per_thread(lambda t: (fence_sync_restrict(choices.MemOrder.RELEASE), t)[-1], 64)[:2]
    [0, 1]
    """
    chosen(choices.MemOrder, order, "fence_sync_restrict")
    barriers.fence_acq_rel_cluster()


def cluster_ctarank(*, loc: Any = None, ip: Any = None) -> Any:
    """The rank of this block in its cluster.

    >>> per_thread(lambda t: cluster_ctarank(), 64)[:2]
    [0, 0]
    """
    return block_idx_in_cluster()


def setmaxregister(count: int, action: Any, *, loc: Any = None, ip: Any = None) -> None:
    """``setmaxnreg``: the registers of each thread of the warpgroup.

    >>> setmaxregister(40, "less")
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: setmaxregister: 'less' is not a SetMaxRegisterAction; there are ...
    """
    more = chosen(choices.SetMaxRegisterAction, action, "setmaxregister") is choices.SetMaxRegisterAction.INCREASE
    (registers.setmaxregister_increase if more else registers.setmaxregister_decrease)(count)


def shfl_sync(
    thread_mask: Any,
    val: Any,
    offset: Any,
    mask_and_clamp: Any,
    kind: Any = choices.Shfl.IDX,
    *,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """The value of another lane.

    >>> per_thread(lambda t: shfl_sync(0xFFFFFFFF, t, 1, 31, "bfly"), 32)[:4]
    [1, 0, 3, 2]
    """
    way = chosen(choices.Shfl, kind, "shfl_sync").value
    function = {
        "bfly": warps.shuffle_sync_bfly,
        "down": warps.shuffle_sync_down,
        "idx": warps.shuffle_sync,
        "up": warps.shuffle_sync_up,
    }[way]
    return function(val, offset, mask=thread_mask, mask_and_clamp=mask_and_clamp)


def vote_sync(mask: Any, pred: Any, kind: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Whether the predicate holds in all or any lanes, or is uniform; or in which (a mask).

    >>> per_thread(lambda t: vote_sync(0xFFFFFFFF, t < 3, "ballot"), 32)[0]
    7
    """
    way = chosen(choices.VoteSync, kind, "vote_sync").value
    function: Any = {
        "all": warps.vote_all_sync,
        "any": warps.vote_any_sync,
        "uni": warps.vote_uni_sync,
        "ballot": warps.vote_ballot_sync,
    }[way]
    return function(pred, mask)
