"""The engine: runs groups of warps until they block, split or end, and chooses who is next.

A simulator in Python is fast only while one step acts on many threads, so everything here is about keeping warps
together as long as the program lets them be, and about letting them go on alone exactly where a GPU would.

Groups of one tag go on together: the one that is furthest behind runs first, so groups that went apart meet again. Tags
run one after another, each until it blocks, in an order drawn from the seed: what a warp does between two barriers,
other warps of its block see all at once or not at all.
"""

from __future__ import annotations

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
from tilewright.sim.agents import Effect
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

# A hang is told from slow progress by counting *rounds*, in which every group that spins has had a turn. Few rounds do
# where nothing changed at all (a round may still set off an effect that the next one sees); where loops count their own
# turns (a back-off, a time-out), equal rounds cannot be recognised, and only their number says something.
STILL = 16  # rounds in which every loop runs an iteration without a change before the launch counts as hung
STUCK = 4000  # rounds in which every loop only reads memory, but changes its own values
LOOPS = ("for", "while")
ADMIT = 4  # such rounds before blocks beyond the lane budget are started


class Launch:
    """One launch of a program: its waves, its groups and the schedule. ``looks_on``: whether the checks see what a
    launch that ends with an error was about to do (:mod:`.aftermath`)."""

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
        self.geometry = Geometry(config)
        self.smem = smem
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
        """The innermost loop that tells the observers what they listen for, and no more."""
        self.reports_ops = False
        if self.events is None:
            return self._run
        listened = self.events.listened
        if "executed" in listened or "flow" in listened:
            self.reports_ops = True
            return self._run_reporting_ops
        return self._run_reporting_nodes if "entered" in listened or self.events.sleeps else self._run

    def sleep(self, observer: Observer) -> None:
        """``observer`` does not listen for the events ``asleep`` for now; unless others listen for every op anyway."""
        assert self.events is not None
        self.events.dismiss([])
        self.execute = self._loop()
        if self.execute == self._run_reporting_ops:
            self.wake(observer)

    def wake(self, observer: Observer) -> None:
        """``observer`` wants to be notified of every op from now on: at the latest from the next node, or from the op
        that is executed if it raises :class:`RunAgain`."""
        assert self.events is not None
        self.events.wake(observer)
        self.execute = self._loop()

    # -- the schedule --------------------------------------------------------------------------------------------------

    def run(self) -> None:
        if self.events is not None:
            self.events.begin(self)
            self.execute = self._loop()  # checks that do not concern the kernel have gone
        group: Group | None = None
        try:
            with np.errstate(all="ignore"):  # a GPU's arithmetic raises nothing, and lanes that rest may hold anything
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
        # Groups, and with them all else, are let go of when Python looks for cycles. What is large goes now.
        for memory in self.memories:
            memory.free()

    def note_progress(self) -> None:
        """Something has happened that a loop elsewhere may wait for: what was counted towards a hang counts no more."""
        self.idle = 0

    def _pick(self) -> Group | None:
        # A group goes on when all its warps can. Parting it as soon as some can would leave groups of single warps
        # after each barrier; that is done only when no other group can go on (``_unblock``).
        able = self._able()
        if self.held_back and able and not self.asked and self._only_held_back(able):
            able = self._able()
        if not able:
            return None
        keys = sorted({(id(g.wave), g.tag) for g in able}, key=lambda k: k[1])
        self.current = self._next(keys)
        # The furthest behind goes first: places are numbered in program order, so that it comes up to those ahead,
        # which wait in a join or behind a loop, and merges with them. Groups of one place merge unless one of them is
        # in a branch as a whole and the other under masks.
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
        """Whether those that are held back would go on now although others spin; these get a turn first."""
        spinning = [g for g in self.groups if g.yielded]
        if not spinning or not all((id(g.wave), g.tag) in self.held_back for g in able):
            return False
        for group in spinning:
            group.yielded = False
        self.asked = True
        return True

    def _able(self) -> list[Group]:
        """Those that can go on."""
        # Asked again each time: a waiting group is not notified when its barrier completes. Waits are few, and a
        # list of which group wakes which would have to be kept right through every parting and merging of groups.
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
        """Whose turn it is of those who can go on: (wave, tag)."""
        # Who has the turn keeps it until it blocks: each change costs a round of looking at all groups, and in long
        # turns a missing barrier shows most (others see all or nothing of what was done before it).
        keys = [key for key in keys if key not in self.held_back] or keys
        if self.current in keys:
            return self.current
        # At first the set of warp 0 comes last: it often prepares data that the others must wait for.
        self.turns += 1
        return keys[-1] if self.turns <= TAGS else self.choice.choice(keys)

    def sets(self, wave: Wave, warps: np.ndarray) -> list[np.ndarray]:
        """The warps that begin together, and run together until they part: one tag each."""
        return wave.partition(warps, self.choice)

    def stops(self, group: Group, op: Op) -> bool:
        """Whether a group rests before ``op``; asked only by programs that are lowered with stops."""
        return False

    def _unblock(self) -> bool:
        """No group can simply go on: let an asynchronous effect land, or split a group of which some warps can. False:
        all is done."""
        # First the effects that no wait of a thread forces (TMA): as late as this, a program that reads without waiting
        # reads stale bytes. Then a group of which only some warps can go on is parted. Then the loops that ran
        # without a change get another turn. Only when nothing of this is left is it a deadlock, or the end of the wave.
        if self.later:
            # One at a time: groups that can go on after this one do so before the next one lands, as on a GPU.
            self._land_next()
            self.idle = 0
            return True
        for group in self.groups:
            if group.wait is not None:
                ready = group.wait.ready()
                if ready.any():  # one group only: its warps may be what the others of these groups wait for
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
            # Those that spin may wait for a block that has not begun: let blocks in beyond the lane budget, and call it
            # a hang only when none is left.
            if (still or self.idle > ADMIT) and self._admit():
                self.idle = 0
            elif self.idle > (STILL if still else self._bound(spinning)):
                raise SimulationError(hangs.hang_text(self, spinning), None, *hangs.waiting_ops(spinning))
            return True
        if self.groups:
            raise SimulationError(hangs.deadlock_text(self), None, *hangs.waiting_ops(self.groups))
        return self._start_wave()

    def _land_next(self) -> None:
        effect = self.later.pop(0)
        try:
            effect.land()
        except SimulationError:
            self.failed = effect
            raise

    @staticmethod
    def _bound(spinning: list[Group]) -> float:
        """Rounds of spinning alone, though not with the same values, that make a hang likely."""
        return STUCK if all(g.still or (g.spin.quiet and g.spin.reads) for g in spinning) else float("inf")

    def bounded(self, group: Group) -> None:
        """Refuse a group that exceeds the bound on iterations of loops that do change something."""
        if group.spins > self.options.turns:
            raise SimulationError(hangs.endless_loop_text(self, group), None, *hangs.waiting_ops([group]))

    def waits(self, group: Group, iterations: int) -> None:
        """A group has used up its iterations of a loop whose condition nothing has changed in the meantime."""
        # A pending effect, or a block that has not begun, may still change it.
        if self.later:
            self._land_next()
        elif not self._admit():
            raise SimulationError(hangs.waits(self, group, iterations), None, *hangs.waiting_ops([group]))
        self.epoch += 1

    def _admit(self) -> bool:
        """Start as many waves again as there have been: a wait for the last block must not take a round a wave."""
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
        # Only what ends a turn decides what becomes current next, so a group runs through many nodes without coming
        # back here; this is the one place where the list of groups changes.
        outcome = self.execute(group)
        # Progress is anything but an iteration of a loop that changed nothing. It restarts the count of idle rounds.
        if not group.yielded and not group.still:
            self.idle = 0
            self.asked = False
        if outcome == SPLIT:
            parts, group.parts = group.parts, []
            children = self._parted(group, parts)
            for child in children[1:]:
                child.still = False  # the first part is the one that spins; the others only rested behind it
            if group.yielded:  # a spin that warps were waiting behind: those inside rest, the others go on
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
            group.yielded = False  # it waits, which is not spinning: it must not get a turn as one that spins

    def _run(self, group: Group) -> int:
        # The innermost loop of the simulator: each node is some straight steps and a control step that gives the next
        # node, or a negative outcome. ``at`` and ``step`` are kept for the message of an error.
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

    # Copies of the loop, because a test for observers at every node or op would cost those who have none a tenth.

    def _run_reporting_nodes(self, group: Group) -> int:
        """As ``_run``, notifying the observers of every node, until one of them wakes and wants every op."""
        code, slots, pc = self.program.code, group.slots, group.pc
        at, step = pc, None
        assert self.events is not None
        tell, own = self.events.entered, self.execute
        try:
            while pc >= 0 and self.execute == own:
                at = pc
                tell(group, pc)
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
        """As ``_run``, telling the observers of every op. ``resumed``: the step of node ``pc`` to begin with."""
        nodes, slots, pc = self.program.nodes, group.slots, group.pc if pc is None else pc
        at, step = pc, None
        assert self.events is not None
        tell, enter, listened = self.events.executed, self.events.entered, "flow" in self.events.listened
        try:
            while pc >= 0:
                at = pc
                node = nodes[pc]
                straight = list(zip(node.steps, node.ops, strict=True))
                if resumed is None:
                    enter(group, pc)
                else:
                    # The step that woke a check had no effect (RunAgain): it runs once more, those before it do not.
                    straight = straight[node.steps.index(resumed) if resumed in node.steps else len(straight) :]
                    resumed = None
                for step, op in straight:
                    step(group, slots)
                    tell(group, op)
                    # Loops move values into what they carry when they begin, and out of it when they end.
                    if listened and op.opcode in LOOPS and hasattr(step, "flow"):
                        self.events.flow(group, op, step.flow)
                step = node.control
                if node.op is not None:
                    if node.op.opcode == "call":
                        tell(group, node.op)
                    elif listened and hasattr(step, "flow"):
                        self.events.flow(group, node.op, step.flow)
                pc = step(group, slots)
            return pc
        except BaseException as error:
            raise self._explain(error, group, at, step) from self._cause(error)

    # -- faults --------------------------------------------------------------------------------------------------------

    def _explain(self, error: BaseException, group: Group, at: int, step: Any) -> BaseException:
        # The loops above keep only which step ran, not which op it came from: that is looked up now, once.
        node = self.program.nodes[at]
        op = node.op
        for candidate, its_op in zip(node.steps, node.ops, strict=True):
            if candidate is step:
                op = its_op
        if isinstance(error, Fault):
            return self.error(error, group, op, group.mask)
        if isinstance(error, SimulationError) or not isinstance(error, Exception):
            return error
        if isinstance(error, TilewrightError):  # an instruction refuses what it was given
            return self.error(Fault(str(error)), group, op, group.mask)
        return SimulationError(messages.internal_error_text(self.program.name, op, error), op=op)

    @staticmethod
    def _cause(error: BaseException) -> BaseException | None:
        """The chained exception that the user sees: none, unless TILEWRIGHT_DEBUG asks for the simulator's own
        traceback."""
        return error if os.environ.get("TILEWRIGHT_DEBUG") else None

    def error(self, fault: Fault, group: Group, op: Op | None, mask: Any) -> SimulationError:
        return SimulationError(messages.fault_text(self, fault, group, op, mask), op=op)
