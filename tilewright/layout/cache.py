"""Remembering results of operations on static operands."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, update_wrapper
from typing import Any, TypeVar

from tilewright.layout.ints import UnhashableLeafError

F = TypeVar("F", bound=Callable[..., Any])
CACHE_SIZE = 1 << 14


def remembered(function: F) -> F:
    """Cache a binary operation by its operands; run-time operands cannot be hashed and are computed every time.

    Results with run-time ints must not be reused: their arithmetic may have been emitted into another kernel.
    """
    cached = lru_cache(CACHE_SIZE)(function)

    def operation(a: Any, b: Any) -> Any:
        try:
            return cached(a, b)
        except UnhashableLeafError:
            return function(a, b)

    update_wrapper(operation, function)
    operation.cache_clear = cached.cache_clear  # type: ignore[attr-defined]
    operation.uncached = function  # type: ignore[attr-defined]
    return operation  # type: ignore[return-value]


def remembered_unary(function: F) -> F:
    """:func:`remembered` for operations of one operand."""
    cached = lru_cache(CACHE_SIZE)(function)

    def operation(a: Any) -> Any:
        try:
            return cached(a)
        except UnhashableLeafError:
            return function(a)

    update_wrapper(operation, function)
    operation.cache_clear = cached.cache_clear  # type: ignore[attr-defined]
    operation.uncached = function  # type: ignore[attr-defined]
    return operation  # type: ignore[return-value]
