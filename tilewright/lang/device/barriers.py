"""Synchronisation of threads: barriers of the block, of a warp, fences, and groups of asynchronous copies."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tilewright.atoms import cp_async, sync
from tilewright.atoms.barrier_reduce import BarrierReduce, BarrierReduced
from tilewright.errors import ConstraintError
from tilewright.ir.core import Value
from tilewright.ir.types import BOOL, I32, I64
from tilewright.lang.device.calls import call, i32
from tilewright.lang.device.threads import block_dim
from tilewright.lang.numbers.numeric import Boolean, wrap

FULL_MASK = 0xFFFFFFFF


def sync_threads(*, loc: Any = None, ip: Any = None) -> None:
    """Wait until every thread of the block is here; memory written before is visible after.

    >>> def swap(t, p):
    ...     arch.store(p + t, t)
    ...     arch.sync_threads()
    ...     return arch.load(p + (63 - t))
    >>> per_thread(swap, 64, memory=[0] * 64)[0][:3]
    [63, 62, 61]
    """
    call(sync.SyncThreads())


def barrier(
    *, barrier_id: Any = None, number_of_threads: Any = None, aligned: bool = True, loc: Any = None, ip: Any = None
) -> None:
    """``bar.sync``: wait until ``number_of_threads`` (default: the block) have arrived at barrier ``barrier_id``.

    ``aligned=False`` is ``barrier.sync``: the threads of a warp may come to it in different branches of the machine
    code. All of them must arrive; in the simulator, at one place of the program.

    >>> def swap(t, p):
    ...     arch.store(p + t, t)
    ...     arch.barrier(barrier_id=1, number_of_threads=64)
    ...     return arch.load(p + (63 - t))
    >>> per_thread(swap, 64, memory=[0] * 64)[0][:3]
    [63, 62, 61]
    """
    if barrier_id is None and number_of_threads is None and aligned:
        return sync_threads()
    call(sync.BarrierSync(aligned), *_named(barrier_id, number_of_threads, "barrier"))
    return None


def barrier_arrive(
    *, barrier_id: Any = None, number_of_threads: Any = None, aligned: bool = True, loc: Any = None, ip: Any = None
) -> None:
    """``bar.arrive``: arrive at a barrier without waiting. ``aligned=False``: ``barrier.arrive``, see :func:`barrier`.

    >>> @cute.jit
    ... def pass_on(t, p):
    ...     if t < 32:
    ...         arch.store(p + t, t)
    ...         arch.barrier_arrive(barrier_id=1, number_of_threads=64)
    ...     else:
    ...         arch.barrier(barrier_id=1, number_of_threads=64)
    ...         arch.store(p + t, arch.load(p + (t - 32)) + 100)
    >>> per_thread(pass_on, 64, memory=[0] * 64)[1][30:34]
    [30, 31, 100, 101]
    """
    call(sync.BarrierArrive(aligned), *_named(barrier_id, number_of_threads, "barrier_arrive"))


def barrier_reduce(
    predicate: Any, kind: str, *, barrier_id: Any = None, number_of_threads: Any = None, aligned: bool = True
) -> Any:
    """``bar.red``: wait as :func:`barrier` does, and give for how many of the threads that meet the predicate holds
    (``popc``), or whether for all (``and``) or for some (``or``)."""
    named = _named(barrier_id, number_of_threads, "barrier_reduce")
    (meeting,) = call(BarrierReduce(kind, aligned), Boolean(predicate), *named, results=(I64,))
    (reduced,) = call(BarrierReduced(kind), meeting, named[1], results=(I32 if kind == "popc" else BOOL,))
    return wrap(reduced)


def _named(barrier_id: Any, number_of_threads: Any, what: str) -> tuple[Value, Value]:
    if number_of_threads is None:
        x, y, z = block_dim()
        number_of_threads = x * y * z
        if what == "barrier_arrive":
            raise ConstraintError("barrier_arrive needs number_of_threads: how many arrive or wait at the barrier")
    return i32(barrier_id if barrier_id is not None else 0), i32(number_of_threads)


def sync_warp(mask: Any = None, *, loc: Any = None, ip: Any = None) -> None:
    """Wait for the lanes in ``mask`` (default: the whole warp).

    >>> def swap(t, p):
    ...     arch.store(p + t, t)
    ...     arch.sync_warp()
    ...     return arch.load(p + (t ^ 1))
    >>> per_thread(swap, 32, memory=[0] * 32)[0][:4]
    [1, 0, 3, 2]
    """
    call(sync.SyncWarp(), *([] if mask is None or mask in (FULL_MASK, -1) else [i32(mask)]))


class ProxyKind(Enum):
    """The accesses that :func:`fence_proxy` orders with ordinary ones."""

    alias = "alias"
    async_ = "async"
    async_global = "async.global"
    async_shared = "async.shared"


class SharedSpace(Enum):
    """Whose shared memory: the own block's, or that of all blocks of the cluster."""

    shared_cta = "cta"
    shared_cluster = "cluster"


def fence_proxy(kind: Any, *, space: Any = None, loc: Any = None, ip: Any = None) -> None:
    """Order this thread's ordinary accesses with those of another proxy, in both directions.

    ``kind`` (a ProxyKind or its text): ``async.shared`` (TMA and wgmma on shared memory; ``space``: ``cta``, the
    default, or ``cluster``), ``async.global``, ``async`` (all memory) or ``alias`` (one place by two addresses).

    >>> from tilewright import Int32
    >>> def fill(t):
    ...     buffer = arch.alloc_smem(Int32, 32)
    ...     arch.store(buffer + t, t)
    ...     arch.fence_proxy("async.shared", space="cta")
    ...     arch.sync_threads()  # from here on a TMA store may read the buffer
    ...     return arch.load(buffer + (t ^ 1))
    >>> per_thread(fill)[:4]
    [1, 0, 3, 2]
    """
    name, where = str(getattr(kind, "value", kind)), str(getattr(space, "value", space or ""))
    if name not in [k.value for k in ProxyKind]:
        raise ConstraintError(f"fence_proxy: no kind {kind!r}; there are {', '.join(k.value for k in ProxyKind)}")
    if where not in ("", "cta", "cluster") or (where and name != "async.shared"):
        raise ConstraintError(f"fence_proxy({name!r}, space={space!r}): only async.shared has a space, cta or cluster")
    if name == "async.shared":
        call(sync.FenceProxy(f"shared::{where or 'cta'}"))
    else:
        first, _, memory = name.partition(".")
        call(sync.FenceProxy(memory, first))


def fence_view_async_shared(*, loc: Any = None, ip: Any = None) -> None:
    """Make this thread's writes to shared memory visible to the async proxy.

    >>> from tilewright import Int32
    >>> def fill(t):
    ...     buffer = arch.alloc_smem(Int32, 32)
    ...     arch.store(buffer + t, t)
    ...     arch.fence_view_async_shared()
    ...     arch.sync_threads()  # from here on a TMA store may read the buffer
    ...     return arch.load(buffer + (t ^ 1))
    >>> per_thread(fill)[:4]
    [1, 0, 3, 2]
    """
    fence_proxy("async.shared")


def fence_acq_rel_cta(*, loc: Any = None, ip: Any = None) -> None:
    """Order what this thread read and wrote before with what it reads and writes after, as seen by the block.

    >>> per_thread(lambda t, p: (arch.store(p, 7), arch.fence_acq_rel_cta(), arch.store(p + 1, 1))[-1], 1,
    ...            memory=[0, 0])
    ([0], [7, 1])
    """
    call(sync.Fence("cta", "acq_rel"))


def fence_acq_rel_cluster(*, loc: Any = None, ip: Any = None) -> None:
    """Order what this thread read and wrote before with what it reads and writes after, as seen by the cluster.

    >>> per_thread(lambda t, p: (arch.store(p, 7), arch.fence_acq_rel_cluster(), arch.store(p + 1, 1))[-1], 1,
    ...            memory=[0, 0])
    ([0], [7, 1])
    """
    call(sync.Fence("cluster", "acq_rel"))


def fence_acq_rel_gpu(*, loc: Any = None, ip: Any = None) -> None:
    """Order what this thread read and wrote before with what it reads and writes after, as seen by the GPU.

    >>> per_thread(lambda t, p: (arch.store(p, 7), arch.fence_acq_rel_gpu(), arch.store(p + 1, 1))[-1], 1,
    ...            memory=[0, 0])
    ([0], [7, 1])
    """
    call(sync.Fence("gpu", "acq_rel"))


def fence_acq_rel_sys(*, loc: Any = None, ip: Any = None) -> None:
    """Order what this thread read and wrote before with what it reads and writes after, as seen by the system.

    >>> per_thread(lambda t, p: (arch.store(p, 7), arch.fence_acq_rel_sys(), arch.store(p + 1, 1))[-1], 1,
    ...            memory=[0, 0])
    ([0], [7, 1])
    """
    call(sync.Fence("sys", "acq_rel"))


def threadfence(scope: str = "gpu", *, loc: Any = None, ip: Any = None) -> None:
    """``__threadfence()``: earlier writes of this thread are seen before later ones by everyone in ``scope``.

    >>> per_thread(lambda t, p: (arch.store(p, 7), arch.threadfence(), arch.store(p + 1, 1))[-1], 1, memory=[0, 0])
    ([0], [7, 1])
    """
    call(sync.Fence(scope, "sc"))


def cp_async_commit_group(*, loc: Any = None, ip: Any = None) -> None:
    """Close the group of asynchronous copies issued since the last group.

    >>> from tilewright import Int32
    >>> def fetch(t, p):
    ...     buffer = arch.alloc_smem(Int32, 32)
    ...     atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), Int32, num_bits_per_copy=32)
    ...     cute.copy(atom, cute.make_tensor(p + t, 1), cute.make_tensor(buffer + t, 1))
    ...     arch.cp_async_commit_group()
    ...     arch.cp_async_wait_group(0)
    ...     return arch.load(buffer + t)
    >>> per_thread(fetch, 4, memory=[3, 1, 4, 1])[0]
    [3, 1, 4, 1]
    """
    call(cp_async.CpAsyncCommit())


def cp_async_wait_group(n: int, *, loc: Any = None, ip: Any = None) -> None:
    """Wait until at most the ``n`` newest groups of copies are unfinished.

    >>> from tilewright import Int32
    >>> def fetch(t, p):
    ...     buffer = arch.alloc_smem(Int32, 64)
    ...     atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), Int32, num_bits_per_copy=32)
    ...     for stage in range(2):
    ...         target = buffer + (t + 32 * stage)
    ...         cute.copy(atom, cute.make_tensor(p + (t + 4 * stage), 1), cute.make_tensor(target, 1))
    ...         arch.cp_async_commit_group()
    ...     arch.cp_async_wait_group(1)  # the first stage is there, the second may not be
    ...     return arch.load(buffer + t)
    >>> per_thread(fetch, 4, memory=[3, 1, 4, 1, 5, 9, 2, 6])[0]
    [3, 1, 4, 1]
    """
    call(cp_async.CpAsyncWait(int(n)))
