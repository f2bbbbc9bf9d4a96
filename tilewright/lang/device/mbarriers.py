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
    """Begin phase 0; each phase waits for ``cnt`` arrivals. One thread does it, before anybody uses the mbarrier."""
    call(mbarrier.MbarrierInit(), mbar_ptr, i32(cnt))


def mbarrier_init_fence(*, loc: Any = None, ip: Any = None) -> None:
    """Let the mbarriers that this thread has initialised be seen by those that synchronise with it."""
    call(mbarrier.FenceMbarrierInit())


def mbarrier_arrive(
    mbar_ptr: Any, peer_cta_rank_in_cluster: Any = None, arrive_count: int = 1, *, loc: Any = None, ip: Any = None
) -> None:
    """This thread arrives, at the mbarrier of its own block or at that of another block of the cluster (sm_90)."""
    remote, rank = _peer(peer_cta_rank_in_cluster)
    call(mbarrier.MbarrierArrive(arrive_count, remote), mbar_ptr, *rank)


def mbarrier_arrive_and_expect_tx(
    mbar_ptr: Any, bytes: Any, peer_cta_rank_in_cluster: Any = None, *, loc: Any = None, ip: Any = None
) -> None:
    """This thread arrives, and the phase waits for ``bytes`` bytes of asynchronous copies besides (sm_90)."""
    remote, rank = _peer(peer_cta_rank_in_cluster)
    call(mbarrier.MbarrierExpectTx(True, remote), mbar_ptr, i32(bytes), *rank)


def mbarrier_expect_tx(
    mbar_ptr: Any, bytes: Any, peer_cta_rank_in_cluster: Any = None, *, loc: Any = None, ip: Any = None
) -> None:
    """The phase waits for ``bytes`` bytes more; nobody arrives (sm_90)."""
    remote, rank = _peer(peer_cta_rank_in_cluster)
    call(mbarrier.MbarrierExpectTx(False, remote), mbar_ptr, i32(bytes), *rank)


def _peer(rank: Any) -> tuple[bool, list[Any]]:
    return (False, []) if rank is None else (True, [i32(rank)])


def mbarrier_wait(mbar_ptr: Any, phase: Any, *, loc: Any = None, ip: Any = None) -> None:
    """Wait until the phase of parity ``phase`` is complete."""
    call(mbarrier.MbarrierWait(), mbar_ptr, i32(phase))


def mbarrier_try_wait(mbar_ptr: Any, phase: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Whether the phase of parity ``phase`` is complete; the thread may rest for a moment to find out."""
    (done,) = call(mbarrier.MbarrierTest(), mbar_ptr, i32(phase), results=(BOOL,))
    return wrap(done)


def mbarrier_conditional_try_wait(cond: Any, mbar_ptr: Any, phase: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """``mbarrier_try_wait`` where ``cond`` holds; true where it does not: there is nothing to wait for."""
    return if_generate(cond, lambda: mbarrier_try_wait(mbar_ptr, phase), lambda: Boolean(True), return_types=(Boolean,))


def cp_async_mbarrier_arrive_noinc(mbar_ptr: Any, *, loc: Any = None, ip: Any = None) -> None:
    """This thread's arrival, as one of those that are counted, once all its earlier ``cp.async`` have landed."""
    call(mbarrier.CpAsyncMbarrierArrive(), mbar_ptr)
