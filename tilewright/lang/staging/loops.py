"""``for`` and ``while`` statements."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Iterator
from typing import Any

from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Value
from tilewright.lang.numbers import operators, promote
from tilewright.lang.numbers.facts import Facts
from tilewright.lang.numbers.numeric import Boolean, Int32, Int64, Integer, as_numeric
from tilewright.lang.staging import cells, location
from tilewright.lang.staging.carried import Carried, invariants, substitute
from tilewright.lang.staging.location import fail, here
from tilewright.lang.staging.poison import Undefined
from tilewright.lang.staging.ranges import Range, as_python
from tilewright.lang.staging.regions import Region, decide

ENDLESS = 1 << 14
"""Turns after which a Python loop that records operations is taken for an endless one."""


def range_(function: Any) -> Any:
    """What the name ``range`` means in the head of a ``for`` statement."""
    return Range if function is builtins.range else function


class For:
    """One execution of a ``for`` statement by the rewritten code::

        loop = For(iterable, names, fresh, targets, touched, objects)
        for item in loop.steps(i, x, y):
            i, x, y = loop.enter(i, x, y)
            i = item
            ...
            i, x, y = loop.leave(i, x, y)

    Python iterables iterate as they do. A :class:`Range` makes a run-time loop, whose body is traced.
    """

    __slots__ = ("arguments", "block", "bounds", "carried", "config", "done", "iterable", "level", "region")

    def __init__(
        self, iterable: Any, names: tuple[str, ...], fresh: tuple[str, ...], targets: tuple[str, ...],
        touched: tuple[str, ...], objects: tuple[Any, ...],
    ) -> None:  # fmt: skip
        self.level = location.depth()
        if isinstance(iterable, Range) and iterable.unroll_full and iterable.is_static:
            iterable = iterable.python()
        self.iterable = iterable
        self.region: Region | None = None
        if isinstance(iterable, Range):
            self.region = Region("for loop", here(2))
            self.config = (names, fresh, targets, touched, objects)
        elif isinstance(iterable, Integer):
            raise fail(f"a run-time {type(iterable).__name__} cannot be iterated over; write range(...)")

    def steps(self, *values: Any) -> Iterator[Any]:
        return iter(self.iterable) if self.region is None else self._trace(values)

    def _trace(self, values: tuple[Any, ...]) -> Iterator[Any]:
        assert self.region is not None
        names, fresh, targets, touched, objects = self.config
        *self.bounds, index_of = normalise(self.iterable)
        clean = [Undefined(n, f"it is the index of the {self.region}") if n in targets else v
                 for n, v in zip(names, values, strict=True)]  # fmt: skip
        self.carried = Carried(self.region, names, fresh, clean, zip(touched, objects, strict=True))
        self.done = False
        while not self.done:
            index = Value(self.bounds[0].type, targets[0] if targets else "i")
            self.block = Block([index])
            self.region.open(self.block)
            yield index_of(index)

    def enter(self, *values: Any) -> tuple[Any, ...]:
        if self.region is None:
            return values
        self.arguments = self.carried.arguments()
        self.block.args += self.arguments
        return self.carried.spread(self.arguments)

    def leave(self, *values: Any) -> tuple[Any, ...]:
        if self.region is None:
            return values
        ends = self.carried.gather(values)
        self.region.close()
        if ends is None:
            return values
        self.done = True
        inits = self.carried.inits()
        replaced = invariants(inits, [ends], [self.arguments])
        substitute(self.block, replaced)
        kept = [i for i, argument in enumerate(self.arguments) if argument not in replaced]
        self.block.args[1:] = [self.arguments[i] for i in kept]
        builder = Builder.current()
        with builder.inside(self.block):
            builder.emit("yield", [replaced.get(ends[i], ends[i]) for i in kept])
        unroll = "full" if self.iterable.unroll_full else self.iterable.unroll
        op = builder.emit(
            "for", [*self.bounds, *(inits[i] for i in kept)], [self.arguments[i].type for i in kept], {"unroll":
            unroll}, [self.block],
        )  # fmt: skip
        final = list(inits)
        for i, result in zip(kept, op.results, strict=True):
            result.hint, final[i] = self.arguments[i].hint, result
        out = self.carried.spread(final)
        self.carried.settle()
        return out


def normalise(span: Range) -> tuple[Value, Value, Value, Any]:
    """Bounds of a loop that counts upwards, and the index that the user sees as a function of the counter."""
    bounds = [span.start, span.stop, span.step]
    cls = type(_widest(bounds))
    if not cls.signed and any((as_python(bound) or 0) < 0 for bound in bounds):  # downwards: it must be able to say so
        cls = Int64 if cls.width > 16 else Int32
    start, stop, step = (cls(x) for x in (span.start, span.stop, span.step))
    known = as_python(step)
    if known is not None and known > 0:
        bound = None if stop.facts.bound is None else stop.facts.bound - 1
        facts = Facts(start.nonneg, _common_divisor(start, known), bound)
        return start.ir_value(), stop.ir_value(), step.ir_value(), lambda counter: cls(counter).learn(facts)
    count = operators.binary("max", -((start - stop) // step), 0)

    def index_of(counter: Value) -> Any:
        return start + cls(counter).learn(Facts(nonneg=True)) * step

    builder = Builder.current()
    return builder.constant(cls.ir_type, 0), cls(count).ir_value(), builder.constant(cls.ir_type, 1), index_of


def _common_divisor(start: Any, step: int) -> int:
    first = as_python(start)
    return math.gcd(step, start.divisibility if first is None else first)


def _widest(bounds: list[Any]) -> Any:
    """A number of the type in which the bounds meet (Int32 for Python ints)."""
    return functools.reduce(_wider, map(as_numeric, bounds))


def _wider(a: Any, b: Any) -> Any:
    kind = promote.common(type(a).ir_type, type(b).ir_type)
    return a if type(a).ir_type == kind else b


class While:
    """One execution of a ``while`` statement by the rewritten code::

        loop = While(names, fresh, touched, objects)
        while loop.more(x, y):
            x, y = loop.enter(x, y)
            if loop.test(condition, x, y):
                x, y = loop.body(x, y)
                ...
                x, y = loop.leave(x, y)

    The condition is first evaluated aside. Known now, the loop turns as Python's does; at run time the ops of that
    evaluation are thrown away and the loop is traced, the condition in its own block.
    """

    __slots__ = (
        "afters", "arguments", "before", "blocks", "carried", "condition", "config", "finished", "level", "reach",
        "region", "state", "turns",
    )  # fmt: skip

    def __init__(
        self, names: tuple[str, ...], fresh: tuple[str, ...], touched: tuple[str, ...], objects: tuple[Any, ...]
    ) -> None:
        self.level = location.depth()
        self.config = (names, fresh, touched, objects)
        self.region = Region("while loop", here(2))
        self.state = "probe"
        self.finished = False
        self.turns = 0

    def more(self, *values: Any) -> bool:
        if self.finished:
            return False
        self.turns += 1
        if self.turns > ENDLESS and Builder.current().block.ops:
            raise fail(f"the {self.region} has turned {ENDLESS} times while staging: its condition never becomes False")
        return True

    def enter(self, *values: Any) -> tuple[Any, ...]:
        if self.state == "probe":
            self.before = values
            self.reach = cells.Reach(zip(*self.config[2:], strict=True), zip(self.config[0], values, strict=True))
            self.blocks = [Block()]
            self.region.open(self.blocks[0])
            return values
        self.arguments = self.carried.arguments()
        self.blocks = [Block(list(self.arguments)), Block()]
        self.region.open(self.blocks[0])
        return self.carried.spread(self.arguments)

    def test(self, condition: Any, *values: Any) -> bool:
        known = decide(condition)
        if self.state == "probe":
            return self._probed(known)
        if not isinstance(known, Value):
            known = Boolean(known).ir_value()
        gathered = self.carried.gather(values, again=self.carried.adopt(values))
        self.region.close()
        if gathered is None:
            return False
        with Builder.current().inside(self.blocks[0]):
            Builder.current().emit("condition", [known, *gathered])
        self.condition = gathered
        return True

    def _probed(self, known: bool | Value) -> bool:
        self.region.close()
        if not isinstance(known, Value):
            Builder.current().block.ops += self.blocks[0].ops
            self.finished = not known
            return known
        self.reach.check(self.region)
        self.reach.restore()
        names, fresh, touched, objects = self.config
        self.carried = Carried(self.region, names, fresh, self.before, zip(touched, objects, strict=True))
        self.state = "trace"
        return False

    def body(self, *values: Any) -> tuple[Any, ...]:
        if self.state == "probe":
            return values
        self.afters = self.carried.arguments()
        self.blocks[1].args = list(self.afters)
        self.region.open(self.blocks[1])
        return self.carried.spread(self.afters)

    def leave(self, *values: Any) -> tuple[Any, ...]:
        if self.state == "probe":
            return values
        ends = self.carried.gather(values)
        self.region.close()
        if ends is None:
            return values
        self.finished = True
        inits = self.carried.inits()
        replaced = invariants(inits, [self.condition, ends], [self.arguments, self.afters])
        kept = [i for i, argument in enumerate(self.arguments) if argument not in replaced]
        for block, arguments in zip(self.blocks, (self.arguments, self.afters), strict=True):
            substitute(block, replaced)
            block.args = [arguments[i] for i in kept]
        tail = self.blocks[0].ops[-1]
        tail.operands = [tail.operands[0], *(tail.operands[i + 1] for i in kept)]
        builder = Builder.current()
        with builder.inside(self.blocks[1]):
            builder.emit("yield", [replaced.get(ends[i], ends[i]) for i in kept])
        op = builder.emit(
            "while", [inits[i] for i in kept], [self.arguments[i].type for i in kept], regions=self.blocks
        )
        final = list(inits)
        for i, result in zip(kept, op.results, strict=True):
            result.hint, final[i] = self.arguments[i].hint, result
        out = self.carried.spread(final)
        self.carried.settle()
        return out
