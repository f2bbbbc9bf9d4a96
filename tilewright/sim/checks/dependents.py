"""``griddepcontrol``: a kernel launched with ``use_pdl`` touches what the one before it in the stream writes, and has
not waited for it.

The simulator ends each launch before the next begins, so nothing goes wrong here; on a GPU the two overlap from where
the first says ``launch_dependents``. What the first kernel writes is known by its parameters, array by array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.core import Function, Op
from tilewright.ir.lanes import Array
from tilewright.ir.runtime import LaunchConfig
from tilewright.ir.target import WARP
from tilewright.ir.types import MemSpace, PtrType
from tilewright.sim.checks.actors import lanes_of, thread_of
from tilewright.sim.checks.buffers import buffers_of
from tilewright.sim.checks.checker import Checker
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.places import global_memory
from tilewright.sim.checks.running_kernels import MOST_KERNELS, RunningKernel, running
from tilewright.sim.checks.sites import kernel_facts
from tilewright.sim.shared import SharedBuffer

if TYPE_CHECKING:
    from tilewright.sim.agents import Effect
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.program import Program


def touches_global(op: Op) -> bool:
    """Whether an op reads or writes memory that is not its block's own."""
    if op.opcode in ("load", "store"):
        pointers = [op.operands[0]]
    elif op.opcode == "call":
        pointers = [pointer for pointer, access in op.attrs["atom"].accessed(op) if access.memories]
    else:
        return False
    kinds = [pointer.type for pointer in pointers]
    return any(kind.space in (MemSpace.GMEM, MemSpace.GENERIC) for kind in kinds if isinstance(kind, PtrType))


def waits_first(function: Function) -> bool:
    """Whether a kernel plainly waits before it touches any memory of others: all threads, before the first access."""
    for op in function.body.ops:
        if op.opcode == "call" and op.attrs["atom"].grid_dependency == "wait":
            return True
        if any(touches_global(one) for one in op.walk()):
            return False
    return False


class EarlyLaunches(Checker):
    """Notes what a kernel that lets the next one begin early may still be at; it watches no access."""

    def end(self, launch: Launch) -> None:
        begins = kernel_facts(launch.program).early_launches
        if not begins:
            return
        every = [b for b in launch.space.exposed() if isinstance(getattr(b, "low", None), int)]
        written = [b for b in buffers_of(launch, kernel_facts(launch.program).written) if b in every]
        writes, uses = ([(b.base + b.low, b.base + b.high) for b in side] for side in (written, every))
        stream = launch.config.stream
        mine = RunningKernel(launch.program.name, begins[0], writes, uses, [b.owner for b in every])
        running[stream] = (mine, *running.get(stream, ()))[:MOST_KERNELS]


# griddepcontrol.wait waits until "all prerequisite grids in flight have completed" (PTX ISA, "griddepcontrol"): the
# kernel launched directly before. Kernels before that one have ended, too, if it has waited itself: it cannot end
# before its wait does.
class Dependents(Checker):
    """Looks at the accesses of a kernel that may overlap with others of its stream."""

    @classmethod
    def takes(cls, program: Program, config: LaunchConfig) -> bool:
        if "use_pdl" not in config.attributes:
            running.pop(config.stream, None)  # it comes after all that was before it
        there = running.get(config.stream, ())
        if waits_first(program.function) and not any(before.passed for before in there):
            running.pop(config.stream, None)
        return config.stream in running

    def begin(self, launch: Launch) -> None:
        self.launch = launch
        self.before = running.pop(launch.config.stream, ())
        self.older = any(before.passed for before in self.before)
        self.landing: Effect | None = None
        self.waited: set[tuple[int, int]] = set()  # (wave, block) of which a warp has waited
        self.effects: dict[int, Effect] = {}  # issued before the wait
        self.known: dict[Any, tuple[RunningKernel | None, ...]] = {}

    def end(self, launch: Launch) -> None:
        left = [b for b in self.before if b.passed]
        if not self.waited:
            left = [b if b.passed else b._replace(passed=launch.program.name) for b in self.before]
        if left:
            running[launch.config.stream] = tuple(left)

    def ordered(self, group: Group, op: Op) -> None:
        if op.attrs["atom"].grid_dependency:
            active = np.ones(group.warps.size, bool) if group.mask is None else group.mask.reshape(-1, WARP).any(1)
            blocks = group.warps[active] // group.wave.geometry.warps
            self.waited.update((id(group.wave), int(b)) for b in np.unique(blocks))

    def _unsafe(self, buffer: Any, verb: str, waited: bool = False) -> RunningKernel | None:
        """A kernel that may still run and writes to this array (or, where this one writes, uses it at all). ``waited``:
        for the kernel before."""
        known = self.known.get(buffer)
        if known is None:
            low, high = buffer.base + getattr(buffer, "low", 0), buffer.base + getattr(buffer, "high", 0)

            def first(kernels: list[RunningKernel], loads: bool) -> RunningKernel | None:
                sides = ((b, b.written if loads else b.touched) for b in kernels)
                return next((b for b, side in sides if any(a < high and low < e for a, e in side)), None)

            every, older = list(self.before), [b for b in self.before if b.passed]
            known = self.known[buffer] = tuple(first(side, loads) for side in (every, older) for loads in (True, False))
        return known[2 * waited + (verb != "load")]

    def pointed(
        self, verb: str, buffer: Any, group: Group, pointer: Any, access: Any, mask: Array | None, values: Any
    ) -> None:
        if not isinstance(buffer, SharedBuffer) and self._unsafe(buffer, verb) is not None:
            off = np.broadcast_to(np.asarray(pointer.off, np.int64), (group.lanes_count,))
            self.access(verb, buffer, group, off if mask is None else off[mask], access, mask, None)

    def access(
        self, verb: str, buffer: Any, group: Group, off: Array, access: Any, mask: Array | None, values: Any
    ) -> None:
        if isinstance(buffer, SharedBuffer) or self._unsafe(buffer, verb) is None:
            return
        lanes = lanes_of(group, mask)
        blocks = group.warps[lanes // WARP] // group.wave.geometry.warps
        for block, k in zip(*np.unique(blocks, return_index=True), strict=True):
            before = self._unsafe(buffer, verb, (id(group.wave), int(block)) in self.waited)
            if before is not None:
                self._report(before, verb, buffer, group, int(lanes[k]), int(off[k]), access.nbytes)
                return

    def issue(self, group: Group, effect: Effect) -> None:
        blocks = {int(b) for b in np.unique(group.warps // group.wave.geometry.warps)}
        if any((id(group.wave), b) not in self.waited for b in blocks):
            self.effects[id(effect)] = effect

    def land(self, effect: Effect, begins: bool) -> None:
        if not begins:
            self.effects.pop(id(effect), None)
        self.landing = effect if begins else None

    def stretch(
        self, group: Group, memory: str, start: int, shape: tuple[int, ...], strides: tuple[int, ...], writes: bool
    ) -> None:
        effect = self.landing
        if memory != "global" or effect is None or not (self.older or id(effect) in self.effects):
            return
        for buffer in self.launch.space.exposed():
            if buffer.base + buffer.low <= start < buffer.base + buffer.high:
                verb = "store" if writes else "load"
                before = self._unsafe(buffer, verb, id(effect) not in self.effects)
                if before is not None:
                    lane = effect.lane if effect.lane is not None else 0
                    self._report(before, verb, buffer, group, lane, start - buffer.base, shape[-1])
                return

    def _report(
        self, before: RunningKernel, verb: str, buffer: Any, group: Group, lane: int, at: int, size: int
    ) -> None:
        """The access of ``lane`` to an array that the kernel ``before``, which may still run, uses as well."""
        op = group.lanes.op
        who = thread_of(group, lane)
        does = {"load": "read", "store": "write"}.get(verb, verb)
        why = (
            "launched with use_pdl=True, the blocks begin while those of the kernel before still run, and none of "
            "this block's warps has executed griddepcontrol.wait"
        )
        fix = "cute.arch.griddepcontrol_wait() before the first access to what the kernel before writes"
        if before.passed:
            why = (
                f"griddepcontrol.wait waits for the kernel directly before this one; kernel {before.passed!r}, between "
                f"the two and launched with use_pdl=True, did not wait for {before.kernel!r} and may end before it"
            )
            fix = f"cute.arch.griddepcontrol_wait() in kernel {before.passed!r}, too (at its end, if need be)"
        self.findings.add(
            Finding(
                "griddepcontrol-wait",
                f"kernel {before.kernel!r}, which {'writes' if verb == 'load' else 'uses'} this array, may still run",
                [Party(does, op, who), Party("let the next kernel begin early", before.op)],
                global_memory(op, buffer, at, size),
                why,
                fix,
            )
        )
