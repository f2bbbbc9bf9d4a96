"""Atomic read-modify-writes of one element in global or shared memory."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ConstraintError
from tilewright.lang.calls import call
from tilewright.lang.numeric import wrap
from tilewright.lang.pointer import Pointer


def _atomic(
    kind: str, ptr: Any, value: Any, compare: Any = None, sem: str | None = None, scope: str | None = None
) -> Any:
    from tilewright.atoms.atomic import Atomic

    pointer = getattr(ptr, "iterator", ptr)
    if not isinstance(pointer, Pointer):
        raise ConstraintError(f"atomic_{kind}: a pointer is needed, not {ptr!r}")
    dtype = pointer.dtype
    operands = [pointer.value(), *([] if compare is None else [dtype(compare).ir_value()]), dtype(value).ir_value()]
    (old,) = call(Atomic(kind, sem or "relaxed", scope or "gpu"), *operands, results=(dtype.ir_type,))
    return wrap(old)


def atomic_add(ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, **_: Any) -> Any:
    """``old = *ptr; *ptr = old + val`` at once; gives ``old``. ``sem``: relaxed, acquire, release, acq_rel; ``scope``: cta, gpu, sys."""
    return _atomic("add", ptr, val, None, sem, scope)


def atomic_max(ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, **_: Any) -> Any:
    """``*ptr = max(*ptr, val)`` at once; gives the old value."""
    return _atomic("max", ptr, val, None, sem, scope)


def atomic_min(ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, **_: Any) -> Any:
    """``*ptr = min(*ptr, val)`` at once; gives the old value."""
    return _atomic("min", ptr, val, None, sem, scope)


def atomic_and(ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, **_: Any) -> Any:
    """``*ptr &= val`` at once; gives the old value."""
    return _atomic("and", ptr, val, None, sem, scope)


def atomic_or(ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, **_: Any) -> Any:
    """``*ptr |= val`` at once; gives the old value."""
    return _atomic("or", ptr, val, None, sem, scope)


def atomic_xor(ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, **_: Any) -> Any:
    """``*ptr ^= val`` at once; gives the old value."""
    return _atomic("xor", ptr, val, None, sem, scope)


def atomic_exch(ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, **_: Any) -> Any:
    """``*ptr = val`` at once; gives the old value."""
    return _atomic("exch", ptr, val, None, sem, scope)


def atomic_cas(ptr: Any, *, cmp: Any, val: Any, sem: str | None = None, scope: str | None = None, **_: Any) -> Any:
    """``*ptr = val if *ptr == cmp`` at once; gives the old value."""
    return _atomic("cas", ptr, val, cmp, sem, scope)
