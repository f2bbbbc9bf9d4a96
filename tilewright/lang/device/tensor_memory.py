"""Allocation of tensor memory, and the waits for loads and stores of it (sm_100a)."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tilewright.atoms.tcgen05_sync import Tcgen05Commit, Tcgen05Fence
from tilewright.atoms.tensor_memory_alloc import TmemAlloc, TmemDealloc, TmemRelinquish
from tilewright.atoms.tensor_memory_move import LOAD, STORE, TmemWait
from tilewright.errors import ConstraintError
from tilewright.lang.device.calls import call
from tilewright.lang.numbers.numeric import Int16, Int32
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.tensor_memory import TensorMemory


class CtaGroup(Enum):
    """How many blocks work on one MMA.

    >>> from tilewright.cute.nvgpu import tcgen05
    >>> [group.value for group in tcgen05.CtaGroup]
    [1, 2]
    """

    ONE = 1
    TWO = 2


def alloc_tmem(
    num_columns: Any,
    smem_ptr_to_write_address: Pointer,
    is_two_cta: Any = None,
    *,
    arch: str = "sm_100",
    loc: Any = None,
    ip: Any = None,
) -> None:
    """``tcgen05.alloc``: allocate columns of tensor memory; their address is written to shared memory (an Int32).

    One warp executes it.

    Args:
        num_columns: 32, 64, 128, 256 or 512.
        smem_ptr_to_write_address: where the address goes: a pointer to Int32 in shared memory.
        is_two_cta: one warp of each block of a pair executes it, and both get the same columns.
        arch: accepted as documented; the instruction is the same on all of them.

    Raises:
        ConstraintError: another number of columns.

    >>> from tilewright import Float32, Int32
    >>> @cute.jit
    ... def address(t):
    ...     held = arch.alloc_smem(Int32, 1)
    ...     arch.alloc_tmem(64, held)
    ...     arch.sync_threads()
    ...     found = held.load()
    ...     arch.dealloc_tmem(arch.retrieve_tmem_ptr(Float32, 16, held), 64)
    ...     return found
    >>> per_thread(address, 32)[0]  # lane 0, column 0
    0
    """
    call(TmemAlloc(_blocks(is_two_cta)), smem_ptr_to_write_address, Int32(num_columns))


def relinquish_tmem_alloc_permit(is_two_cta: Any = None, *, loc: Any = None, ip: Any = None) -> None:
    """``tcgen05.relinquish_alloc_permit``: this block allocates no more. One warp executes it.

    >>> from tilewright import Float32, Int32
    >>> @cute.jit
    ... def last(t):
    ...     held = arch.alloc_smem(Int32, 1)
    ...     arch.alloc_tmem(32, held)
    ...     arch.relinquish_tmem_alloc_permit()
    ...     arch.alloc_tmem(32, held)
    ...     return t
    >>> per_thread(last, 32)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    tilewright.errors.SimulationError: tcgen05.alloc after relinquish_alloc_permit
    """
    call(TmemRelinquish(_blocks(is_two_cta)))


def retrieve_tmem_ptr(
    element_type: Any, alignment: int, ptr_to_buffer_holding_addr: Pointer, *, loc: Any = None, ip: Any = None
) -> TensorMemory:
    """The address that ``alloc_tmem`` wrote to shared memory, as the iterator of a tensor of ``element_type``.

    Read it after a barrier of the block behind the allocation.

    >>> from tilewright import Float32, Int32
    >>> @cute.jit
    ... def columns(t):
    ...     held = arch.alloc_smem(Int32, 1)
    ...     arch.alloc_tmem(32, held)
    ...     arch.sync_threads()
    ...     base = arch.retrieve_tmem_ptr(Float32, 16, held)
    ...     arch.dealloc_tmem(base, 32)
    ...     return (base + 8).value()
    >>> per_thread(columns, 32)[0]  # 8 columns further
    8
    """
    address = ptr_to_buffer_holding_addr.load()
    return TensorMemory(Int32(address), element_type, 0, alignment)


def dealloc_tmem(
    tmem_ptr: TensorMemory,
    num_columns: Any,
    is_two_cta: Any = None,
    *,
    arch: str = "sm_100",
    loc: Any = None,
    ip: Any = None,
) -> None:
    """``tcgen05.dealloc``: free what ``alloc_tmem`` allocated. One warp executes it, after the last access of all.

    >>> from tilewright import Float32, Int32
    >>> @cute.jit
    ... def twice(t):
    ...     held = arch.alloc_smem(Int32, 1)
    ...     arch.alloc_tmem(512, held)
    ...     arch.sync_warp()
    ...     arch.dealloc_tmem(arch.retrieve_tmem_ptr(Float32, 16, held), 512)
    ...     arch.sync_warp()
    ...     arch.alloc_tmem(512, held)  # all columns again
    ...     arch.sync_warp()
    ...     arch.dealloc_tmem(arch.retrieve_tmem_ptr(Float32, 16, held), 512)
    ...     return held.load()
    >>> per_thread(twice, 32)[0]
    0
    """
    if not isinstance(tmem_ptr, TensorMemory):
        raise ConstraintError(f"dealloc_tmem takes what retrieve_tmem_ptr gives, not {tmem_ptr!r}")
    call(TmemDealloc(_blocks(is_two_cta)), tmem_ptr.value(), Int32(num_columns))


def fence_view_async_tmem_load(*, loc: Any = None, ip: Any = None) -> None:
    """``tcgen05.wait::ld``: until the registers have what this thread has loaded from tensor memory.

    Without such loads before it nothing is waited for. A kernel with them: :class:`~tilewright.utils.TmemAllocator`.

    >>> per_thread(lambda t: (arch.fence_view_async_tmem_load(), t)[1], 32)[:3]
    [0, 1, 2]
    """
    call(TmemWait(LOAD))


def fence_view_async_tmem_store(*, loc: Any = None, ip: Any = None) -> None:
    """``tcgen05.wait::st``: until tensor memory has what this thread has stored to it.

    Without such stores before it nothing is waited for. A kernel with them: :class:`~tilewright.utils.TmemAllocator`.

    >>> per_thread(lambda t: (arch.fence_view_async_tmem_store(), t)[1], 32)[:3]
    [0, 1, 2]
    """
    call(TmemWait(STORE))


def _blocks(is_two_cta: Any) -> int:
    """How many blocks an instruction is for."""
    return 2 if is_two_cta else 1


def tcgen05_commit(mbarrier: Pointer, mask: Any = None, ctas: int = 1) -> None:
    """``tcgen05.commit`` by each thread that is here: the mbarrier gets an arrival when the MMAs that the thread has
    issued are done. ``mask``: those at the same place in these blocks of the cluster do. ``ctas``: how many blocks work
    on one MMA."""
    if mask is None:
        call(Tcgen05Commit(ctas), mbarrier)
    else:
        call(Tcgen05Commit(ctas, remote=True), mbarrier, Int16(mask))


def tcgen05_fence_before_thread_sync(*, loc: Any = None, ip: Any = None) -> None:
    """``tcgen05.fence::before_thread_sync``: this thread's ``tcgen05`` before it come before what other threads do
    behind the barrier or mbarrier that follows.

    >>> per_thread(lambda t: (arch.tcgen05_fence_before_thread_sync(), t)[1], 32)[:3]
    [0, 1, 2]
    """
    call(Tcgen05Fence("before"))


def tcgen05_fence_after_thread_sync(*, loc: Any = None, ip: Any = None) -> None:
    """``tcgen05.fence::after_thread_sync``: this thread's ``tcgen05`` behind it come after what other threads did
    before the barrier or mbarrier that precedes it.

    >>> per_thread(lambda t: (arch.tcgen05_fence_after_thread_sync(), t)[1], 32)[:3]
    [0, 1, 2]
    """
    call(Tcgen05Fence("after"))
