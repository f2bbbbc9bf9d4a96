"""Plans: who goes on at each place where a warp can be stopped, and when asynchronous effects take place.

A place is named by the warp that is there and the number of steps (accesses to memory, synchronisation) that it has
made, an effect by the warp that issued it and its number among those that it issued: so that names keep their meaning
when other parts of a plan are left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

DEEPEST = 4  # changes of priority in one schedule


class SwitchPoint(NamedTuple):
    """Where agent ``agent`` is after ``steps`` of its steps; ``blocked``: it cannot go on there."""

    agent: int
    steps: int
    blocked: bool


class IssuedEffect(NamedTuple):
    """The effect that ``agent`` issued as its ``number``-th."""

    agent: int
    number: int


Able = Callable[[], Sequence[int]]


class SchedulingPolicy:
    """Warps go on until they block, then the next one in order does; effects take place as late as the program
    allows."""

    seed = 0

    def at_stop(self, place: SwitchPoint, able: Able, clock: int, progressed: bool) -> int | None:
        """Who goes on instead of the agent at ``place``; None: itself. ``able()`` gives those who could;
        ``progressed``: that may have changed since the last stop; ``clock`` counts the steps of all."""
        return None

    def at_block(self, place: SwitchPoint, able: Sequence[int]) -> int:
        """Who goes on when the agent at ``place`` cannot."""
        return next_agent(place.agent, able)

    def delay(self, issue: IssuedEffect) -> int | None:
        """After how many steps an effect takes place; None: as late as the program allows."""
        return None


def next_agent(agent: int, able: Sequence[int]) -> int:
    """The next one in order, from the start again behind the last."""
    return min((a for a in able if a > agent), default=min(able))


@dataclass
class FixedPlan(SchedulingPolicy):
    """The switches and delays of a recorded schedule, in addition to those that every plan has."""

    switches: dict[SwitchPoint, int] = field(default_factory=dict)
    delays: dict[IssuedEffect, int] = field(default_factory=dict)

    def at_stop(self, place: SwitchPoint, able: Able, clock: int, progressed: bool) -> int | None:
        return self.switches.get(place)

    def at_block(self, place: SwitchPoint, able: Sequence[int]) -> int:
        agent = self.switches.get(place)
        return agent if agent is not None and agent in able else next_agent(place.agent, able)

    def delay(self, issue: IssuedEffect) -> int | None:
        return self.delays.get(issue)


class RandomPlan(SchedulingPolicy):
    """A plan drawn from a seed.

    Half of them are *priorities* (probabilistic concurrency testing: Burckhardt, Kothari, Musuvathi, Nagarakatte,
    2010): each agent has a random priority, the highest that can goes on, and at up to ``DEEPEST`` random steps the one
    that runs is put last. With d such steps a mistake that needs d + 1 events in a certain order is met with
    probability 1 / (agents * steps ** d) or better. The others are *walks*: at each step another goes on with a small
    probability.
    """

    def __init__(self, seed: int, steps: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.walk = self.random.choice((0.0, 0.0, 0.0, 1 / 4, 1 / 16, 1 / 64))
        changes = min(self.random.randrange(DEEPEST + 1), steps)
        self.changes = set() if self.walk else set(self.random.sample(range(1, steps + 1), changes))
        self.early = self.random.choice((0.0, 0.25, 0.5, 1.0))
        self.longest = self.random.choice((1, 8, 64))
        self.priorities: dict[int, float] = {}
        self.least = 0.0

    def at_stop(self, place: SwitchPoint, able: Able, clock: int, progressed: bool) -> int | None:
        if self.walk:
            if self.random.random() >= self.walk:
                return None
            others = [a for a in able() if a != place.agent]
            return self.random.choice(others) if others else None
        changed = clock in self.changes
        if changed:
            self.least -= 1.0
            self.priorities[place.agent] = self.least
        # The one that runs has the highest priority of those able; that changes only by these.
        if not (changed or progressed):
            return None
        best = self._best({*able(), place.agent})
        return best if best != place.agent else None

    def at_block(self, place: SwitchPoint, able: Sequence[int]) -> int:
        return self.random.choice(able) if self.walk else self._best(set(able))

    def delay(self, issue: IssuedEffect) -> int | None:
        return None if self.random.random() >= self.early else self.random.randrange(self.longest)

    def _best(self, agents: set[int]) -> int:
        for agent in sorted(agents - self.priorities.keys()):
            self.priorities[agent] = self.random.random()
        return max(sorted(agents), key=lambda a: self.priorities[a])
