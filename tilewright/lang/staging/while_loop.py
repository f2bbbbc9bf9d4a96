"""``while`` statements."""

from __future__ import annotations

from typing import Any

from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Value
from tilewright.lang.numbers.numeric import Boolean
from tilewright.lang.staging.builder import depth
from tilewright.lang.staging.location import fail, here
from tilewright.lang.staging.loop_values import LoopValues
from tilewright.lang.staging.region_state import RegionState
from tilewright.lang.staging.regions import Region, decide

ENDLESS = 1 << 14
"""Turns after which a loop of Python's is taken for an endless one."""


class While:
    """One execution of a ``while`` statement by the rewritten code, ``x`` and ``y`` being the variables it assigns::

        loop = While(("x", "y"), temporaries, touched, objects)
        while loop.more():
            x, y = loop.enter((x, y))
            if loop.test(condition, (x, y)):
                x, y = loop.body((x, y))
                ...
                x, y = loop.leave((x, y))

    The condition is first evaluated aside. Known now, the loop runs as Python's does; at run time the ops of that
    evaluation are thrown away and the loop is traced, the condition in its own block.
    """

    __slots__ = (
        "afters",
        "arguments",
        "blocks",
        "condition",
        "config",
        "finished",
        "level",
        "region",
        "start",
        "turns",
        "values",
    )

    def __init__(
        self, names: tuple[str, ...], temporaries: tuple[str, ...], touched: tuple[str, ...], objects: tuple[Any, ...]
    ) -> None:
        self.level = depth()
        self.config = (names, temporaries, touched, objects)
        self.region = Region("while loop", here(2))
        self.values: LoopValues | None = None  # made when the condition turns out to be a run-time value
        self.finished = False
        self.turns = 0

    def more(self) -> bool:
        self.turns += not self.finished
        if self.turns > ENDLESS:
            raise fail(
                f"the {self.region} has run {ENDLESS} iterations while staging: its condition never "
                "becomes False; a loop that ends by a run-time value is written `while n < limit:`"
            )
        return not self.finished

    def enter(self, variables: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.values is None:
            names, _, touched, objects = self.config
            self.start = RegionState(names, variables, touched, objects)
            self.blocks = [Block()]
            self.region.open(self.blocks[0])
            return variables
        self.arguments = self.values.arguments()
        self.blocks = [Block(list(self.arguments)), Block()]
        self.region.open(self.blocks[0])
        return self.values.spread(self.arguments)

    def test(self, condition: Any, variables: tuple[Any, ...]) -> bool:
        decided = decide(condition)
        if self.values is None:
            return self._probed(decided, variables)
        gathered = self.values.gather(variables)
        self.region.close(keep=gathered is not None)
        if gathered is None:
            return False
        test = decided if isinstance(decided, Value) else Boolean(decided).ir_value()
        self.condition = ("condition", [test], gathered)
        return True

    def _probed(self, decided: bool | Value, variables: tuple[Any, ...]) -> bool:
        self.region.close(keep=not isinstance(decided, Value))
        # Known now: what the condition emitted is part of the program, and Python's loop goes on. At run time it was a
        # probe: its ops are dropped, what it changed is put back, and the loop is traced.
        if not isinstance(decided, Value):
            Builder.current().block.ops += self.blocks[0].ops
            self.finished = not decided
            return decided
        self.start.now(variables, self.region)
        self.start.restore()
        self.values = LoopValues(self.region, self.start, self.config[1])
        return False

    def body(self, variables: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.values is None:
            return variables
        self.afters = self.values.arguments()
        self.blocks[1].args = list(self.afters)
        before = self.region.before
        self.region.open(self.blocks[1])
        self.region.before = before  # a trace that is thrown away began with the condition
        return self.values.spread(self.afters)

    def leave(self, variables: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.values is None:
            return variables
        ends = self.values.gather(variables)
        self.region.close(keep=ends is not None)
        if ends is None:
            return variables
        self.finished = True
        arguments = [self.arguments, self.afters]
        return self.values.close("while", (), self.blocks, arguments, [self.condition, ("yield", [], ends)])
