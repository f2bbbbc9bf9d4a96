"""``for`` statements."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Iterator
from typing import Any

from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Value
from tilewright.lang.numbers import operators, promote
from tilewright.lang.numbers.facts import Facts, limits
from tilewright.lang.numbers.facts import span as span_of
from tilewright.lang.numbers.numeric import Int32, Int64, Integer, Uint32, Uint64, as_numeric
from tilewright.lang.staging.builder import depth
from tilewright.lang.staging.liveness import HoldsUnnamed
from tilewright.lang.staging.location import fail, here
from tilewright.lang.staging.loop_values import LoopValues
from tilewright.lang.staging.ranges import Range, as_python
from tilewright.lang.staging.region_state import RegionState
from tilewright.lang.staging.undefined import Undefined
from tilewright.lang.staging.unrolling import ForBody


def range_(function: Any) -> Any:
    """The meaning of the name ``range`` in the head of a ``for`` statement."""
    return Range if function is builtins.range else function


class For(HoldsUnnamed):
    """One execution of a ``for`` statement by the rewritten code, ``i``, ``x``, ``y`` being the variables it assigns::

        loop = For(iterable, ("i", "x", "y"), (i, x, y), temporaries, targets, touched, objects)
        for item in loop.steps():
            i, x, y = loop.enter((i, x, y))
            i = item
            ...
            i, x, y = loop.leave((i, x, y))

    Python iterables iterate as they do. A :class:`Range` makes a run-time loop, whose body is traced. If the trace
    shows that its index names registers (:mod:`unrolling`), it is thrown away and the index takes its numbers in turn.
    """

    __slots__ = (
        "arguments",
        "block",
        "bounds",
        "done",
        "iterable",
        "iterator",
        "level",
        "region",
        "unrolled",
        "values",
    )

    def __init__(
        self,
        iterable: Any,
        names: tuple[str, ...],
        variables: tuple[Any, ...],
        temporaries: tuple[str, ...],
        targets: tuple[str, ...],
        touched: tuple[str, ...],
        objects: tuple[Any, ...],
    ) -> None:
        self.level = depth()
        if isinstance(iterable, Range) and iterable.is_static:
            if iterable.unroll_full or (Builder.active() and Builder.current().recording):
                iterable = iterable.python()
        self.iterable = iterable
        self.iterator: Any = None
        self.region: ForBody | None = None
        self.unrolled = False
        if isinstance(iterable, Range):
            self.region = region = ForBody(here(2), iterable, targets[0] if targets else "i")
            # The index is not carried: each iteration assigns it, and after the loop it has no value.
            clean = [
                Undefined(n, f"it is the index of the {region}") if n in targets else v
                for n, v in zip(names, variables, strict=True)
            ]
            self.values = LoopValues(region, RegionState(names, clean, touched, objects), temporaries)
        elif isinstance(iterable, Integer):
            raise fail(f"a run-time {type(iterable).__name__} cannot be iterated over; write range(...)")

    def steps(self) -> Iterator[Any]:
        if self.region is not None:
            return self._trace(self.region)
        self.iterator = iter(self.iterable)
        return self.iterator

    def unnamed(self) -> list[Any]:
        return [self.iterator]

    def _trace(self, region: ForBody) -> Iterator[Any]:
        *self.bounds, index_of = normalise(self.iterable)
        self.done = False
        # Once more for each thing that a trace finds out to be carried (LoopValues.gather).
        while not self.done:
            index = Value(self.bounds[0].type, region.target)
            self.block = Block([index])
            region.open(self.block)
            shown = index_of(index)
            yield shown
        if self.unrolled:  # numbers of the type that the trace saw
            yield from map(type(shown), self.iterable.python())

    def enter(self, variables: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.region is None:
            return variables
        self.arguments = self.values.arguments()
        self.block.args += self.arguments
        return self.values.spread(self.arguments)

    def leave(self, variables: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.region is None:
            return self.values.as_traced(variables) if self.unrolled else variables
        if self.region.unrolled:
            return self._unroll(variables, self.region)
        ends = self.values.gather(variables)
        self.region.close(keep=ends is not None)
        if ends is None:
            return variables
        self.done = True
        unroll = {"unroll": "full" if self.iterable.unroll_full else self.iterable.unroll}
        return self.values.close("for", self.bounds, [self.block], [self.arguments], [("yield", [], ends)], unroll)

    def _unroll(self, variables: tuple[Any, ...], region: ForBody) -> tuple[Any, ...]:
        """Throw the trace away: from here on Python iterates."""
        before = self.values.thrown_away(variables)
        region.close(keep=False)
        self.region, self.done, self.unrolled = None, True, True
        return self.values.as_traced(before)


def normalise(span: Range) -> tuple[Value, Value, Value, Any]:
    """Bounds of a loop that counts upwards, and the index that the user sees as a function of the counter.

    The iterations are those of Python's range, also where a step past the end would be more than the type holds.
    """
    bounds = [span.start, span.stop, span.step]
    cls = type(_widest(bounds))
    if cls.width > 64:
        raise fail(f"range counts in 64 bits at most: convert the {cls.__name__} with .to(Int64) or .to(Int32)")
    upwards = _is_upwards(bounds[2])
    if not cls.signed and (not upwards or any((as_python(bound) or 0) < 0 for bound in bounds)):
        if as_python(bounds[2]) is None and not all(map(_fits_int64, bounds)):
            raise fail(f"range in {cls.__name__} by a step whose sign is not known: convert the bounds to Int64")
        cls = Int64 if cls.width > 16 else Int32  # it must be able to say that it ends below zero
    shown, narrow = cls, cls.width < 32
    if narrow:  # the last step may go past what the type holds, and would come back from its other end
        cls = Int32
    start, stop, step = (cls(x) for x in (span.start, span.stop, span.step))
    static_step = as_python(step)
    if static_step is None:  # published kernels count from 0 to 0 by 0 where there is nothing to do
        step.require((step != 0) | (start >= stop), "range() by a step of zero never ends")
        step = operators.select(step == 0, cls(1), step).learn(step.facts)  # no iteration sees the 1
    facts = Facts()
    if upwards:
        static_step = step.divisibility if static_step is None else static_step
        bound = None if stop.facts.bound is None else stop.facts.bound - 1
        facts = Facts(start.nonneg, _common_divisor(start, static_step), bound)
        if narrow or _last_step_fits(stop, step):
            return start.ir_value(), stop.ir_value(), step.ir_value(), lambda counter: shown(cls(counter).learn(facts))
    # Otherwise the loop counts its iterations, ceil((stop - start) / step) of them, and the index is computed from that
    # count.
    if not upwards and (narrow or _distance_fits(start, stop, step)):
        count = cls(operators.binary("max", -((start - stop) // step), 0))
        known_of_counter = Facts(nonneg=True)
    else:
        count, known_of_counter = _count_without_sign(start, stop, step), Facts()

    def index_of(counter: Value) -> Any:
        return shown((start + cls(type(count)(counter).learn(known_of_counter)) * step).learn(facts))

    builder = Builder.current()
    kind = type(count).ir_type
    return builder.constant(kind, 0), count.ir_value(), builder.constant(kind, 1), index_of


def _last_step_fits(stop: Any, step: Any) -> bool:
    """Whether no number below ``stop`` is so large that ``step`` more would be past what the type holds."""
    kind = type(stop).ir_type
    return span_of(stop.facts, kind)[1] - 1 + span_of(step.facts, kind)[1] <= limits(kind)[1]


def _distance_fits(start: Any, stop: Any, step: Any) -> bool:
    """Whether ``-((start - stop) // step)`` is computed without a wrap-around."""
    kind = type(start).ir_type
    (low, high), (lowest, highest) = span_of(start.facts, kind), span_of(stop.facts, kind)
    return limits(kind)[0] < low - highest and high - lowest <= limits(kind)[1]


def _count_without_sign(start: Any, stop: Any, step: Any) -> Any:
    """The iterations of any range, which an integer of the same width holds if it has no sign."""
    kind = Uint32 if type(start).width == 32 else Uint64
    up = step > 0
    ahead = operators.select(up, start < stop, start > stop)
    distance = operators.select(up, kind(stop) - kind(start), kind(start) - kind(stop))
    size = kind(operators.select(up, step, -step))
    return kind(operators.select(ahead, (distance - 1) // size + 1, kind(0)))


def _is_upwards(step: Any) -> bool:
    """Whether a step is known to be positive: a number, or one whose type has no sign."""
    static_step = as_python(step)
    return static_step > 0 if static_step is not None else not type(as_numeric(step)).signed


def _fits_int64(bound: Any) -> bool:
    """Whether an Int64 holds all numbers that a bound can be."""
    number, literal = as_numeric(bound), as_python(bound)
    return type(number).signed or type(number).width < 64 or (literal is not None and literal < 1 << 63)


def _common_divisor(start: Any, step: int) -> int:
    first = as_python(start)
    return math.gcd(step, start.divisibility if first is None else first)


def _widest(bounds: list[Any]) -> Any:
    """A number of the type in which the bounds meet (Int32 for Python ints)."""
    return functools.reduce(_wider, map(as_numeric, bounds))


def _wider(a: Any, b: Any) -> Any:
    kind = promote.common(type(a).ir_type, type(b).ir_type)
    return a if type(a).ir_type == kind else b
