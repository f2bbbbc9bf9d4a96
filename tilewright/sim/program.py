"""The flat program: nodes of straight-line closures, each with a control closure at its end, and the live registers of
each node."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from tilewright.ir.core import Op
from tilewright.sim.shared_names import SharedNames

Closure = Callable[[Any, list[Any]], Any]
"""``(group, slots)``: the :class:`~tilewright.sim.group.Group` of warps that runs, and its registers, by number. A step
sets registers; a control closure gives the number of the next node, or one of the following."""
BLOCKED, DONE, PAUSE, SPLIT = -1, -2, -3, -4  # what a control closure answers instead of the next node


class ControlFlow(NamedTuple):
    """What a control step does with registers (slots), for observers: it branches on those in ``decides``, and copies
    the pairs (from, to) in ``moves`` in the active lanes."""

    decides: tuple[int, ...] = ()
    moves: tuple[tuple[int, int], ...] = ()


def flows(
    closure: Closure, decides: Sequence[int] = (), sources: Sequence[int] = (), targets: Sequence[int] = ()
) -> Closure:
    """``closure`` with its :class:`ControlFlow`."""
    moves = tuple(zip(sources, targets, strict=True))
    closure.flow = ControlFlow(tuple(decides), moves)  # type: ignore[attr-defined]  # functions take attributes
    return closure


class Label:
    """A place in the program; ``pc`` is known once the node is there."""

    __slots__ = ("pc",)

    def __init__(self) -> None:
        self.pc = -1


class EnclosingRegion(NamedTuple):
    """A region around the op being lowered. Warps that are inactive under its mask can continue at ``exit`` (there a
    branch sets its own mask, a loop restores that in register ``saved``). ``taken``: the register that is None when no
    warp waits there, or None."""

    exit: Label
    saved: int
    taken: int | None


class BasicBlock:
    """Straight closures ``steps`` (each from the op of the same index in ``ops``), then ``control``, which gives the
    next pc."""

    __slots__ = ("steps", "ops", "control", "op", "uses", "defs", "targets", "fallthrough")

    def __init__(self) -> None:
        self.steps: tuple[Closure, ...] | list[Closure] = []
        self.ops: list[Op] = []
        self.control: Closure = _stop
        self.op: Op | None = None
        self.uses: set[int] = set()
        self.defs: set[int] = set()
        self.targets: list[Label] = []
        self.fallthrough = False

    def note(self, uses: Iterable[int], defs: Iterable[int]) -> None:
        self.uses.update(set(uses) - self.defs)
        self.defs.update(defs)


def nothing(group: Any, slots: list[Any]) -> None:
    """The step of an op that another step executes."""


def _stop(group: Any, slots: list[Any]) -> int:
    return DONE


def stop(op: Op, following: int) -> Closure:
    """A place before ``op`` where the launch may let the group rest, and another go on."""

    def control(group: Any, slots: list[Any]) -> int:
        if group.wave.launch.stops(group, op):
            group.pc = following
            return PAUSE
        return following

    return control


class Program:
    """A lowered function. ``template``: the registers with the constants set; ``kinds``: what each register holds;
    ``exact``: mask registers whose being None means something (two groups merge only if they agree)."""

    def __init__(
        self,
        name: str,
        nodes: list[BasicBlock],
        kinds: list[int],
        template: list[Any],
        exact: set[int],
        params: list[int],
    ) -> None:
        self.name = name
        self.nodes = nodes
        self.code = [(tuple(step for step in n.steps if step is not nothing), n.control) for n in nodes]
        self.kinds = kinds
        self.template = template
        self.params = params
        self.function: Any = None  # that it was lowered from
        self.slots: dict[Any, int] = {}  # the register of each value
        self.facts: Any = None  # what the checks know of it
        self.plans: dict[int, Any] = {}  # by an op's id: how it loads (moves.py)
        self.with_stops: Program | None = None  # as the exploration of schedules runs it
        self.by_lines: Program | None = None  # as the debugger runs it
        self.min_blocks = 1  # that share a multiprocessor, as the launch bounds say
        self._exact = exact
        self._live = _liveness(nodes)

    @functools.cached_property
    def shared_names(self) -> SharedNames:
        """The kernel's names of places in shared memory."""
        return SharedNames(self.function)

    @functools.cached_property
    def cancels(self) -> bool:
        """Whether it cancels clusters of its launch."""
        return any(op.opcode == "call" and op.attrs["atom"].cancels for op in self.function.walk())

    @functools.cache  # noqa: B019 - a program lives as long as its kernel
    def live_at(self, pc: int) -> list[int]:
        """The registers that are read at or after node ``pc`` before they are set (constants excepted)."""
        bits, live = self._live[pc], []
        while bits:
            low = bits & -bits
            slot = low.bit_length() - 1
            if self.template[slot] is None:
                live.append(slot)
            bits ^= low
        return live

    @functools.cache  # noqa: B019 - as above
    def exact_at(self, pc: int) -> list[int]:
        return [slot for slot in self.live_at(pc) if slot in self._exact]


def _liveness(nodes: list[BasicBlock]) -> list[int]:
    """Live-in registers of each node as the bits of an int."""

    def bits(slots: set[int]) -> int:
        return sum(1 << s for s in slots)

    uses, defs = [bits(n.uses) for n in nodes], [bits(n.defs) for n in nodes]
    following = [[t.pc for t in n.targets] + ([i + 1] if n.fallthrough else []) for i, n in enumerate(nodes)]
    live = [0] * len(nodes)
    changed = True
    while changed:
        changed = False
        for i in range(len(nodes) - 1, -1, -1):
            out = 0
            for j in following[i]:
                out |= live[j]
            new = uses[i] | (out & ~defs[i])
            if new != live[i]:
                live[i], changed = new, True
    return live
