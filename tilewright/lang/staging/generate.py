"""Control flow for code that is not rewritten, as the CuTe DSL has it: ``if_generate``, ``and_``, ``or_`` and ``not_``.

In a ``@cute.jit`` function ``if``, ``and``, ``or`` and ``not`` on run-time values are rewritten to the same. A plain
function that such a function calls is not rewritten: it calls these. Conditions that are Python values are decided at
once.
"""

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

    Args:
        cond: a bool, or a Boolean of a run-time value.
        then_body: is called once where ``cond`` is known, and while both sides are staged where it is not.
        else_body: the same for the other side; None: nothing.
        input_args: what the bodies are called with.
        return_types: the numeric types that results are converted to, so that both bodies agree.

    >>> from tilewright import Int32
    >>> def clamped(x):  # not rewritten
    ...     return if_generate(x > 2, lambda: Int32(2), lambda: x, return_types=[Int32])
    >>> @cute.jit
    ... def use(t):
    ...     return clamped(t)
    >>> per_thread(use, 32)[:5]
    [0, 1, 2, 2, 2]
    """

    def typed(body: Callable[..., Any] | None) -> Any:
        results = body(*input_args) if body is not None else None
        if not return_types:
            return results
        values = results if isinstance(results, (tuple, list)) else (results,)
        made = tuple(kind(value) for kind, value in zip(return_types, values, strict=True))
        return made if len(made) > 1 else made[0]

    return expressions.if_(cond, lambda: typed(then_body), lambda: typed(else_body))


class Executor:
    """What stages the branches of functions that are not rewritten, under the name that libraries call it by."""

    def ifexp_execute(
        self, pred: Any, block_args: Sequence[Any], then_block: Callable[..., Any], else_block: Callable[..., Any]
    ) -> Any:
        """``then_block(*block_args)`` where ``pred`` holds, else ``else_block(*block_args)``: :func:`if_generate`.

        >>> executor.ifexp_execute(3 > 2, (5,), lambda x: x + 1, lambda x: x - 1)
        6
        """
        return if_generate(pred, then_block, else_block, input_args=block_args)


executor = Executor()


def and_(lhs: Any, rhs: Any, *more: Any, loc: Any = None, ip: Any = None) -> Any:
    """Logical and of numbers known now or at run time; all of them are evaluated.

    >>> and_(True, 3 > 2), or_(False, 3 < 2), not_(True)
    (True, False, False)
    """
    return expressions.and_(lhs, *[functools.partial(_itself, x) for x in (rhs, *more)])


def or_(lhs: Any, rhs: Any, *more: Any, loc: Any = None, ip: Any = None) -> Any:
    """Logical or of numbers known now or at run time; all of them are evaluated."""
    return expressions.or_(lhs, *[functools.partial(_itself, x) for x in (rhs, *more)])


def _itself(x: Any) -> Any:
    return x


def not_(value: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Logical not of a number known now or at run time."""
    return expressions.not_(value)
