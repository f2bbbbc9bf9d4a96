"""``griddepcontrol``: a kernel launched with ``use_pdl`` touches what the one before it in the stream writes, and has
not waited for it.

The simulator ends each launch before the next begins, so nothing goes wrong here; on a GPU the two overlap from where
the first says ``launch_dependents``. What the first kernel writes is known by its parameters, array by array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.atoms.dependents import GridDependency
from tilewright.ir.core import Function, Op
from tilewright.ir.runtime import LaunchConfig
from tilewright.ir.types import MemSpace, PtrType
from tilewright.sim.checks.actors import actor, lanes_of
from tilewright.sim.checks.buffers import buffers_of
from tilewright.sim.checks.checker import Checker
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.places import global_memory
from tilewright.sim.checks.sites import facts
from tilewright.sim.geometry import WARP
from tilewright.sim.shared import SharedBuffer

if TYPE_CHECKING:
    from tilewright.sim.agents import Effect
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.program import Program

Array = np.ndarray[Any, Any]


class Before(NamedTuple):
    """The last kernel of a stream, which let the next one begin early (``op``): its arrays (``owners``, kept alive so
    that their addresses stay theirs), the addresses of those that it writes, and of all."""

    kernel: str
    op: Op
    written: list[tuple[int, int]]
    touched: list[tuple[int, int]]
    owners: list[Any]


_last: dict[int | None, Before] = {}


def early(program: Program) -> list[Op]:
    """Where a kernel lets the next one of its stream begin."""
    calls = [op for op in facts(program).calls if isinstance(op.attrs["atom"], GridDependency)]
    return [op for op in calls if op.attrs["atom"].action == "launch_dependents"]


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
        if op.opcode == "call" and isinstance(op.attrs["atom"], GridDependency) and op.attrs["atom"].action == "wait":
            return True
        if any(touches_global(one) for one in op.walk()):
            return False
    return False


class EarlyEnds(Checker):
    """Notes what a kernel that lets the next one begin early may still be at; it watches no access."""

    name, cost = "dependents", "default"

    @classmethod
    def takes(cls, program: Program, config: LaunchConfig) -> bool:
        return bool(early(program))

    def end(self, launch: Launch) -> None:
        every = [b for b in launch.space.exposed() if isinstance(getattr(b, "low", None), int)]
        written = [b for b in buffers_of(launch, facts(launch.program).written) if b in every]
        writes, uses = ([(b.base + b.low, b.base + b.high) for b in side] for side in (written, every))
        begins = early(launch.program)[0]
        _last[launch.config.stream] = Before(launch.program.name, begins, writes, uses, [b.owner for b in every])


class Dependents(Checker):
    """Looks at the accesses of a kernel that may overlap with such a one."""

    name, cost = "dependents", "default"

    @classmethod
    def takes(cls, program: Program, config: LaunchConfig) -> bool:
        if "use_pdl" not in config.attributes or waits_first(program.function):
            _last.pop(config.stream, None)  # it comes after all that was before it
        return config.stream in _last

    def begin(self, launch: Launch) -> None:
        self.launch = launch
        self.before = _last.pop(launch.config.stream, None)
        self.landing: Effect | None = None
        self.waited: set[tuple[int, int]] = set()  # (wave, block) of which a warp has waited
        self.effects: dict[int, Effect] = {}  # issued before the wait
        self.known: dict[Any, tuple[bool, bool]] = {}

    def ordered(self, group: Group, op: Op) -> None:
        if isinstance(op.attrs["atom"], GridDependency) and self.before is not None:
            active = np.ones(group.warps.size, bool) if group.mask is None else group.mask.reshape(-1, WARP).any(1)
            blocks = group.warps[active] // group.wave.geometry.warps
            self.waited.update((id(group.wave), int(b)) for b in np.unique(blocks))

    def _unsafe(self, buffer: Any, verb: str) -> bool:
        """Whether the kernel before writes to this array (or, where this one writes, uses it at all)."""
        known = self.known.get(buffer)
        if known is None:
            low, high = buffer.base + getattr(buffer, "low", 0), buffer.base + getattr(buffer, "high", 0)
            assert self.before is not None
            sides = (self.before.written, self.before.touched)
            writes, uses = (any(a < high and low < b for a, b in side) for side in sides)
            known = self.known[buffer] = writes, uses
        return known[verb != "load"]

    def pointed(
        self, verb: str, buffer: Any, group: Group, pointer: Any, access: Any, mask: Array | None, values: Any
    ) -> None:
        if self.before is not None and not isinstance(buffer, SharedBuffer) and self._unsafe(buffer, verb):
            off = np.broadcast_to(np.asarray(pointer.off, np.int64), (group.lanes_count,))
            self.access(verb, buffer, group, off if mask is None else off[mask], access, mask, None)

    def access(
        self, verb: str, buffer: Any, group: Group, off: Array, access: Any, mask: Array | None, values: Any
    ) -> None:
        if self.before is None or isinstance(buffer, SharedBuffer) or not self._unsafe(buffer, verb):
            return
        lanes = lanes_of(group, mask)
        blocks = group.warps[lanes // WARP] // group.wave.geometry.warps
        for block, k in zip(*np.unique(blocks, return_index=True), strict=True):
            if (id(group.wave), int(block)) not in self.waited:
                self._found(verb, buffer, group, int(lanes[k]), int(off[k]), access.nbytes)
                return

    def issue(self, group: Group, effect: Effect) -> None:
        if self.before is None:
            return
        blocks = {int(b) for b in np.unique(group.warps // group.wave.geometry.warps)}
        if any((id(group.wave), b) not in self.waited for b in blocks):
            self.effects[id(effect)] = effect

    def land(self, effect: Effect, begins: bool) -> None:
        if not begins:
            self.effects.pop(id(effect), None)
        self.landing = effect if begins else None

    def stretch(self, group: Group, memory: str, start: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        effect = self.landing
        if self.before is None or memory != "global" or effect is None or id(effect) not in self.effects:
            return
        into = any(a.writes and MemSpace.GMEM in a.memories for a in group.lanes.op.attrs["atom"].accesses)
        for buffer in self.launch.space.exposed():
            if buffer.base + buffer.low <= start < buffer.base + buffer.high:
                if self._unsafe(buffer, "store" if into else "load"):
                    lane = effect.lane if effect.lane is not None else 0
                    self._found("store" if into else "load", buffer, group, lane, start - buffer.base, shape[-1])
                return

    def _found(self, verb: str, buffer: Any, group: Group, lane: int, at: int, size: int) -> None:
        assert self.before is not None
        op, before = group.lanes.op, self.before
        warp, per = int(group.warps[lane // WARP]), group.wave.geometry.warps
        who = actor(self.launch, group.wave.coords[warp // per], warp % per, lane % WARP)
        does = {"load": "read", "store": "write"}.get(verb, verb)
        self.findings.add(
            Finding(
                "griddepcontrol-wait",
                f"kernel {before.kernel!r}, which {'writes' if verb == 'load' else 'uses'} this array, may still run",
                [Party(does, op, who), Party("let this kernel begin early", before.op)],
                global_memory(op, buffer, at, size),
                "launched with use_pdl=True, the blocks begin while those of the kernel before still run, and none of "
                "this block's warps has executed griddepcontrol.wait",
                "cute.arch.griddepcontrol_wait() before the first access to what the kernel before writes",
            )
        )  # fmt: skip
