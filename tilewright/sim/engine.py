"""The engine: runs groups of warps until they block, split or end, and chooses the next group.

A simulator in Python is fast only while one step acts on many threads. So the engine keeps warps in one group as long
as the program allows it, and splits a group only where the warps of a GPU would diverge.

A *tag* names a set of warps that began together. Groups of one tag run in turns, the group that is furthest behind in
the program first, so that groups that split meet and merge again. Tags run one after another, each until it blocks, in
an order drawn from the seed. So other warps see all or nothing of what a warp does between two barriers.

Read on in ``Launch.run``: ``_pick`` chooses a group, ``_turn`` runs it, ``_unblock`` acts when no group can go on.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import numpy as np

from tilewright.errors import SimulationError, TilewrightError
from tilewright.ir.core import Op
from tilewright.ir.runtime import LaunchConfig
from tilewright.sim import hangs, messages
from tilewright.sim.aftermath import concerns_mbarriers, look_on
from tilewright.sim.agents import Effect, land_together, next_to_land
from tilewright.sim.events import Events, Observer, RunAgain
from tilewright.sim.faults import Fault
from tilewright.sim.geometry import Geometry
from tilewright.sim.group import Group, SplitSide, merge, mergeable
from tilewright.sim.memory import AddressSpace
from tilewright.sim.pending_blocks import PendingBlocks
from tilewright.sim.program import BLOCKED, DONE, SPLIT, Program
from tilewright.sim.settings import SimulatorOptions
from tilewright.sim.shared import SharedBuffer
from tilewright.sim.wave import TAGS, Wave

# A hang is distinguished from slow progress by counting *rounds*: in a round every spinning group has had a turn. A few
# rounds suffice if nothing changed at all (a round may cause an effect that only the next one sees). If loops count
# their own iterations (a back-off, a time-out), rounds are never equal, and only their number is an indication.
STILL = 16  # rounds in which every loop runs an iteration without a change before the launch counts as hung
STUCK = 4000  # rounds in which every loop only reads memory, but changes its own values
LOOPS = ("for", "while")
_NUMBERS = itertools.count(1)  # of launches, %gridid
ADMIT = 4  # such rounds before blocks beyond the lane budget are started


class Launch:
    """One launch of a program: its waves, its groups and the schedule. ``looks_on``: whether the checks see what the
    other groups would have done when a launch ends with an error (:mod:`.aftermath`)."""

    looks_on = True

    def __init__(
        self,
        program: Program,
        config: LaunchConfig,
        smem: int,
        integers: list[tuple[int, int]],
        space: AddressSpace,
        arguments: list[Any],
        options: SimulatorOptions,
        events: Events | None = None,
    ) -> None:
        self.program, self.config = program, config
        self.geometry: Geometry = Geometry(config)
        self.smem: int = smem
        self.number: int = next(_NUMBERS)
        self.integers = integers
        self.space = space
        self.options = options
        self.events = events
        self.slots = program.template.copy()
        for slot, value in zip(program.params, arguments, strict=True):
            self.slots[slot] = value
        self.groups: list[Group] = []
        self.later: list[Effect] = []
        self.memories: WeakSet[SharedBuffer] = WeakSet()  # of the waves
        self.waves = PendingBlocks(self.geometry, options.lanes, program.cancels)
        self.choice = random.Random(options.seed)
        self.current: tuple[int, int] | None = None
        self.holds_back = False  # whether one cluster of each wave goes on only when no other can (checks ask for it)
        self.held_back: set[tuple[int, int]] = set()  # (wave, tag)
        self.failed: Effect | None = None  # that could not land
        self.asked = False  # whether spinning groups have had a turn since another group changed something
        self.idle = 0
        self.epoch = 0  # grows whenever a group makes progress (progress.py)
        self.started = 0
        self.turns = 0
        self.ended = 0
        self.execute = self._loop()

    def _loop(self) -> Callable[..., int]:
        """The cheapest of the innermost loops that reports all events to which observers listen."""
        self.reports_ops = False
        if self.events is None:
            return self._run
        listened = self.events.listened
        if "executed" in listened or "flow" in listened:
            self.reports_ops = True
            return self._run_reporting_ops
        return self._run_reporting_nodes if "entered" in listened or self.events.sleeps else self._run

    def sleep(self, observer: Observer) -> None:
        """Stop reporting the events in ``observer.asleep`` to it for now, unless other observers listen for every op
        anyway."""
        assert self.events is not None
        self.events.dismiss([])
        self.execute = self._loop()
        if self.execute == self._run_reporting_ops:
            self.wake(observer)

    def wake(self, observer: Observer) -> None:
        """Report every op to ``observer``, from the next node at the latest; from the op that is being executed if the
        observer raises :class:`RunAgain`."""
        assert self.events is not None
        self.events.wake(observer)
        self.execute = self._loop()

    # -- the schedule --------------------------------------------------------------------------------------------------

    def run(self) -> None:
        if self.events is not None:
            self.events.begin(self)
            self.execute = self._loop()  # checks that this kernel does not need have removed themselves
        group: Group | None = None
        try:
            with np.errstate(all="ignore"):  # a GPU's arithmetic raises nothing; inactive lanes may hold any value
                while True:
                    group = self._pick()
                    if group is not None:
                        self._turn(group)
                    elif not self._unblock():
                        break
        except SimulationError as error:
            if self.events is not None:
                if self.looks_on and (self.failed is not None or concerns_mbarriers(error.op)):
                    look_on(self, group)
                self.events.error(self, error)
            raise
        if self.events is not None:
            self.events.end(self)
            self.events.dismiss(self.events.observers)
        # Groups are freed by Python's garbage collector, as they are in reference cycles. Free large arrays now.
        for memory in self.memories:
            memory.free()

    def note_progress(self) -> None:
        """Something has happened that a loop elsewhere may wait for: count the rounds towards a hang from 0 again."""
        self.idle = 0

    def _pick(self) -> Group | None:
        # A group goes on when all its warps can. Splitting it as soon as some can would leave groups of single warps
        # after each barrier; it is split only when no other group can go on (``_unblock``).
        able = self._able()
        if self.held_back and able and not self.asked and self._only_held_back(able):
            able = self._able()
        if not able:
            return None
        keys = sorted({(id(g.wave), g.tag) for g in able}, key=lambda k: k[1])
        self.current = self._next(keys)
        # The group with the least pc goes first. Nodes are numbered in program order, so it reaches the groups ahead of
        # it, which wait at a join or behind a loop, and merges with them. Groups at one pc merge unless one of them is
        # in a branch with all its lanes and the other under a mask.
        mine = [g for g in able if (id(g.wave), g.tag) == self.current]
        first = min(mine, key=lambda g: g.pc)
        level = [g for g in mine if g.pc == first.pc and (g is first or mergeable(first, g))]
        for group in level:
            self._resume(group)
        if len(level) == 1:
            return first
        merged = merge(level)
        self._replace(level, [merged])
        for group in level:
            group.retire()
        return merged

    def _only_held_back(self, able: list[Group]) -> bool:
        """Whether only held-back groups could go on while others spin. The spinning groups then get a turn first."""
        spinning = [g for g in self.groups if g.yielded]
        if not spinning or not all((id(g.wave), g.tag) in self.held_back for g in able):
            return False
        for group in spinning:
            group.yielded = False
        self.asked = True
        return True

    def _able(self) -> list[Group]:
        """The groups that can go on."""
        # Waits are polled: a waiting group is not notified when its barrier completes. There are few waits, and a table
        # of which group resumes which would have to be updated at every split and merge of groups.
        for group in self.groups:
            if group.wait is not None and group.wait.ready().all():
                self._resume(group)
        return [g for g in self.groups if g.wait is None and not g.yielded]

    def _resume(self, group: Group) -> None:
        """End the wait of a group, if it has one."""
        wait, group.wait = group.wait, None
        if wait is not None and self.events is not None:
            self.events.resumes(group, wait)

    def _next(self, keys: list[tuple[int, int]]) -> tuple[int, int]:
        """The (wave, tag) that runs next, of the ``keys`` that can."""
        # A tag runs until it blocks. Each change costs a pass over all groups, and long turns show missing barriers
        # best (others see all or nothing of what was done before one).
        keys = [key for key in keys if key not in self.held_back] or keys
        if self.current in keys:
            return self.current
        # In its first turns the tag of warp 0 runs last: that warp often prepares data for which the others must wait.
        self.turns += 1
        return keys[-1] if self.turns <= TAGS else self.choice.choice(keys)

    def sets(self, wave: Wave, warps: np.ndarray) -> list[np.ndarray]:
        """The sets of warps that begin as one group each, with a tag of its own."""
        return wave.partition(warps, self.choice)

    def stops(self, group: Group, op: Op) -> bool:
        """Whether a group stops before ``op``; called only by programs that are lowered with stops."""
        return False

    def _unblock(self) -> bool:
        """Called when no group can go on as a whole. Let an asynchronous effect land, or split a group some of whose
        warps can go on. False: the launch is complete."""
        # 1. Effects that no wait forces (TMA) land, as late as possible: a program that reads without a wait reads
        # stale bytes. 2. A group is split if only some of its warps can go on. 3. Loops that ran an iteration without a
        # change get another turn. 4. Otherwise it is a deadlock, or the end of the wave.
        if self.later:
            # One at a time (or one instruction's, of several blocks): groups that can go on after this one do so before
            # the next one lands, as on a GPU.
            self._land_next()
            self.idle = 0
            return True
        for group in self.groups:
            if group.wait is not None:
                ready = group.wait.ready()
                if ready.any():  # split one group only: the other groups may wait for its warps
                    sides = [SplitSide(np.flatnonzero(ready), group.pc), SplitSide(np.flatnonzero(~ready), group.pc)]
                    self._replace([group], self._parted(group, sides))
                    group.retire()
                    return True
        spinning = [g for g in self.groups if g.yielded]
        if spinning:
            self.idle += 1
            still = all(g.still for g in spinning)  # read before their next iteration
            for group in spinning:
                group.yielded = False
            # Spinning groups may wait for a block that has not begun: start blocks beyond the lane budget first. It is
            # a hang only if no block is left.
            if (still or self.idle > ADMIT) and self._admit():
                self.idle = 0
            elif self.idle > (STILL if still else self._bound(spinning)):
                raise SimulationError(hangs.hang_text(self, spinning), None, *hangs.waiting_ops(spinning))
            return True
        if self.groups:
            raise SimulationError(hangs.deadlock_text(self), None, *hangs.waiting_ops(self.groups))
        return self._start_wave()

    def _land_next(self) -> None:
        """Land the next effect, and those that land together with it."""
        effects = next_to_land(self.later, self.events is not None and self.events.each_landing)
        try:
            if len(effects) == 1:
                effects[0].land()
            else:
                land_together(effects)
        except SimulationError:
            self.failed = self.failed or effects[0]
            self.later[:0] = [effect for effect in effects if not effect.done]
            raise

    @staticmethod
    def _bound(spinning: list[Group]) -> float:
        """The number of rounds, in which values change but nothing else happens, after which it counts as a hang."""
        return STUCK if all(g.still or (g.spin.quiet and g.spin.reads) for g in spinning) else float("inf")

    def bounded(self, group: Group) -> None:
        """Raise if a group exceeds the bound on iterations of loops that change something."""
        if group.spins > self.options.turns:
            raise SimulationError(hangs.endless_loop_text(self, group), None, *hangs.waiting_ops([group]))

    def waits(self, group: Group, iterations: int) -> None:
        """Called when a group has used up its iterations of a loop whose condition has not changed in the meantime."""
        # A pending effect, or a block that has not begun, may still change it.
        if self.later:
            self._land_next()
        elif not self._admit():
            raise SimulationError(hangs.waits(self, group, iterations), None, *hangs.waiting_ops([group]))
        self.epoch += 1

    def _admit(self) -> bool:
        """Start as many waves as have been started before, so that a wait for the last block takes few rounds."""
        return any([self._start_wave() for _ in range(max(1, self.started))])

    def _start_wave(self) -> bool:
        coords = next(self.waves, None)
        if coords is None:
            return False
        self.started += 1
        self.epoch += 1
        wave = Wave(self, coords)
        if self.events is not None:
            self.events.wave(wave)
        self.memories.add(wave.shared)
        self.groups += wave.start(self.slots)
        return True

    @staticmethod
    def _parted(group: Group, parts: list[SplitSide]) -> list[Group]:
        return [group.take(part) for part in parts]

    def _replace(self, old: list[Group], new: list[Group]) -> None:
        self.groups = [g for g in self.groups if g not in old] + new

    # -- one turn ------------------------------------------------------------------------------------------------------

    def _turn(self, group: Group) -> None:
        # A group runs through many nodes until an outcome (a split, a wait, its end) stops it. Only then does the list
        # of groups change, and only here.
        outcome = self.execute(group)
        # Progress is anything but an iteration of a loop that changed nothing. It restarts the count of idle rounds.
        if not group.yielded and not group.still:
            self.idle = 0
            self.asked = False
        if outcome == SPLIT:
            parts, group.parts = group.parts, []
            children = self._parted(group, parts)
            for child in children[1:]:
                child.still = False  # the first part spins; the others only waited behind the loop
            if group.yielded:  # warps waited behind a spinning loop: those inside of it yield, the others go on
                children[0].yielded = True
            self._replace([group], children)
            group.retire()
        elif outcome == DONE:
            self._replace([group], [])
            group.wave.leave(group)
            self.epoch += 1
            self.ended += group.warps.size
            if self.events is not None:
                self.events.left(group)
            group.retire()
        elif outcome == BLOCKED:
            group.yielded = False  # it waits, so it must not get a turn as a spinning group

    def _run(self, group: Group) -> int:
        # The innermost loop of the simulator. A node is a list of steps and a control step, which returns the next node
        # or a negative outcome. ``at`` and ``step`` are kept for the message of an error.
        code, slots, pc = self.program.code, group.slots, group.pc
        at, step = pc, None
        try:
            while pc >= 0:
                at = pc
                steps, control = code[pc]
                for step in steps:
                    step(group, slots)
                step = control
                pc = control(group, slots)
            return pc
        except BaseException as error:
            raise self._explain(error, group, at, step) from self._cause(error)

    # Copies of the loop: a test for observers at every node or op would cost launches without observers 10 %.

    def _run_reporting_nodes(self, group: Group) -> int:
        """As ``_run``, and report every node to the observers; every op as soon as one of them asks for it."""
        code, slots, pc = self.program.code, group.slots, group.pc
        at, step = pc, None
        assert self.events is not None
        publish, own = self.events.entered, self.execute
        try:
            while pc >= 0 and self.execute == own:
                at = pc
                publish(group, pc)
                steps, control = code[pc]
                for step in steps:
                    step(group, slots)
                step = control
                pc = control(group, slots)
        except RunAgain:
            return self._run_reporting_ops(group, at, step)
        except BaseException as error:
            raise self._explain(error, group, at, step) from self._cause(error)
        return pc if pc < 0 else self._run_reporting_ops(group, pc)

    def _run_reporting_ops(self, group: Group, pc: int | None = None, resumed: Any = None) -> int:
        """As ``_run``, and report every op to the observers. ``resumed``: the step of node ``pc`` to begin with."""
        nodes, slots, pc = self.program.nodes, group.slots, group.pc if pc is None else pc
        at, step = pc, None
        assert self.events is not None
        publish, enter, listened = self.events.executed, self.events.entered, "flow" in self.events.listened
        try:
            while pc >= 0:
                at = pc
                node = nodes[pc]
                straight = list(zip(node.steps, node.ops, strict=True))
                if resumed is None:
                    enter(group, pc)
                else:
                    # The step that woke a check had no effect (RunAgain): it runs again, the steps before it do not.
                    straight = straight[node.steps.index(resumed) if resumed in node.steps else len(straight) :]
                    resumed = None
                for step, op in straight:
                    step(group, slots)
                    publish(group, op)
                    # A loop moves values into its carried variables when it begins, and out of them when it ends.
                    if listened and op.opcode in LOOPS and hasattr(step, "flow"):
                        self.events.flow(group, op, step.flow)
                step = node.control
                if node.op is not None:
                    if node.op.opcode == "call":
                        publish(group, node.op)
                    elif listened and hasattr(step, "flow"):
                        self.events.flow(group, node.op, step.flow)
                pc = step(group, slots)
            return pc
        except BaseException as error:
            raise self._explain(error, group, at, step) from self._cause(error)

    # -- faults --------------------------------------------------------------------------------------------------------

    def _explain(self, error: BaseException, group: Group, at: int, step: Any) -> BaseException:
        # The loops above keep the step that ran, not its op: look it up now, once.
        node = self.program.nodes[at]
        op = node.op
        for candidate, its_op in zip(node.steps, node.ops, strict=True):
            if candidate is step:
                op = its_op
        if isinstance(error, Fault):
            return self.error(error, group, op, group.mask)
        if isinstance(error, SimulationError) or not isinstance(error, Exception):
            return error
        if isinstance(error, TilewrightError):  # an instruction refused its operands
            return self.error(Fault(str(error)), group, op, group.mask)
        return SimulationError(messages.internal_error_text(self.program.name, op, error), op=op)

    @staticmethod
    def _cause(error: BaseException) -> BaseException | None:
        """The chained exception that the user sees: only with TILEWRIGHT_DEBUG, for the simulator's own traceback."""
        return error if os.environ.get("TILEWRIGHT_DEBUG") else None

    def error(self, fault: Fault, group: Group, op: Op | None, mask: Any) -> SimulationError:
        return SimulationError(messages.fault_text(self, fault, group, op, mask), op=op)
