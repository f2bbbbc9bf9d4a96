"""Clusters of blocks: their barrier, and the shared memory of the other blocks (sm_90).

A launch forms clusters with ``launch(..., cluster=(x, y, z))``; without it every block is a cluster of its own.
"""

from __future__ import annotations

from typing import Any

from tilewright.atoms import cluster
from tilewright.errors import ConstraintError
from tilewright.ir.types import MemSpace, PtrType
from tilewright.lang.device.calls import call, i32
from tilewright.lang.numbers.numeric import Int32
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.recast import retyped


def cluster_arrive(*, aligned: bool | None = None, loc: Any = None, ip: Any = None) -> None:
    """This thread has come so far, and goes on; what it wrote is seen by those whose ``cluster_wait`` is over.

    ``aligned`` (default): all threads of the warp are here together; ``aligned=False`` where they may not be.

    Example::

        cute.arch.cluster_arrive()
        ...                           # work that needs nothing of the other blocks
        cute.arch.cluster_wait()      # all threads of the cluster have arrived

    >>> def count(t, p):
    ...     arch.atomic_add(p, 1)
    ...     arch.cluster_arrive()
    ...     arch.cluster_wait()
    ...     return arch.load(p)
    >>> per_thread(count, 32, blocks=2, cluster=2, memory=[0])[0][::32]
    [64, 64]
    """
    call(cluster.ClusterArrive(False, aligned is not False))


def cluster_arrive_relaxed(*, aligned: bool | None = None, loc: Any = None, ip: Any = None) -> None:
    """``cluster_arrive`` that does not order memory: enough after ``mbarrier_init_fence``, or before the end of a
    kernel.

    >>> def meet(t):
    ...     arch.cluster_arrive_relaxed()
    ...     arch.cluster_wait()
    ...     return arch.block_idx_in_cluster()
    >>> per_thread(meet, 32, blocks=2, cluster=2)[::32]
    [0, 1]
    """
    call(cluster.ClusterArrive(True, aligned is not False))


def cluster_wait(*, aligned: bool | None = None, loc: Any = None, ip: Any = None) -> None:
    """Wait until all threads of the cluster that have not ended have arrived. Each ``cluster_arrive`` is followed by
    one ``cluster_wait`` of the same thread.

    >>> def count(t, p):
    ...     arch.atomic_add(p, 1)
    ...     arch.cluster_arrive()
    ...     arch.cluster_wait()  # both blocks have counted
    ...     return arch.load(p)
    >>> per_thread(count, 32, blocks=2, cluster=2, memory=[0])[0][::32]
    [64, 64]
    """
    call(cluster.ClusterWait(aligned is not False))


def mapa(ptr: Any, cta_rank_in_cluster: Any = 0, *, loc: Any = None, ip: Any = None) -> Pointer:
    """The pointer to the same place in the shared memory of the block ``cta_rank_in_cluster`` of the cluster.

    ``ptr`` (or a tensor, for its first element) points into the own block's shared memory. The result is in
    ``AddressSpace.dsmem``; loads, stores, atomics and plain copies take it. Both blocks must be there: synchronise the
    cluster before the first access and after the last one.

    Example::

        neighbour = cute.arch.mapa(buffer.iterator, cute.arch.block_idx_in_cluster() ^ 1)
        value = cute.make_tensor(neighbour, buffer.layout)[tidx]

    >>> from tilewright import Int32
    >>> def exchange(t):
    ...     own = arch.block_idx_in_cluster()
    ...     buffer = arch.alloc_smem(Int32, 32)
    ...     arch.store(buffer + t, 100 * own + t)
    ...     arch.cluster_arrive()
    ...     arch.cluster_wait()
    ...     value = arch.load(arch.mapa(buffer, own ^ 1) + t, scope="cluster")
    ...     arch.cluster_arrive()
    ...     arch.cluster_wait()
    ...     return value
    >>> per_thread(exchange, 32, blocks=2, cluster=2)[30:34]
    [130, 131, 0, 1]
    """
    pointer = getattr(ptr, "iterator", ptr)
    if not isinstance(pointer, Pointer):
        raise ConstraintError(f"mapa: a pointer into shared memory (or a tensor there) is needed, not {ptr!r}")
    if pointer.swizzle is not None:
        raise ConstraintError(
            f"mapa: {pointer} is swizzled; map the plain pointer and put the swizzle on the result with recast_ptr"
        )
    source = pointer.value()
    assert isinstance(source.type, PtrType)
    kind = PtrType(source.type.elem, MemSpace.DSMEM, source.type.align)
    (mapped,) = call(cluster.Mapa(), source, i32(cta_rank_in_cluster), results=(kind,))
    return Pointer(mapped, pointer.dtype)


map_dsmem_ptr = mapa


def store_shared_remote(
    val: Any, smem_ptr: Any, mbar_ptr: Any, peer_cta_rank_in_cluster: Any, *, loc: Any = None, ip: Any = None
) -> None:
    """``st.async``: store ``val`` in another block's shared memory; once it is there, its bytes count at an mbarrier
    of that block.

    Args:
        val: the number, converted to the pointer's type.
        smem_ptr: a pointer to elements of 4 or 8 bytes in the own block; the same place in the other one is meant.
        mbar_ptr: a pointer to the mbarrier in the own block; that at the same place in the other one is meant.
        peer_cta_rank_in_cluster: the other block's rank.

    The other block expects the bytes with ``mbarrier_arrive_and_expect_tx``. Needs a
    launch with clusters of two blocks or more.

    >>> from tilewright import Int32, Int64
    >>> @cute.jit
    ... def exchange(t):
    ...     own = arch.block_idx_in_cluster()
    ...     buffer, bar = arch.alloc_smem(Int32, 32), arch.alloc_smem(Int64, 1, 8)
    ...     if t == 0:
    ...         arch.mbarrier_init(bar, 1)
    ...         arch.mbarrier_arrive_and_expect_tx(bar, 128)
    ...     arch.mbarrier_init_fence()
    ...     arch.cluster_arrive()
    ...     arch.cluster_wait()
    ...     arch.store_shared_remote(100 * own + t, buffer + t, bar, own ^ 1)
    ...     arch.mbarrier_wait(bar, 0)  # 32 elements of 4 bytes have come
    ...     return arch.load(buffer + t)
    >>> per_thread(exchange, 32, blocks=2, cluster=2)[30:34]
    [130, 131, 0, 1]
    """
    pointer = getattr(smem_ptr, "iterator", smem_ptr)
    if not isinstance(pointer, Pointer):
        raise ConstraintError(f"store_shared_remote: a pointer into shared memory is needed, not {smem_ptr!r}")
    call(cluster.StoreAsync(), pointer, mbar_ptr, pointer.dtype(val), i32(peer_cta_rank_in_cluster))


def store_async_dsmem(
    smem_ptr: Any, value: Any, mbar_ptr: Any, peer_cta_rank: Any, *, loc: Any = None, ip: Any = None
) -> None:
    """:func:`store_shared_remote` of an Int32, or of a tuple of 2 or 4 to places one after another.

    >>> from tilewright import Int32, Int64
    >>> @cute.jit
    ... def exchange(t):
    ...     own = arch.block_idx_in_cluster()
    ...     buffer, bar = arch.alloc_smem(Int32, 64, 8), arch.alloc_smem(Int64, 1, 8)
    ...     if t == 0:
    ...         arch.mbarrier_init(bar, 1)
    ...         arch.mbarrier_arrive_and_expect_tx(bar, 256)
    ...     arch.mbarrier_init_fence()
    ...     arch.cluster_arrive()
    ...     arch.cluster_wait()
    ...     arch.store_async_dsmem((buffer + 2 * t).align(8), (100 * own, t), bar, own ^ 1)
    ...     arch.mbarrier_wait(bar, 0)  # 64 elements of 4 bytes have come
    ...     return arch.load(buffer + 2 * t) + arch.load(buffer + (2 * t + 1))
    >>> per_thread(exchange, 32, blocks=2, cluster=2)[30:34]
    [130, 131, 0, 1]
    """
    pointer = getattr(smem_ptr, "iterator", smem_ptr)
    values = value if isinstance(value, tuple) else (value,)
    if not isinstance(pointer, Pointer) or len(values) not in (1, 2, 4):
        raise ConstraintError(
            f"store_async_dsmem takes a pointer into shared memory and 1, 2 or 4 numbers, not {smem_ptr!r}, {value!r}"
        )
    if pointer.alignment % (4 * len(values)):
        raise ConstraintError(
            f"store_async_dsmem: {len(values)} numbers go to a multiple of {4 * len(values)} bytes, which {pointer} is "
            "not known to be"
        )
    words = retyped(pointer, Int32)
    for i, number in enumerate(values):
        store_shared_remote(number, words + i, mbar_ptr, peer_cta_rank)
