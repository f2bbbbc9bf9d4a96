"""The form of the helpers of sm_100 before CuTe DSL 4.5: one type for both operands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from tilewright.cute.nvgpu.common import OperandMajorMode

R = TypeVar("R")


def takes_one_type(function: Callable[..., R]) -> Callable[..., R]:
    """``function(a_dtype, b_dtype, a_leading_mode, ...)`` also as ``function(ab_dtype, a_leading_mode, ...)``, and with
    the keyword ``ab_dtype``."""

    @functools.wraps(function)
    def call(*args: Any, ab_dtype: Any = None, **keywords: Any) -> R:
        if ab_dtype is not None:
            args = (ab_dtype, ab_dtype, *args)
        elif args and _has_one_type(args, keywords):
            args = (args[0], *args)
        return function(*args, **keywords)

    return call


def _has_one_type(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Whether the majors stand behind the first type."""
    return isinstance(args[1], OperandMajorMode) if len(args) > 1 else "b_dtype" not in keywords
