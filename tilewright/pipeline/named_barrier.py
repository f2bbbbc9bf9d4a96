"""Named barriers: the sixteen barriers of a block, for groups of whole warps. 0 is that of ``sync_threads``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.lang.device import barriers
from tilewright.pipeline.sync_object import SyncObject


def arrive(barrier_id: Any, num_threads: Any, *, loc: Any = None, ip: Any = None) -> None:
    """Arrive at barrier ``barrier_id`` and go on; ``num_threads`` arrive or wait there.

    >>> from tilewright import pipeline
    >>> @cute.jit
    ... def hand_over(t, p):
    ...     result = t
    ...     if cute.arch.warp_idx() == 0:
    ...         cute.arch.store(p + t, 10 * t)
    ...         pipeline.arrive(1, 64)  # warp 0 goes on
    ...     else:
    ...         pipeline.arrive_and_wait(1, 64)
    ...         result = cute.arch.load(p + (t - 32))
    ...     return result
    >>> per_thread(hand_over, 64, memory=[0] * 32)[0][32:36]
    [0, 10, 20, 30]
    """
    barriers.barrier_arrive(barrier_id=barrier_id, number_of_threads=num_threads)


def arrive_unaligned(barrier_id: Any, num_threads: Any, *, loc: Any = None, ip: Any = None) -> None:
    """:func:`arrive` where the threads of a warp need not come together (``barrier.arrive``).

    >>> from tilewright import pipeline
    >>> @cute.jit
    ... def hand_over(t, p):
    ...     result = t
    ...     if t < 32:
    ...         cute.arch.store(p + t, 10 * t)
    ...         pipeline.arrive_unaligned(1, 64)
    ...     else:
    ...         pipeline.wait_unaligned(1, 64)
    ...         result = cute.arch.load(p + (t - 32))
    ...     return result
    >>> per_thread(hand_over, 64, memory=[0] * 32)[0][32:36]
    [0, 10, 20, 30]
    """
    barriers.barrier_arrive(barrier_id=barrier_id, number_of_threads=num_threads, aligned=False)


def arrive_and_wait(barrier_id: Any, num_threads: Any, *, loc: Any = None, ip: Any = None) -> None:
    """Wait until ``num_threads`` threads have arrived at barrier ``barrier_id``, this one among them.

    >>> from tilewright import pipeline
    >>> def swap(t, p):
    ...     cute.arch.store(p + t, t)
    ...     pipeline.arrive_and_wait(barrier_id=2, num_threads=64)
    ...     return cute.arch.load(p + (63 - t))
    >>> per_thread(swap, 64, memory=[0] * 64)[0][:3]
    [63, 62, 61]
    """
    barriers.barrier(barrier_id=barrier_id, number_of_threads=num_threads)


def wait(barrier_id: Any, num_threads: Any, *, loc: Any = None, ip: Any = None) -> None:
    """``arrive_and_wait``: who waits at a named barrier also arrives.

    >>> from tilewright import pipeline
    >>> def swap(t, p):
    ...     cute.arch.store(p + t, t)
    ...     pipeline.wait(1, 64)
    ...     return cute.arch.load(p + (63 - t))
    >>> per_thread(swap, 64, memory=[0] * 64)[0][:3]
    [63, 62, 61]
    """
    arrive_and_wait(barrier_id, num_threads)


def wait_unaligned(barrier_id: Any, num_threads: Any, *, loc: Any = None, ip: Any = None) -> None:
    """:func:`wait` where the threads of a warp need not come together (``barrier.sync``).

    >>> from tilewright import pipeline
    >>> def swap(t, p):
    ...     cute.arch.store(p + t, t)
    ...     pipeline.wait_unaligned(1, 64)
    ...     return cute.arch.load(p + (63 - t))
    >>> per_thread(swap, 64, memory=[0] * 64)[0][:3]
    [63, 62, 61]
    """
    barriers.barrier(barrier_id=barrier_id, number_of_threads=num_threads, aligned=False)


def sync(barrier_id: Any = 0, *, loc: Any = None, ip: Any = None) -> None:
    """Wait at barrier ``barrier_id`` for all threads of the block.

    >>> from tilewright import pipeline
    >>> def swap(t, p):
    ...     cute.arch.store(p + t, t)
    ...     pipeline.sync(1)
    ...     return cute.arch.load(p + (63 - t))
    >>> per_thread(swap, 64, memory=[0] * 64)[0][:3]
    [63, 62, 61]
    """
    barriers.barrier(barrier_id=barrier_id)


@dataclass(frozen=True, repr=False)
class NamedBarrier(SyncObject):
    """Barrier ``barrier_id`` (0 to 15) for ``num_threads`` threads: whole warps, those that only arrive included.

    Raises ConstraintError for other ids, or threads that are not whole warps. Programs may make one of 0 threads, for a
    role that a kernel leaves out; whoever arrives there is refused.

    >>> NamedBarrier(1, 64)  # of two warps; then barrier.arrive_and_wait() in each of them
    NamedBarrier(1, 64)
    """

    barrier_id: Any
    num_threads: Any

    def __post_init__(self) -> None:
        if isinstance(self.barrier_id, int) and not 0 <= self.barrier_id <= 15:
            raise ConstraintError(f"NamedBarrier: barrier {self.barrier_id} does not exist; ids are 0 to 15")
        if isinstance(self.num_threads, int) and (self.num_threads < 0 or self.num_threads % 32):
            raise ConstraintError(
                f"NamedBarrier: {self.num_threads} threads; a barrier counts whole warps, so give a multiple of 32"
            )

    def arrive(self, *, loc: Any = None, ip: Any = None) -> None:
        """Arrive and go on."""
        arrive(self.barrier_id, self.num_threads)

    def arrive_unaligned(self, *, loc: Any = None, ip: Any = None) -> None:
        """Arrive and go on; the threads of a warp need not come together."""
        arrive_unaligned(self.barrier_id, self.num_threads)

    def wait_unaligned(self, *, loc: Any = None, ip: Any = None) -> None:
        """Arrive and wait until all have; the threads of a warp need not come together."""
        wait_unaligned(self.barrier_id, self.num_threads)

    def arrive_and_wait(self, *, loc: Any = None, ip: Any = None) -> None:
        """Arrive and wait until all have."""
        arrive_and_wait(self.barrier_id, self.num_threads)

    wait = sync = arrive_and_wait

    def get_barrier(self, *, loc: Any = None, ip: Any = None) -> int:
        return self.barrier_id

    @staticmethod
    def max(*, loc: Any = None, ip: Any = None) -> int:
        """How many a block has."""
        return 16

    def __repr__(self) -> str:
        return f"NamedBarrier({self.barrier_id}, {self.num_threads})"
