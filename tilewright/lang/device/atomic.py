"""Atomic read-modify-writes, and loads and stores with a memory order, of one element in global or shared memory."""

from __future__ import annotations

from typing import Any

from tilewright.atoms.atomic import Atomic, OrderedLoad, OrderedStore
from tilewright.errors import ConstraintError
from tilewright.lang.device.calls import call
from tilewright.lang.numbers.numeric import wrap
from tilewright.lang.tensors.pointer import Pointer


def _atomic(
    kind: str, ptr: Any, value: Any, compare: Any = None, sem: str | None = None, scope: str | None = None
) -> Any:
    pointer = _pointer(ptr, f"atomic_{kind}")
    dtype = pointer.dtype
    operands = [pointer.value(), *([] if compare is None else [dtype(compare).ir_value()]), dtype(value).ir_value()]
    (old,) = call(Atomic(kind, sem or "relaxed", scope or "gpu"), *operands, results=(dtype.ir_type,))
    return wrap(old)


def atomic_add(
    ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, loc: Any = None, ip: Any = None
) -> Any:
    """``old = *ptr; *ptr = old + val`` at once; gives ``old``.

    ``sem``: relaxed, acquire, release, acq_rel; ``scope``: cta, cluster, gpu, sys.

    >>> from tilewright.cute import arch
    >>> from tilewright.testing import per_thread
    >>> per_thread(lambda t, p: arch.atomic_add(p, 2), 4, memory=[5])
    ([5, 7, 9, 11], [13])
    """
    return _atomic("add", ptr, val, None, sem, scope)


def atomic_max(
    ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, loc: Any = None, ip: Any = None
) -> Any:
    """``*ptr = max(*ptr, val)`` at once; gives the old value.

    >>> from tilewright.cute import arch
    >>> from tilewright.testing import per_thread
    >>> per_thread(lambda t, p: arch.atomic_max(p, t), 4, memory=[1])
    ([1, 1, 1, 2], [3])
    """
    return _atomic("max", ptr, val, None, sem, scope)


def atomic_min(
    ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, loc: Any = None, ip: Any = None
) -> Any:
    """``*ptr = min(*ptr, val)`` at once; gives the old value.

    >>> from tilewright.cute import arch
    >>> from tilewright.testing import per_thread
    >>> per_thread(lambda t, p: arch.atomic_min(p, -t), 4, memory=[-1])
    ([-1, -1, -1, -2], [-3])
    """
    return _atomic("min", ptr, val, None, sem, scope)


def atomic_and(
    ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, loc: Any = None, ip: Any = None
) -> Any:
    """``*ptr &= val`` at once; gives the old value.

    >>> from tilewright.cute import arch
    >>> from tilewright.testing import per_thread
    >>> per_thread(lambda t, p: arch.atomic_and(p, 7 - (1 << t)), 3, memory=[7])
    ([7, 6, 4], [0])
    """
    return _atomic("and", ptr, val, None, sem, scope)


def atomic_or(
    ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, loc: Any = None, ip: Any = None
) -> Any:
    """``*ptr |= val`` at once; gives the old value.

    >>> from tilewright.cute import arch
    >>> from tilewright.testing import per_thread
    >>> per_thread(lambda t, p: arch.atomic_or(p, 1 << t), 3, memory=[0])
    ([0, 1, 3], [7])
    """
    return _atomic("or", ptr, val, None, sem, scope)


def atomic_xor(
    ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, loc: Any = None, ip: Any = None
) -> Any:
    """``*ptr ^= val`` at once; gives the old value.

    >>> from tilewright.cute import arch
    >>> from tilewright.testing import per_thread
    >>> per_thread(lambda t, p: arch.atomic_xor(p, 1 << t), 3, memory=[5])
    ([5, 4, 6], [2])
    """
    return _atomic("xor", ptr, val, None, sem, scope)


def atomic_exch(
    ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, loc: Any = None, ip: Any = None
) -> Any:
    """``*ptr = val`` at once; gives the old value.

    >>> from tilewright.cute import arch
    >>> from tilewright.testing import per_thread
    >>> per_thread(lambda t, p: arch.atomic_exch(p, t), 3, memory=[9])
    ([9, 0, 1], [2])
    """
    return _atomic("exch", ptr, val, None, sem, scope)


def atomic_cas(
    ptr: Any, *, cmp: Any, val: Any, sem: str | None = None, scope: str | None = None, loc: Any = None, ip: Any = None
) -> Any:
    """``*ptr = val if *ptr == cmp`` at once; gives the old value.

    >>> from tilewright.cute import arch
    >>> from tilewright.testing import per_thread
    >>> per_thread(lambda t, p: arch.atomic_cas(p, cmp=t, val=t + 1), 3, memory=[0])
    ([0, 1, 2], [3])
    """
    return _atomic("cas", ptr, val, cmp, sem, scope)


def load(ptr: Any, *, sem: str = "relaxed", scope: str = "gpu", loc: Any = None, ip: Any = None) -> Any:
    """One element that others may write meanwhile. ``sem``: relaxed, acquire; ``scope``: cta, cluster, gpu, sys.

    >>> from tilewright.cute import arch
    >>> from tilewright.testing import per_thread
    >>> per_thread(lambda t, p: arch.load(p + t, sem="acquire"), 3, memory=[7, 8, 9])
    ([7, 8, 9], [7, 8, 9])
    """
    pointer = _pointer(ptr, "load")
    (value,) = call(OrderedLoad(sem, scope), pointer.value(), results=(pointer.dtype.ir_type,))
    return wrap(value)


def store(ptr: Any, val: Any, *, sem: str = "relaxed", scope: str = "gpu", loc: Any = None, ip: Any = None) -> None:
    """Write one element that other threads may read meanwhile. ``sem``: relaxed, release.

    >>> from tilewright.cute import arch
    >>> from tilewright.testing import per_thread
    >>> per_thread(lambda t, p: arch.store(p + t, t * t, sem="release"), 3, memory=[0, 0, 0])
    ([0, 0, 0], [0, 1, 4])
    """
    pointer = _pointer(ptr, "store")
    call(OrderedStore(sem, scope), pointer.value(), pointer.dtype(val).ir_value())


def _pointer(ptr: Any, what: str) -> Pointer:
    pointer = getattr(ptr, "iterator", ptr)
    if not isinstance(pointer, Pointer):
        raise ConstraintError(f"{what}: a pointer (or a tensor, for its first element) is needed, not {ptr!r}")
    return pointer
