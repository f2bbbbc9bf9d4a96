"""Loops for code that is not rewritten: ``for_generate``, ``while_generate`` and ``yield_out`` of the CuTe DSL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilewright.errors import StagingError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Value
from tilewright.lang.numbers.numeric import Boolean
from tilewright.lang.staging import values as run_time
from tilewright.lang.staging.for_loop import normalise
from tilewright.lang.staging.location import fail, here
from tilewright.lang.staging.ranges import Range
from tilewright.lang.staging.regions import Region


class _Loop(Region):
    """The open body of such a loop. ``carried`` are the values that each iteration hands to the next."""

    def __init__(self, what: str, carried: Any) -> None:
        super().__init__(what, here(4))
        self.inits, self.spec = run_time.flatten(list(carried or ()), promote=True)
        self.ends: list[Value] | None = None

    def arguments(self) -> list[Value]:
        return [Value(v.type) for v in self.inits]

    def objects(self, values: Sequence[Value]) -> list[Any]:
        return list(self.spec.rebuild(iter(values)))

    def end(self, carried: Any) -> None:
        """The values that this iteration hands on, from ``yield_out``."""
        if self.ends is not None:
            raise fail(f"yield_out: the {self} has handed its values on already")
        values = [] if carried is None else list(carried) if isinstance(carried, (tuple, list)) else [carried]
        try:
            self.ends = self.spec.conform(values, "yield_out")
        except run_time.ShapeMismatch as wrong:
            raise fail(f"yield_out: the {self} carries {len(self.inits)} values: {wrong}") from None

    def handed_on(self) -> list[Value]:
        if self.ends is None and self.inits:
            raise fail(f"the {self} carries {len(self.inits)} values and needs yield_out([...]) at its end")
        return self.ends or []


def for_generate(
    start: Any,
    stop: Any = None,
    step: Any = None,
    iter_args: Sequence[Any] | None = None,
    *,
    unroll: int | None = None,
    loc: Any = None,
    ip: Any = None,
) -> Iterator[Any]:
    """A run-time loop, traced once: ``for i in for_generate(0, n): ...; yield_out()``.

    ``iter_args`` are carried from one iteration to the next:
    ``for i, x, result in for_generate(0, n, 1, [x]): ...; yield_out([x + i])``; ``x`` and ``result`` are lists where
    there are several. ``result`` is what the last iteration handed on, for use after the loop.

    >>> import tilewright as cutlass
    >>> def sum_below(t):
    ...     for i, total, result in cutlass.for_generate(0, t, iter_args=[cutlass.Int32(0)]):
    ...         cutlass.yield_out([total + i])
    ...     return result
    >>> per_thread(sum_below, 5)
    [0, 0, 1, 3, 6]
    """
    bounds = (start,) if stop is None else (start, stop) if step is None else (start, stop, step)
    lo, hi, by, index_of = normalise(Range(*bounds, unroll=unroll))
    loop = _Loop("for loop", iter_args)
    index, arguments = Value(lo.type, "i"), loop.arguments()
    # Placeholders for the results: the program gets them before the op exists, whose body is still to be traced.
    block, results = Block([index, *arguments]), loop.arguments()
    loop.open(block)
    if not loop.inits:
        yield index_of(index)
    else:
        inside, after = loop.objects(arguments), loop.objects(results)
        one = len(inside) == 1
        yield index_of(index), inside[0] if one else inside, after[0] if one else after
    # Python has run the body, and with it yield_out.
    Builder.current().emit("yield", loop.handed_on())
    loop.close()
    attrs = {"unroll": unroll}
    made = Builder.current().emit("for", [lo, hi, by, *loop.inits], [r.type for r in results], attrs, [block])
    _take(made, results)


class while_generate:
    """A run-time loop, traced once::

        with while_generate([i, x], lambda i, x: i < n) as (i, x):
            ...
            yield_out([i + 1, x * 2])

    ``condition`` gets the carried values. ``results`` holds those of the last iteration.

    >>> import tilewright as cutlass
    >>> def bits(t):
    ...     loop = cutlass.while_generate([t, cutlass.Int32(0)], lambda rest, count: rest > 0)
    ...     with loop as (rest, count):
    ...         cutlass.yield_out([rest >> 1, count + 1])
    ...     return loop.results[1]
    >>> per_thread(bits, 6)
    [0, 1, 2, 2, 3, 3]
    """

    def __init__(
        self, inputs: Sequence[Any], condition: Callable[..., Any], *, loc: Any = None, ip: Any = None
    ) -> None:
        values = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
        self.loop, self.condition = _Loop("while loop", values), condition
        self.results: Any = None

    def __enter__(self) -> list[Any]:
        loop = self.loop
        before, after = loop.arguments(), loop.arguments()
        self.blocks = [Block(before), Block(after)]
        test = Region("while loop", loop.where)
        test.open(self.blocks[0])
        condition = Boolean(self.condition(*loop.objects(before))).ir_value()
        Builder.current().emit("condition", [condition, *before])
        test.close()
        loop.open(self.blocks[1])
        return loop.objects(after)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None:
            return
        loop, results = self.loop, self.loop.arguments()
        Builder.current().emit("yield", loop.handed_on())
        loop.close()
        made = Builder.current().emit("while", loop.inits, [r.type for r in results], {}, self.blocks)
        _take(made, results)
        objects = loop.objects(results)
        self.results = objects[0] if len(objects) == 1 else objects


def _take(made: Any, results: list[Value]) -> None:
    """Make the values that the program already holds the results of the loop."""
    for result in results:
        result.op = made
    made.results = results


def yield_out(args: Any = None, *, loc: Any = None, ip: Any = None) -> None:
    """Hand ``args`` to the next iteration of the innermost ``for_generate`` or ``while_generate``; its last statement.

    >>> import tilewright as cutlass
    >>> def doublings(t):
    ...     for i, power, result in cutlass.for_generate(0, t, iter_args=[cutlass.Int32(1)]):
    ...         cutlass.yield_out([power * 2])
    ...     return result
    >>> per_thread(doublings, 5)
    [1, 2, 4, 8, 16]
    """
    regions = Builder.current().regions if Builder.active() else []
    if not regions or not isinstance(regions[-1], _Loop):
        raise StagingError("yield_out must be at the end of the body of a for_generate or while_generate")
    regions[-1].end(args)
