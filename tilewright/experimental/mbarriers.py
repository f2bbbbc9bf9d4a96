"""The primitives of mbarriers."""

from __future__ import annotations

from typing import Any

from tilewright.atoms.cluster import Mapa
from tilewright.atoms.mbarrier import MbarrierArrive, MbarrierExpectTx, MbarrierInval, MbarrierTest
from tilewright.errors import ConstraintError
from tilewright.experimental import choices
from tilewright.experimental.choices import chosen
from tilewright.ir.types import BOOL, MemSpace, PtrType
from tilewright.lang.device import mbarriers
from tilewright.lang.device.atomic import pointer_of
from tilewright.lang.device.calls import call, i32
from tilewright.lang.numbers.numeric import Int64, unwrap, wrap
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.recast import recast_ptr

__all__ = [
    "cp_async_mbarrier_arrive",
    "fence_mbarrier_init",
    "mbarrier_arrive",
    "mbarrier_arrive_expect_tx",
    "mbarrier_expect_tx",
    "mbarrier_init",
    "mbarrier_inval",
    "mbarrier_try_wait_parity",
    "mbarrier_wait_parity",
]


def mbarrier_init(mbar: Any, count: Any, *, loc: Any = None, ip: Any = None) -> None:
    """Make the Int64 an mbarrier whose phases wait for ``count`` arrivals.

    >>> from tilewright import Int32, Int64
    >>> def ask(t):
    ...     bar = arch.alloc_smem(Int64, 1, 8)
    ...     mbarrier_init(bar, 1)
    ...     return Int32(mbarrier_try_wait_parity(bar, 1))
    >>> per_thread(ask, 1)  # the phase before the first one is complete
    [1]
    """
    mbarriers.mbarrier_init(_mbarrier(mbar, "mbarrier_init")[0], count)


def mbarrier_inval(mbar: Any, *, loc: Any = None, ip: Any = None) -> None:
    """The mbarrier ends; its bytes may be used again.

    >>> from tilewright import Int64
    >>> def ends(t):
    ...     bar = arch.alloc_smem(Int64, 1, 8)
    ...     mbarrier_init(bar, 1)
    ...     mbarrier_inval(bar)
    ...     return t
    >>> per_thread(ends, 1)
    [0]
    """
    call(MbarrierInval(), _mbarrier(mbar, "mbarrier_inval")[0])


def fence_mbarrier_init(*, loc: Any = None, ip: Any = None) -> None:
    """The mbarriers that this thread has initialised are mbarriers for the cluster and for TMA.

    >>> per_thread(lambda t: (fence_mbarrier_init(), t)[-1], 64)[:2]
    [0, 1]
    """
    mbarriers.mbarrier_init_fence()


def mbarrier_arrive(
    mbar: Any, *, count: Any = 1, scope: Any = None, relaxed: bool = False, loc: Any = None, ip: Any = None
) -> None:
    """This thread arrives, at an mbarrier of its block or at one that :func:`mapa` gives. What it wrote before is
    visible to those who wait; with ``relaxed`` only what a fence before the arrival releases. ``scope``: a
    ``MBarrierScope``, by default the block for its own mbarriers and the cluster for others.

    >>> from tilewright import Int32, Int64
    >>> def ask(t):
    ...     bar = arch.alloc_smem(Int64, 1, 8)
    ...     mbarrier_init(bar, 2)
    ...     mbarrier_arrive(bar, count=2)
    ...     return Int32(mbarrier_try_wait_parity(bar, 0))
    >>> per_thread(ask, 1)  # both arrivals of the phase
    [1]
    """
    pointer, *rank = _mbarrier(mbar, "mbarrier_arrive")
    order = "relaxed" if relaxed else "release"
    call(MbarrierArrive(int(unwrap(count)), bool(rank), order, _scope(scope, "mbarrier_arrive")), pointer, *rank)


def mbarrier_arrive_expect_tx(mbar: Any, nbytes: Any, *, scope: Any = None, loc: Any = None, ip: Any = None) -> None:
    """This thread arrives, and the phase waits for so many bytes besides. ``scope``: as in :func:`mbarrier_arrive`.

    >>> from tilewright import Int32, Int64
    >>> def outstanding(t):
    ...     bar = arch.alloc_smem(Int64, 1, 8)
    ...     mbarrier_init(bar, 1)
    ...     mbarrier_arrive_expect_tx(bar, 128)
    ...     return Int32(mbarrier_try_wait_parity(bar, 0))
    >>> per_thread(outstanding, 1)  # 128 bytes are outstanding
    [0]
    """
    _expect_tx(True, mbar, nbytes, scope, "mbarrier_arrive_expect_tx")


def mbarrier_expect_tx(mbar: Any, nbytes: Any, *, scope: Any = None, loc: Any = None, ip: Any = None) -> None:
    """The phase waits for so many bytes more. ``scope``: as in :func:`mbarrier_arrive`.

    >>> from tilewright import Int32, Int64
    >>> def outstanding(t):
    ...     bar = arch.alloc_smem(Int64, 1, 8)
    ...     mbarrier_init(bar, 1)
    ...     mbarrier_expect_tx(bar, 128)
    ...     mbarrier_arrive(bar)
    ...     return Int32(mbarrier_try_wait_parity(bar, 0))
    >>> per_thread(outstanding, 1)  # 128 bytes are outstanding
    [0]
    """
    _expect_tx(False, mbar, nbytes, scope, "mbarrier_expect_tx")


def _expect_tx(arrive: bool, mbar: Any, nbytes: Any, scope: Any, what: str) -> None:
    pointer, *rank = _mbarrier(mbar, what)
    call(MbarrierExpectTx(arrive, bool(rank), scope=_scope(scope, what)), pointer, i32(nbytes), *rank)


def mbarrier_try_wait_parity(
    mbar: Any,
    phase: Any,
    *,
    time_limit: Any = None,
    scope: Any = None,
    order: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """Whether the phase of this parity is complete: ``while not mbarrier_try_wait_parity(mbar, phase): pass`` waits.

    Args:
        time_limit: nanoseconds that the thread may rest before the answer is that the phase is not complete.
        scope: a ``MBarrierScope``; by default the block.
        order: ``MemOrder.ACQUIRE`` (the default): what was released at the mbarrier is visible after it; ``RELAXED``:
            only after a fence that follows.

    >>> from tilewright import Int32, Int64
    >>> def ask(t):
    ...     bar = arch.alloc_smem(Int64, 1, 8)
    ...     mbarrier_init(bar, 2)
    ...     mbarrier_arrive(bar)
    ...     return Int32(mbarrier_try_wait_parity(bar, 0, time_limit=100))
    >>> per_thread(ask, 1)  # one arrival of two
    [0]
    """
    return _test("mbarrier_try_wait_parity", mbar, phase, True, time_limit, scope, order)


def mbarrier_wait_parity(
    mbar: Any,
    phase: Any,
    kind: Any = choices.MBarrierWait.TRY,
    *,
    scope: Any = None,
    order: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """:func:`mbarrier_try_wait_parity`, or ``test_wait``, which never rests.

    >>> from tilewright import Int32, Int64
    >>> def ask(t):
    ...     bar = arch.alloc_smem(Int64, 1, 8)
    ...     mbarrier_init(bar, 1)
    ...     mbarrier_arrive(bar)
    ...     return Int32(mbarrier_wait_parity(bar, 0, choices.MBarrierWait.TEST))
    >>> per_thread(ask, 1)  # the only arrival
    [1]
    """
    rests = chosen(choices.MBarrierWait, kind, "mbarrier_wait_parity") is choices.MBarrierWait.TRY
    return _test("mbarrier_wait_parity", mbar, phase, rests, None, scope, order)


def _test(what: str, mbar: Any, phase: Any, rests: bool, time_limit: Any, scope: Any, order: Any) -> Any:
    pointer = _mbarrier(mbar, what)[0]
    semantics = choices.MemOrder.ACQUIRE if order is None else chosen(choices.MemOrder, order, what)
    if semantics not in (choices.MemOrder.ACQUIRE, choices.MemOrder.RELAXED):
        raise ConstraintError(f"{what}: the order is ACQUIRE or RELAXED, not {semantics.name}")
    limit = [] if time_limit is None else [i32(time_limit)]
    atom = MbarrierTest(rests, semantics.value, _scope(scope, what), bool(limit))
    (done,) = call(atom, pointer, i32(phase), *limit, results=(BOOL,))
    return wrap(done)


def _scope(scope: Any, what: str) -> str | None:
    """PTX's word for it; None where the program leaves it out."""
    return None if scope is None else str(chosen(choices.MBarrierScope, scope, what).value)


def cp_async_mbarrier_arrive(mbar: Any, *, noinc: bool = False, loc: Any = None, ip: Any = None) -> None:
    """This thread's arrival once all its earlier ``cp.async`` have landed.

    >>> cp_async_mbarrier_arrive(None)
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: cp_async_mbarrier_arrive: give noinc=True: the arrival is one of those counted
    """
    if not noinc:
        raise ConstraintError("cp_async_mbarrier_arrive: give noinc=True: the arrival is one of those counted")
    mbarriers.cp_async_mbarrier_arrive_noinc(_mbarrier(mbar, "cp_async_mbarrier_arrive")[0])


def _mbarrier(x: Any, what: str) -> tuple[Pointer, *tuple[Any, ...]]:
    """A pointer to an mbarrier in the block's own shared memory; and the rank of its block, if :func:`mapa` gave it."""
    pointer, rank = own_place(x, what)
    if pointer is None:
        raise ConstraintError(f"{what}: an mbarrier is an Int64 in shared memory, not at {pointer_of(x, what)}")
    own = recast_ptr(pointer, dtype=Int64)
    return (own,) if rank is None else (own, i32(rank))


def own_place(x: Any, what: str) -> tuple[Pointer | None, Any]:
    """(the place of the block's own shared memory that ``x`` points to or that :func:`mapa` mapped to ``x``, the rank
    that it was mapped to or None). The place is None where ``x`` is neither."""
    pointer = pointer_of(x, what)
    value, rank = pointer.value(), None
    op = value.op
    while op is not None and op.opcode == "ptr.cast":
        op = op.operands[0].op
    if op is not None and op.opcode == "call" and isinstance(op.attrs["atom"], Mapa):
        value, rank = op.operands[0], wrap(op.operands[1])
    if not isinstance(value.type, PtrType) or value.type.space is not MemSpace.SMEM:
        return None, rank
    return Pointer(value, Int64) if rank is not None else pointer, rank
