"""A launch whose schedule is a plan's: every warp is an agent of its own, and can be stopped before each access to
memory and each synchronisation."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.atoms.tensor_memory import LOAD, STORE
from tilewright.atoms.tma_engine import WRITES
from tilewright.ir.core import Op
from tilewright.sim.agents import Effect
from tilewright.sim.engine import Launch
from tilewright.sim.events import Observer
from tilewright.sim.exploration.plan import IssuedEffect, SchedulingPolicy, SwitchPoint
from tilewright.sim.group import Group
from tilewright.sim.lowering import lower
from tilewright.sim.program import Program
from tilewright.sim.wave import Wave


def visible(op: Op) -> bool:
    """Whether other threads can tell when ``op`` is executed."""
    if op.opcode in ("load", "store"):
        return True
    if op.opcode != "call":
        return False
    atom = op.attrs["atom"]
    return bool(atom.blocking or atom.orders or any(a.memories for a in atom.accesses))


def with_stops(program: Program) -> Program:
    """The same kernel lowered with a stop before each visible op."""
    if program.with_stops is None:
        program.with_stops = lower(program.function, stops=visible)
    return program.with_stops


@dataclass(frozen=True)
class Switch:
    """At ``place`` agent ``to`` went on instead. ``before``: the op that the agent of the place is at; ``next_op``:
    the one that the other goes on with."""

    place: SwitchPoint
    to: int
    before: Op | None
    next_op: Op | None


class PolicyLaunch(Launch):
    """``switches`` and ``delays`` are its deviations from :class:`SchedulingPolicy`."""

    looks_on = False
    most = 64  # agents; in larger launches several warps are one

    def __init__(self, *arguments: Any, plan: SchedulingPolicy) -> None:
        """``arguments``: of :class:`Launch`. ``numbers``, ``keys``, ``names``: agents as (wave, tag) and as warps."""
        super().__init__(*arguments)
        self.plan = plan
        self.switches: list[Switch] = []
        self.delays: dict[IssuedEffect, tuple[int, Op]] = {}
        self.numbers: dict[tuple[int, int], int] = {}
        self.keys: list[tuple[int, int]] = []
        self.names: list[tuple[Wave, np.ndarray]] = []
        self.steps: list[int] = []
        self.at: list[Op | None] = []
        self.clock = 0
        self.requested: int | None = None
        self.progressed = False
        self.issued: dict[int, int] = {}
        self.due: list[tuple[int, int, Effect]] = []
        self.in_order: dict[tuple[int, str], list[Effect]] = {}  # by agent and kind

    # -- agents --------------------------------------------------------------------------------------------------------

    def sets(self, wave: Wave, warps: np.ndarray) -> list[np.ndarray]:
        parts = [np.array([warp]) for warp in warps]
        if len(parts) > self.most:
            # Which warps share an agent is drawn too, so that over many schedules all pairs are separated.
            shuffled = list(warps)
            random.Random(self.plan.seed).shuffle(shuffled)
            parts = [np.sort(np.array(shuffled[k :: self.most])) for k in range(self.most)]
        for tag, part in enumerate(parts):
            key = (id(wave), tag)
            self.numbers[key] = len(self.keys)
            self.keys.append(key)
            self.names.append((wave, part))
            self.steps.append(0)
            self.at.append(None)
        return parts

    def agent(self, group: Group) -> int:
        return self.numbers[id(group.wave), group.tag]

    def who(self, agent: int) -> str:
        """An agent in words."""
        wave, warps = self.names[agent]
        per_block = self.geometry.warps
        block = tuple(int(v) for v in wave.coords[int(warps[0]) // per_block])
        first = f"warp {int(warps[0]) % per_block} of block {block}"
        return first if warps.size == 1 else f"{first} and {warps.size - 1} other warps"

    # -- the schedule --------------------------------------------------------------------------------------------------

    def _able(self) -> list[Group]:
        # A wait ends when its warp has its turn, not before: another may have completed the next phase in the meantime.
        return [g for g in self.groups if not g.yielded and (g.wait is None or g.wait.ready().all())]

    def _able_agents(self) -> list[int]:
        return sorted({self.agent(g) for g in self._able()})

    def _next(self, keys: list[tuple[int, int]]) -> tuple[int, int]:
        able = sorted(self.numbers[key] for key in keys)
        requested, self.requested = self.requested, None
        if self.current is None:  # the first turn: as if the last agent had just blocked
            place = SwitchPoint(len(self.keys) - 1, 0, True)
        elif requested is not None and requested in able:
            return self.keys[requested]
        elif self.current in keys:
            return self.current
        else:
            agent = self.numbers[self.current]
            # It has blocked or ended: the plan has to name another.
            place = SwitchPoint(agent, self.steps[agent], True)
        chosen = self.plan.at_block(place, able)
        # Only deviations from the plain order are written down: what shrinking takes away are these.
        if chosen != SchedulingPolicy().at_block(place, able):
            self._note(place, chosen)
        return self.keys[chosen]

    def stops(self, group: Group, op: Op) -> bool:
        agent = self.agent(group)
        self.steps[agent] += 1
        self.at[agent] = op
        self.clock += 1
        self._land_due()
        place = SwitchPoint(agent, self.steps[agent], False)
        # Only calls (synchronisation, atomics) can end a wait: after other ops the same agents are able as before.
        progressed, self.progressed = self.progressed, op.opcode == "call"
        next_agent = self.plan.at_stop(place, self._able_agents, self.clock, progressed)
        # A recorded switch may name an agent that is blocked once others have been left out: it has no effect.
        if next_agent is None or next_agent == agent or next_agent not in self._able_agents():
            return False
        self.requested = next_agent
        self._note(place, next_agent)
        return True

    def _note(self, place: SwitchPoint, to: int) -> None:
        self.switches.append(Switch(place, to, self.at[place.agent], self.at[to]))

    # -- asynchronous effects ------------------------------------------------------------------------------------------

    def issue(self, group: Group, effect: Effect) -> None:
        agent = self.agent(group)
        issue = IssuedEffect(agent, self.issued.get(agent, 0))
        self.issued[agent] = issue.number + 1
        if effect.op.attrs["atom"].in_flight and not effect.op.attrs["atom"].copies:
            return  # it acts on its own account, when its warps wait
        if _lands_in_order(effect):
            self.in_order.setdefault((agent, effect.op.attrs["atom"].name.split(".")[0]), []).append(effect)
        delay = self.plan.delay(issue)
        if delay is not None:
            self.delays[issue] = (delay, effect.op)
            heapq.heappush(self.due, (self.clock + delay, len(self.delays), effect))

    def _land_due(self) -> None:
        while self.due and self.due[0][0] < self.clock:
            effect = heapq.heappop(self.due)[2]
            key = self.agent(effect.lanes.group), effect.op.attrs["atom"].name.split(".")[0]
            earlier = self.in_order.get(key, [])
            while effect in earlier:
                earlier.pop(0).land()
            effect.land()


def _lands_in_order(effect: Effect) -> bool:
    """Whether effects of this kind that one thread issues happen in order: bulk stores (each reads shared memory before
    it writes global memory), and all that the tensor core's unit of ``tcgen05`` does."""
    atom = effect.op.attrs["atom"]
    return WRITES in atom.agents or (atom.name.startswith("tcgen05.") and atom.name not in (LOAD, STORE))


class IssueObserver(Observer):
    """Tells a planned launch of the effects that are issued."""

    def begin(self, launch: Launch) -> None:
        assert isinstance(launch, PolicyLaunch)
        self.launch = launch

    def issue(self, group: Group, effect: Effect) -> None:
        self.launch.issue(group, effect)
