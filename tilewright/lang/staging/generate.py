"""Control flow for code that is not rewritten: ``if_generate`` and ``not_`` of the CuTe DSL."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.lang.staging import expressions


def if_generate(
    cond: Any,
    then_body: Callable[..., Any],
    else_body: Callable[..., Any] | None = None,
    *,
    input_args: Sequence[Any] = (),
    return_types: Sequence[Any] = (),
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """``then_body(*input_args)`` where ``cond`` holds, else ``else_body(*input_args)``; gives what they give.

    ``return_types`` are the numeric types that results are converted to, so that both bodies agree.
    """

    def typed(body: Callable[..., Any] | None) -> Any:
        found = body(*input_args) if body is not None else None
        if not return_types:
            return found
        values = found if isinstance(found, (tuple, list)) else (found,)
        made = tuple(kind(value) for kind, value in zip(return_types, values, strict=True))
        return made if len(made) > 1 else made[0]

    return expressions.if_(cond, lambda: typed(then_body), lambda: typed(else_body))


def and_(lhs: Any, rhs: Any, *more: Any, loc: Any = None, ip: Any = None) -> Any:
    """Logical and of numbers known now or at run time; all of them are evaluated."""
    return expressions.and_(lhs, *[functools.partial(_itself, x) for x in (rhs, *more)])


def or_(lhs: Any, rhs: Any, *more: Any, loc: Any = None, ip: Any = None) -> Any:
    """Logical or of numbers known now or at run time; all of them are evaluated."""
    return expressions.or_(lhs, *[functools.partial(_itself, x) for x in (rhs, *more)])


def _itself(x: Any) -> Any:
    return x


def not_(value: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Logical not of a number known now or at run time."""
    return expressions.not_(value)
