"""Remembering results of operations on static operands."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

CACHE_SIZE = 1 << 14
_caches: list[Callable[[], None]] = []


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Cache an operation of one or two operands by its operands.

    The function is called as ``function(static, *operands)``, with ``static`` True when everything in the operands is
    static, so that it need not look at every leaf again. Run-time operands cannot be hashed: they are computed every
    time, because the arithmetic in an old result may have been emitted into another kernel.
    """
    cached = lru_cache(CACHE_SIZE)(partial(function, True))
    _caches.append(cached.cache_clear)

    def operation(a: Any, b: Any = None) -> Any:
        try:
            return cached(a, b)
        except TypeError:  # a run-time int, or no operand of the algebra at all: the function says what
            return function(False, a, b)

    return operation


def clear_caches() -> None:
    """Forget all remembered results (for measurements; results never depend on it)."""
    for clear in _caches:
        clear()
