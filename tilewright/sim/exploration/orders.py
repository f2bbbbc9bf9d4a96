"""Dynamic partial-order reduction: of all orders of the steps of a launch, those that can differ in effect.

The algorithm is *source sets with sleep sets* (Abdulla, Aronis, Jonsson, Sagonas: Optimal dynamic partial order
reduction, 2014). A launch cannot be taken back, so each order is run from the start: the states on the way are the
nodes of a stack, and after a run each race in it (two steps that might have come in the other order) asks the node
before its first step to try an agent that leads there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.sim.exploration.footprint import APART, RACE, Footprint, clash, strongest_relation

Agent = tuple[int, int]
"""A warp ``(number, -1)``, or an asynchronous copy ``(warp that issued it, number of its copies)``."""


class RedundantOrder(Exception):
    """Whatever goes on from here has been run in another order."""


@dataclass
class SearchState:
    """A state on the way of the present run, and what has been tried there."""

    enabled: list[Agent]
    sleep: dict[Agent, Footprint]
    chosen: Agent
    footprint: Footprint = field(default_factory=dict)
    wanted: set[Agent] = field(default_factory=set)
    tried: dict[Agent, Footprint] = field(default_factory=dict)


class OrderSearch:
    """``begins`` maps an agent to the number of steps that were over when it came to be (a copy: was issued)."""

    def __init__(self) -> None:
        self.stack: list[SearchState] = []
        self.depth = 0
        self.begins: dict[Agent, tuple[int, bool]] = {}

    # -- one run -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.depth = 0
        self.begins = {}

    def born(self, agent: Agent, after_all: bool) -> None:
        """``agent`` begins to exist in the current step. ``after_all``: because all steps so far are over (a wave of
        blocks); else because of that step."""
        self.begins[agent] = (self.depth - 1, after_all)

    def choose(self, enabled: Sequence[Agent], current: Agent | None) -> Agent:
        """Whose step is next; :class:`RedundantOrder` where any would repeat what has been run."""
        if self.depth < len(self.stack):
            node = self.stack[self.depth]
        else:
            # A new state: the agent that runs goes on if it may, so that counterexamples have few switches.
            sleep = self._inherited()
            awake = [a for a in enabled if a not in sleep]
            if not awake:
                raise RedundantOrder
            chosen = current if current in awake else min(awake)
            node = SearchState(list(enabled), sleep, chosen, wanted={chosen})
            self.stack.append(node)
        self.depth += 1
        return node.chosen

    def stepped(self, footprint: Footprint) -> None:
        """The footprint of the step chosen last."""
        if self.depth:
            self.stack[self.depth - 1].footprint = footprint

    def _inherited(self) -> dict[Agent, Footprint]:
        if not self.stack:
            return {}
        parent = self.stack[-1]
        # Orders that begin with what the parent has tried have been run: it stays in the sleep set until a step
        # depends on it.
        asleep = {**parent.sleep, **parent.tried}
        return {a: f for a, f in asleep.items() if a != parent.chosen and not clash(f, parent.footprint)}

    # -- between runs --------------------------------------------------------------------------------------------------

    def advance(self) -> bool:
        """Take up the next order; False when all have been run."""
        self._races()
        while self.stack:
            node = self.stack[-1]
            # Depth first: the deepest state with an agent left to try is where the next run leaves the last one.
            node.tried[node.chosen] = node.footprint
            untried = sorted(node.wanted - node.tried.keys() - node.sleep.keys())
            if untried:
                node.chosen, node.footprint = untried[0], {}
                return True
            self.stack.pop()
        return False

    def _races(self) -> None:
        """Find the races of the run that has ended: steps that clash and are not ordered by steps in between."""
        before: list[int] = []  # for each step the steps that happen before it, as bits
        last: dict[Agent, int] = {}
        by_place: dict[object, list[int]] = {}
        for j, node in enumerate(self.stack):
            direct = 0
            # A copy happens after the step that issued it, a wave of blocks after all steps of the wave before.
            begin, after_all = self.begins.get(node.chosen, (-1, False))
            if begin >= 0:
                direct |= (1 << (begin + 1)) - 1 if after_all else 1 << begin
            own = last.get(node.chosen)
            if own is not None:
                direct |= 1 << own
            met = sorted({i for place in node.footprint for i in by_place.get(place, ())}, reverse=True)
            past = direct
            for i in _bits(direct):
                past |= before[i]
            racing = []
            for i in met:  # the latest first: an access ordered before a later one is not a separate race
                kind = strongest_relation(self.stack[i].footprint, node.footprint)
                if kind == APART:
                    continue
                if kind == RACE and not past >> i & 1:
                    racing.append(i)
                past |= before[i] | 1 << i
            before.append(past)
            last[node.chosen] = j
            for place in node.footprint:
                by_place.setdefault(place, []).append(j)
            for i in racing:
                self._reverse(i, j, before)

    def _reverse(self, i: int, j: int, before: list[int]) -> None:
        """Make the node before step ``i`` try an agent from which step ``j`` is reached without ``i``."""
        seen, mask, initials = set(), 0, []
        # The steps in between that do not depend on step i can be run without it, and then j. Any agent whose first
        # step among them depends on none of the others may begin ("initials"); one that is wanted already suffices.
        for k in [k for k in range(i + 1, j) if not before[k] >> i & 1] + [j]:
            agent = self.stack[k].chosen
            if agent not in seen and not (before[k] & mask):
                initials.append(agent)
            seen.add(agent)
            mask |= 1 << k
        node = self.stack[i]
        if not node.wanted & set(initials):
            # Not enabled there: its step depends on something that the footprints do not show; then all are tried.
            possible = [a for a in initials if a in node.enabled]
            node.wanted |= {possible[0]} if possible else set(node.enabled)


def _bits(mask: int) -> list[int]:
    bits = []
    while mask:
        low = mask & -mask
        bits.append(low.bit_length() - 1)
        mask ^= low
    return bits
