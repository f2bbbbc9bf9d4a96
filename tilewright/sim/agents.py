"""Asynchronous effects: each group's queues of committed groups (cp.async and others), landing as late as a wait
allows."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from tilewright.ir.target import WARP
from tilewright.sim.faults import Fault


class Effect:
    """Something that happens later, once, as the lanes and mask of the moment it was issued. ``lane`` issued it (None:
    all that were active); it moves ``size`` bytes, where that is known. ``places``: of the mbarriers at which the
    active lanes arrive by it."""

    __slots__ = ("action", "lane", "size", "places", "lanes", "mask", "op", "done", "notes", "together")

    def __init__(
        self,
        action: Callable[[], None],
        lanes: Any,
        op: Any,
        lane: int | None = None,
        size: int = 0,
        places: np.ndarray | None = None,
    ) -> None:
        self.action = action
        self.lane, self.size, self.places = lane, size, places
        self.lanes = lanes
        self.mask = lanes.mask
        self.op = op
        self.done = False
        self.notes: Any = None  # of an observer
        self.together: list[Effect] = []  # those of its instruction with which it may land, itself among them

    @property
    def issuer(self) -> int:
        """The lane that issued it: the one that says so, or the first of those that were active."""
        if self.lane is not None:
            return self.lane
        return 0 if self.mask is None else int(np.argmax(self.mask))

    def land(self) -> None:
        # Groups that parted share what was issued before: the first of them to wait lands it for all.
        if self.done:
            return
        self.done = True
        self.act(self.action)

    def act(self, action: Callable[[], None]) -> None:
        """Do ``action`` as the lanes that issued this: with their mask, and with faults and events at their op."""
        lanes = self.lanes
        events = lanes.group.events
        before, before_op = lanes.mask, lanes.op
        lanes.mask, lanes.op = self.mask, self.op
        if events is not None:
            events.land(self, True)
        try:
            action()
        except Fault as fault:
            lanes.group.wave.launch.failed = self
            if fault.lanes is None and self.lane is not None:
                fault.lanes = np.arange(lanes.group.warps.size * WARP) == self.lane
            raise lanes.group.wave.launch.error(fault, lanes.group, self.op, self.mask) from None
        finally:
            lanes.mask, lanes.op = before, before_op
            if events is not None:
                events.land(self, False)


def next_to_land(later: list[Effect], one_by_one: bool) -> list[Effect]:
    """Take the next effect, with those that land together with it. Invariant: each of these acts in a block of its own,
    whose memory no other block can see (clusters of one block), and nothing that was issued between them is passed; so
    no thread can see in which order they come."""
    count, together = 1, later[0].together
    if together and not one_by_one:
        while count < len(later) and later[count].together is together:
            count += 1
        kind: Any = type(later[0].action)
        if not kind.may([effect.action for effect in later[:count]]):
            count = 1
    effects = later[:count]
    del later[:count]
    return effects


def land_together(effects: list[Effect]) -> None:
    """Land effects whose actions are of one :class:`~tilewright.ir.joint.JointAction`."""
    kind: Any = type(effects[0].action)
    joint = copy(effects[0])  # observers follow each effect by itself, and what is done for all of them by this one
    joint.act(lambda: kind.before_all([effect.action for effect in effects]))
    landed: list[Any] = []
    try:
        for effect in effects:
            effect.done = True
            action: Any = effect.action
            effect.act(action.alone)
            landed.append(action)
    finally:
        if landed:
            joint.act(lambda: kind.after_all(landed))


class CommitQueues:
    """Per agent: the open list of effects and the committed lists, oldest first."""

    __slots__ = ("open", "committed")

    def __init__(self) -> None:
        self.open: dict[str, list[Effect]] = {}
        self.committed: dict[str, list[list[Effect]]] = {}

    def add(self, agent: str, effect: Effect) -> None:
        self.open.setdefault(agent, []).append(effect)

    def commit(self, agent: str) -> None:
        self.committed.setdefault(agent, []).append(self.open.pop(agent, []))

    def wait(self, agent: str, pending: int) -> None:
        queue = self.committed.get(agent)
        while queue and len(queue) > pending:
            for effect in queue.pop(0):
                effect.land()

    def issued(self, agent: str) -> list[Effect]:
        """All effects that have been handed to ``agent``, oldest first; some may have landed."""
        return [effect for effects in self.committed.get(agent, []) for effect in effects] + self.open.get(agent, [])

    def land_all(self) -> None:
        for agent in list(self.committed):
            self.wait(agent, 0)
        for effects in self.open.values():
            for effect in effects:
                effect.land()
        self.open.clear()

    def copy(self) -> CommitQueues:
        new = CommitQueues()
        new.open = {agent: list(effects) for agent, effects in self.open.items()}
        new.committed = {agent: list(queue) for agent, queue in self.committed.items()}
        return new

    @staticmethod
    def joined(parts: list[CommitQueues]) -> CommitQueues:
        """Waits count from the newest group, so queues of different lengths are aligned there. What several share
        lands once."""
        new = CommitQueues()
        for agent in {a for p in parts for a in p.open}:
            new.open[agent] = [e for p in parts for e in p.open.get(agent, [])]
        for agent in {a for p in parts for a in p.committed}:
            queues = [p.committed.get(agent, []) for p in parts]
            length = max(map(len, queues))
            new.committed[agent] = [
                [e for q in queues if len(q) >= back for e in q[-back]] for back in range(length, 0, -1)
            ]
        return new
