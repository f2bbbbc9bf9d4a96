"""Systematic exploration: every order of a launch's synchronisation operations that can matter.

Only synchronisation (barriers, mbarriers, atomics, ordered loads and stores, the arrival of copies that complete an
mbarrier) is put in other orders. That is enough: as long as the checks find no data race in any of these runs, all
other accesses are ordered by it, so that their order cannot matter; and a data race ends the exploration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.errors import ArgumentError
from tilewright.ir.core import Op
from tilewright.ir.target import WARP
from tilewright.sim.agents import Effect
from tilewright.sim.exploration.footprint import Footprint, Footprints, clash, touches_meeting_place
from tilewright.sim.exploration.launch import PolicyLaunch
from tilewright.sim.exploration.orders import Agent, OrderSearch, RedundantOrder
from tilewright.sim.exploration.plan import IssuedEffect, SchedulingPolicy, SwitchPoint
from tilewright.sim.exploration.shrunk import shrunk
from tilewright.sim.group import Group
from tilewright.sim.lowering import lower
from tilewright.sim.wave import Wave

if TYPE_CHECKING:
    from tilewright.sim.exploration.runs import ExplorationResult, LaunchRuns


MOST_WARPS = 256


def every_order(runs: LaunchRuns, explored: ExplorationResult, limit: int) -> None:
    """Run the launch of ``runs`` in every order, at most ``limit`` times, and write down what that gave."""
    config = runs.replay.config
    warps = math.prod(config.grid) * -(-math.prod(config.block) // WARP)
    if warps > MOST_WARPS:
        raise ArgumentError(
            f"kernel {explored.kernel!r} is launched with {warps} warps; a systematic exploration takes {MOST_WARPS} "
            "at most: launch it on a smaller problem, or draw schedules"
        )
    orders = OrderSearch()
    program = lower(runs.replay.kernel.program.function, stops=touches_meeting_place)
    redundant = 0
    while True:
        watch = Footprints()
        orders.start()
        try:
            failure = runs.run(_maker(orders, watch), [watch], program)
            explored.schedules += 1
        except RedundantOrder:
            failure, redundant = None, redundant + 1
        explored.steps = max(explored.steps, orders.depth)
        if failure is not None:
            planned = runs.planned
            failure.order = explored.schedules
            failure.switches, failure.delays = planned.switches, planned.delays
            explored.failure = shrunk(runs, failure, program)
            return
        if not orders.advance():
            explored.complete = True
            explored.claim = _claim(runs, explored)
            return
        if explored.schedules + redundant >= limit:
            explored.claim = (
                f"no failing schedule among {explored.schedules} (up to {explored.steps} steps each); not all orders "
                f"have been run: the limit is {limit}"
            )
            return


def _claim(runs: LaunchRuns, explored: ExplorationResult) -> str:
    planned = runs.planned
    copies = len(planned.copies) if isinstance(planned, OrderedLaunch) else 0
    who = f"{len(planned.keys)} warps{f' and {copies} copies' if copies else ''}"
    return (
        f"every order of the synchronisation of its {who} that can matter has been run ({explored.schedules} schedules "
        f"of up to {explored.steps} steps): no deadlock, no finding{', the same result' if runs.compare else ''}. This "
        "holds for this configuration and these arguments, with the lanes of a warp acting together"
    )


def _maker(orders: OrderSearch, watch: Footprints) -> Callable[..., PolicyLaunch]:
    return lambda *arguments: OrderedLaunch(*arguments, orders=orders, watch=watch)


class OrderedLaunch(PolicyLaunch):
    """A launch whose every step is chosen by ``orders``. A step is what a warp does from one meeting place to the next,
    or the arrival of a copy."""

    most = 1 << 30  # each warp is an agent, however many there are

    def __init__(self, *arguments: Any, orders: OrderSearch, watch: Footprints) -> None:
        super().__init__(*arguments, plan=SchedulingPolicy())
        self.orders = orders
        self.watch = watch
        self.names_of: dict[Effect, tuple[Agent, int]] = {}
        self.copies: dict[Agent, Effect] = {}
        self.last: dict[Agent, Footprint] = {}
        self.running: Agent | None = None

    def sets(self, wave: Wave, warps: np.ndarray) -> list[np.ndarray]:
        first = len(self.keys)
        parts = super().sets(wave, warps)
        # Blocks of a later wave are resident only when those before have ended.
        if self.running is not None:
            for number in range(first, len(self.keys)):
                self.orders.born((number, -1), after_all=True)
        return parts

    def _pick(self) -> Group | None:
        """The group that goes on. Copies are agents as well: theirs is a step of one effect, made here."""
        while True:
            self._ended()
            groups = {(self.agent(g), -1): g for g in self._able()}
            pending = {a: e for a, e in self.copies.items() if not e.done}
            enabled = sorted([*groups, *pending])
            if not enabled:
                return None
            chosen = self.orders.choose(enabled, self.running)
            self.running = chosen
            if chosen in groups:
                self._noted(chosen[0], [agent for agent, _ in groups])
                self.current = self.keys[chosen[0]]
                self._resume(groups[chosen])
                return groups[chosen]
            effect, (agent, issued) = pending[chosen], self.names_of[pending[chosen]]
            self.delays[IssuedEffect(*agent)] = (max(0, self.clock - issued), effect.op)
            effect.land()

    def _noted(self, chosen: int, able: list[int]) -> None:
        """Write a switch down in the words of a plan."""
        if self.current is None:
            place = SwitchPoint(len(self.keys) - 1, 0, True)
        else:
            before = self.numbers[self.current]
            place = SwitchPoint(before, self.steps[before], before not in able)
        if chosen != (SchedulingPolicy().at_block(place, sorted(able)) if place.blocked else place.agent):
            self._note(place, chosen)

    def _ended(self) -> None:
        """End the current step: record what it did, and resume the loops that wait for such effects."""
        while self.later:
            effect = self.later.pop(0)
            agent, _ = self.names_of[effect]
            self.copies[agent] = effect
            self.orders.born(agent, after_all=False)
        footprint = self.watch.taken()
        if self.running is None:
            return
        self.orders.stepped(footprint)
        self.last[self.running] = footprint
        for group in self.groups:
            name = (self.agent(group), -1)
            # A loop that spins is run again only when something that it reads has changed.
            if group.yielded and name != self.running and clash(self.last.get(name, {}), footprint):
                group.yielded = False

    def stops(self, group: Group, op: Op) -> bool:
        agent = self.agent(group)
        self.steps[agent] += 1
        self.at[agent] = op
        self.clock += 1
        return True

    def issue(self, group: Group, effect: Effect) -> None:
        agent = self.agent(group)
        number = self.issued.get(agent, 0)
        self.issued[agent] = number + 1
        self.names_of[effect] = ((agent, number), self.clock)
