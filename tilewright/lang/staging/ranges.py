"""``range`` of a kernel: ``cutlass.range`` (a run-time loop), ``range_constexpr`` (unrolled while staging)."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Iterator
from typing import Any

from tilewright.errors import HOW_STATIC, StagingError
from tilewright.lang.numbers.numeric import Integer, Numeric


class HintWarning(UserWarning):
    """A hint about speed that is not followed; the program means the same without it."""


class Range:
    """The bounds and hints of a run-time loop; what the builtin ``range`` means in a staged ``for`` statement.

    ``unroll`` asks for that many copies of the body, ``unroll_full`` for all of them (with Python bounds the loop is
    then unrolled while staging and its index is a Python int). ``prefetch_stages`` and ``vectorize`` are hints that are
    not followed: a :class:`HintWarning` says so, and the loop runs as it is written.

    >>> import tilewright as cutlass
    >>> @cute.jit
    ... def odd_numbers_below(t):
    ...     total = cutlass.Int32(0)
    ...     for i in cutlass.range(1, t, 2, unroll=4):  # a loop of the kernel: t is known when it runs
    ...         total += i
    ...     return total
    >>> per_thread(odd_numbers_below, 8)
    [0, 0, 1, 1, 4, 4, 9, 9]
    >>> [i for i in cutlass.range(3)]  # known bounds: a Python range
    [0, 1, 2]
    """

    def __init__(
        self,
        *bounds: Any,
        unroll: int | None = None,
        unroll_full: bool = False,
        prefetch_stages: int | None = None,
        vectorize: bool | None = None,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        if not 1 <= len(bounds) <= 3:
            raise StagingError(f"range takes 1 to 3 bounds, got {len(bounds)}")
        for bound in bounds:
            if not isinstance(bound, (int, Integer)):
                raise StagingError(f"range needs integers, got {bound!r} ({type(bound).__name__})")
        if isinstance(unroll, bool) or (unroll is not None and (not isinstance(unroll, int) or unroll < 0)):
            raise StagingError(f"range(unroll={unroll!r}): a whole number is needed (unroll_full=True unrolls all)")
        self.start, self.stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        self.step = bounds[2] if len(bounds) == 3 else 1
        if as_python(self.step) == 0:
            raise StagingError("range: the step must not be zero")
        if prefetch_stages:
            warn_of_prefetching(prefetch_stages)
        if vectorize:
            warnings.warn(
                "range(vectorize=True): the iterations are not put together, the loop runs as it is written; for "
                "vector instructions move whole tensors with load() and store(), or cute.autovec_copy",
                HintWarning,
                stacklevel=2,
            )
        self.unroll, self.unroll_full = unroll or None, bool(unroll_full)

    @property
    def is_static(self) -> bool:
        return all(as_python(x) is not None for x in (self.start, self.stop, self.step))

    def python(self) -> builtins.range:
        """The Python range, when all bounds are known now."""
        bounds = [as_python(x) for x in (self.start, self.stop, self.step)]
        if None in bounds:
            raise StagingError(
                "a run-time range can only be the iterable of a `for` statement in a function marked "
                "@cute.jit or @cute.kernel"
            )
        return builtins.range(*bounds)  # type: ignore[arg-type]  # checked above

    def __iter__(self) -> Iterator[Any]:  # Int32 in a kernel, where a bound is known at run time
        return iter(self.python())


def warn_of_prefetching(stages: Any) -> None:
    if isinstance(stages, bool) or not isinstance(stages, int) or stages < 0:
        raise StagingError(f"range(prefetch_stages={stages!r}): a whole number of stages is needed")
    warnings.warn(
        f"range(prefetch_stages={stages}): the loop's copies are not moved ahead, it runs as it is written; for a "
        "software pipeline copy the first stages before the loop and stage i + n inside it, as cutlass.pipeline has it",
        HintWarning,
        stacklevel=3,
    )


def as_python(bound: Any) -> int | None:
    """A bound that is known now as an int, else None."""
    if isinstance(bound, Numeric):
        return int(bound.value) if bound.is_static else None
    return int(bound)


range = Range


def range_constexpr(*bounds: Any, unroll_full: bool = True) -> builtins.range:
    """A ``for`` over it runs while staging: the body is unrolled and the index is a Python int. ``unroll_full``, which
    published programs write here too, says the same.

    >>> list(range_constexpr(1, 4))
    [1, 2, 3]
    """
    if not unroll_full:
        raise StagingError("range_constexpr is always unrolled: use `range` for a loop of the kernel")
    static_bounds = [as_python(bound) if isinstance(bound, (int, Numeric)) else bound for bound in bounds]
    if None in static_bounds:
        raise StagingError(
            f"range_constexpr({', '.join(map(repr, bounds))}): a bound is known only when the kernel runs; "
            f"use `range` or `cutlass.range` for a run-time loop ({HOW_STATIC})"
        )
    return builtins.range(*static_bounds)  # type: ignore[arg-type]  # checked above


def range_dynamic(*bounds: Any, **options: Any) -> Range:
    """The older name of ``cutlass.range``.

    >>> import tilewright as cutlass
    >>> @cute.jit
    ... def sum_below(t):
    ...     total = cutlass.Int32(0)
    ...     for i in cutlass.range_dynamic(t):
    ...         total += i
    ...     return total
    >>> per_thread(sum_below, 5)
    [0, 0, 1, 3, 6]
    """
    return Range(*bounds, **options)


def const_expr(value: Any) -> Any:
    """``value``, which must be known while staging; ``if const_expr(...)`` is decided now.

    >>> const_expr(3 > 2)
    True
    """
    if isinstance(value, Numeric):
        if not value.is_static:
            raise StagingError(
                f"const_expr: the {type(value).__name__} is known only when the kernel runs; leave const_expr "
                "out to branch at run time, or pass the number as a cutlass.Constexpr argument"
            )
        return value.value
    return value


def dynamic_expr(value: Any) -> Any:
    """Marks a predicate as a run-time one; run-time is what predicates are unless they are known.

    >>> import tilewright as cutlass
    >>> @cute.jit
    ... def half_of_even(t):
    ...     if cutlass.dynamic_expr(t % 2 == 0):
    ...         t = t // 2
    ...     return t
    >>> per_thread(half_of_even, 6)
    [0, 1, 1, 3, 2, 5]
    """
    return value
