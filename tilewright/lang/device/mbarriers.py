"""mbarriers: barriers in shared memory that count arriving threads and arriving bytes.

``mbar_ptr`` points to 8 aligned bytes of shared memory (Int64). Phases follow each other; a wait names one by its
parity, which is 0 for the first. Waiting for parity 1 on a fresh mbarrier is over at once.
"""

from __future__ import annotations

from typing import Any

from tilewright.atoms import mbarrier
from tilewright.ir.types import BOOL
from tilewright.lang.device.calls import call, i32
from tilewright.lang.numbers.numeric import Boolean, wrap
from tilewright.lang.staging.generate import if_generate


def mbarrier_init(mbar_ptr: Any, cnt: Any, *, loc: Any = None, ip: Any = None) -> None:
    """Begin phase 0; each phase waits for ``cnt`` arrivals. One thread does it, before any thread uses the mbarrier.

    >>> from tilewright import Int64
    >>> @cute.jit
    ... def meet(t):
    ...     bar = arch.alloc_smem(Int64, 1, 8)
    ...     if t == 0:
    ...         arch.mbarrier_init(bar, 64)
    ...     arch.mbarrier_init_fence()
    ...     arch.sync_threads()
    ...     arch.mbarrier_arrive(bar)
    ...     arch.mbarrier_wait(bar, 0)  # all 64 threads have arrived
    ...     return arch.mbarrier_try_wait(bar, 0)
    >>> per_thread(meet, 64)[::32]
    [1, 1]
    """
    call(mbarrier.MbarrierInit(), mbar_ptr, i32(cnt))


def mbarrier_init_fence(*, loc: Any = None, ip: Any = None) -> None:
    """Make the mbarriers that this thread has initialised visible to threads that synchronise with it.

    >>> from tilewright import Int64
    >>> def meet(t):
    ...     bar = arch.alloc_smem(Int64, 1, 8)
    ...     with arch.elect_one():
    ...         arch.mbarrier_init(bar, 32)
    ...     arch.mbarrier_init_fence()
    ...     arch.sync_threads()
    ...     arch.mbarrier_arrive(bar)
    ...     arch.mbarrier_wait(bar, 0)
    ...     return 1
    >>> sum(per_thread(meet))
    32
    """
    call(mbarrier.FenceMbarrierInit())


def mbarrier_arrive(
    mbar_ptr: Any, peer_cta_rank_in_cluster: Any = None, arrive_count: int = 1, *, loc: Any = None, ip: Any = None
) -> None:
    """This thread arrives, at the mbarrier of its own block or at that of another block of the cluster (sm_90).

    >>> from tilewright import Int64
    >>> def meet(t):
    ...     bar = arch.alloc_smem(Int64, 1, 8)
    ...     with arch.elect_one():
    ...         arch.mbarrier_init(bar, 64)
    ...     arch.mbarrier_init_fence()
    ...     arch.sync_threads()
    ...     early = arch.mbarrier_try_wait(bar, 0)
    ...     arch.sync_threads()
    ...     arch.mbarrier_arrive(bar, arrive_count=2)
    ...     arch.mbarrier_wait(bar, 0)
    ...     return early
    >>> per_thread(meet, 32)[:2]  # no thread had arrived
    [0, 0]
    """
    remote, rank = _peer(peer_cta_rank_in_cluster)
    call(mbarrier.MbarrierArrive(arrive_count, remote), mbar_ptr, *rank)


def mbarrier_arrive_and_expect_tx(
    mbar_ptr: Any, bytes: Any, peer_cta_rank_in_cluster: Any = None, *, loc: Any = None, ip: Any = None
) -> None:
    """This thread arrives, and the phase waits for ``bytes`` bytes of asynchronous copies besides (sm_90).

    :func:`store_shared_remote` has an example whose bytes arrive.

    >>> from tilewright import Int64
    >>> def expecting(t, nbytes):
    ...     bar = arch.alloc_smem(Int64, 1, 8)
    ...     arch.mbarrier_init(bar, 1)
    ...     arch.mbarrier_arrive_and_expect_tx(bar, nbytes)
    ...     return arch.mbarrier_try_wait(bar, 0)
    >>> per_thread(lambda t: expecting(t, 128), 1), per_thread(lambda t: expecting(t, 0), 1)  # 128 are outstanding
    ([0], [1])
    """
    remote, rank = _peer(peer_cta_rank_in_cluster)
    call(mbarrier.MbarrierExpectTx(True, remote), mbar_ptr, i32(bytes), *rank)


def mbarrier_expect_tx(
    mbar_ptr: Any, bytes: Any, peer_cta_rank_in_cluster: Any = None, *, loc: Any = None, ip: Any = None
) -> None:
    """The phase waits for ``bytes`` bytes more; no thread arrives (sm_90).

    >>> from tilewright import Int64
    >>> def one_arrival_of_one(t):
    ...     bar = arch.alloc_smem(Int64, 1, 8)
    ...     arch.mbarrier_init(bar, 1)
    ...     arch.mbarrier_expect_tx(bar, 128)
    ...     arch.mbarrier_arrive(bar)
    ...     return arch.mbarrier_try_wait(bar, 0)
    >>> per_thread(one_arrival_of_one, 1)  # 128 bytes are outstanding
    [0]
    """
    remote, rank = _peer(peer_cta_rank_in_cluster)
    call(mbarrier.MbarrierExpectTx(False, remote), mbar_ptr, i32(bytes), *rank)


def _peer(rank: Any) -> tuple[bool, list[Any]]:
    return (False, []) if rank is None else (True, [i32(rank)])


def mbarrier_wait(mbar_ptr: Any, phase: Any, *, loc: Any = None, ip: Any = None) -> None:
    """Wait until the phase of parity ``phase`` is complete.

    >>> from tilewright import Int64
    >>> def twice(t):
    ...     bar = arch.alloc_smem(Int64, 1, 8)
    ...     with arch.elect_one():
    ...         arch.mbarrier_init(bar, 32)
    ...     arch.mbarrier_init_fence()
    ...     arch.sync_threads()
    ...     for phase in range(2):
    ...         arch.mbarrier_arrive(bar)
    ...         arch.mbarrier_wait(bar, phase)
    ...     return arch.mbarrier_try_wait(bar, 1)
    >>> per_thread(twice)[:2]
    [1, 1]
    """
    call(mbarrier.MbarrierWait(), mbar_ptr, i32(phase))


def mbarrier_try_wait(mbar_ptr: Any, phase: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Whether the phase of parity ``phase`` is complete; the thread may rest for a moment to find out.

    >>> from tilewright import Int32, Int64
    >>> def ask(t):
    ...     bar = arch.alloc_smem(Int64, 1, 8)
    ...     with arch.elect_one():
    ...         arch.mbarrier_init(bar, 32)
    ...     arch.mbarrier_init_fence()
    ...     arch.sync_threads()
    ...     before = arch.mbarrier_try_wait(bar, 0)
    ...     arch.sync_threads()
    ...     arch.mbarrier_arrive(bar)
    ...     arch.sync_threads()
    ...     return 10 * Int32(before) + Int32(arch.mbarrier_try_wait(bar, 0))
    >>> per_thread(ask)[:2]
    [1, 1]
    """
    (done,) = call(mbarrier.MbarrierTest(), mbar_ptr, i32(phase), results=(BOOL,))
    return wrap(done)


def mbarrier_test_wait(mbar_ptr: Any, phase: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Whether the phase of parity ``phase`` is complete, without a rest (``mbarrier.test_wait``).

    >>> from tilewright import Int32, Int64
    >>> def ask(t):
    ...     bar = arch.alloc_smem(Int64, 1, 8)
    ...     with arch.elect_one():
    ...         arch.mbarrier_init(bar, 32)
    ...     arch.mbarrier_init_fence()
    ...     arch.sync_threads()
    ...     return Int32(arch.mbarrier_test_wait(bar, 0))
    >>> per_thread(ask)[:2]
    [0, 0]
    """
    return mbarrier_try_wait(mbar_ptr, phase)


def mbarrier_conditional_try_wait(cond: Any, mbar_ptr: Any, phase: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """``mbarrier_try_wait`` where ``cond`` holds; true where it does not: there is nothing to wait for.

    >>> from tilewright import Int64
    >>> def ask(t):
    ...     bar = arch.alloc_smem(Int64, 1, 8)
    ...     with arch.elect_one():
    ...         arch.mbarrier_init(bar, 32)
    ...     arch.mbarrier_init_fence()
    ...     arch.sync_threads()
    ...     return arch.mbarrier_conditional_try_wait(t < 2, bar, 0)
    >>> per_thread(ask)[:4]
    [0, 0, 1, 1]
    """
    return if_generate(cond, lambda: mbarrier_try_wait(mbar_ptr, phase), lambda: Boolean(True), return_types=(Boolean,))


def cp_async_mbarrier_arrive_noinc(mbar_ptr: Any, *, loc: Any = None, ip: Any = None) -> None:
    """This thread's arrival, as one of those that are counted, once all its earlier ``cp.async`` have landed.

    >>> from tilewright import Int32, Int64
    >>> def fetch(t, p):
    ...     buffer, bar = arch.alloc_smem(Int32, 32), arch.alloc_smem(Int64, 1, 8)
    ...     with arch.elect_one():
    ...         arch.mbarrier_init(bar, 32)
    ...     arch.mbarrier_init_fence()
    ...     arch.sync_threads()
    ...     atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), Int32, num_bits_per_copy=32)
    ...     cute.copy(atom, cute.make_tensor(p + t, 1), cute.make_tensor(buffer + t, 1))
    ...     arch.cp_async_mbarrier_arrive_noinc(bar)
    ...     arch.mbarrier_wait(bar, 0)
    ...     return arch.load(buffer + (31 - t))
    >>> per_thread(fetch, 32, memory=list(range(32)))[0][:3]
    [31, 30, 29]
    """
    call(mbarrier.CpAsyncMbarrierArrive(), mbar_ptr)
