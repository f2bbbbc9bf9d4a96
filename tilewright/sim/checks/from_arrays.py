"""How what the caller's arrays hold uninitialised comes to registers and shared memory: the part of the check for
uninitialised values that looks at accesses to global memory, and at asynchronous copies from there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.atoms.cp_async import AGENT as CP_ASYNC
from tilewright.ir.core import Op
from tilewright.ir.lanes import Array
from tilewright.sim.checks.actors import lanes_of
from tilewright.sim.checks.caller_arrays import WHOLE, WORD, CallerArrays
from tilewright.sim.checks.checker import SharedChecker
from tilewright.sim.checks.places import global_memory
from tilewright.sim.checks.taint import ORIGIN, Origins
from tilewright.sim.checks.undefined import Origin
from tilewright.sim.empty_arrays import marked_array_at

if TYPE_CHECKING:
    from tilewright.sim.agents import Effect
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group


class FromArrays(SharedChecker):
    """``pending``: origins of what the op that is executed has read from memory. ``numbers``: of the origins by op."""

    each_effect = False
    origins: list[Origin]
    numbers: dict[Any, int]
    pending: Origins
    shift: int

    def begin(self, launch: Launch) -> None:
        self.arrays = CallerArrays(launch.space)
        self.bringing: set[Op] = set()  # asynchronous copies that have read what was never written
        self.landing: list[Array] | None = None  # cells of shared memory that one of those is writing

    def read_array(self, verb: str, buffer: Any, group: Group, off: Array, access: Any, mask: Array | None) -> None:
        """Threads load from, or update, one of the caller's arrays."""
        if verb == "store" or not off.size:
            return
        op, size = group.lanes.op, access.elem.bytes
        bad = self.arrays.at(buffer, off, access.n, size)
        if not bad.any():
            return
        lane, element = np.argwhere(bad)[0]
        number = self.array_origin(op, buffer, int(off[lane]) + int(element) * size, size)
        # cp.async brings no registers: where it lands, the cells take the origin (``land``).
        if op.opcode == "call" and CP_ASYNC in op.attrs["atom"].agents:
            self.bringing.add(op)
            return
        every = np.zeros((group.lanes_count, bad.shape[1]), ORIGIN)
        every[lanes_of(group, mask)] = np.where(bad, ORIGIN(number), ORIGIN(0))
        if op.opcode == "call" or access.scalar:
            every = every.max(1)
        if verb == "atomic" and getattr(op.attrs["atom"], "kind", "") != "exch":
            self._report("update", group, op, every)
        else:
            self.pending = every if self.pending is None else np.maximum(self.pending, every)

    def array_origin(self, op: Op, buffer: Any, at: int, size: int) -> int:
        """The number of the origin of what ``op`` reads at byte ``at`` of an array."""
        key = ("array", op)
        if key not in self.numbers:
            memory = global_memory(op, buffer, at, size)
            self.origins.append(Origin(op, memory, marked_array_at(buffer.base + at)))
            self.numbers[key] = min(len(self.origins) - 1, np.iinfo(ORIGIN).max)
        return self.numbers[key]

    # -- asynchronous copies -------------------------------------------------------------------------------------------

    def array_stretch(
        self, group: Group, start: int, shape: tuple[int, ...], strides: tuple[int, ...], writes: bool
    ) -> None:
        """An asynchronous unit reads, or updates, bytes of the caller's arrays."""
        op = group.lanes.op
        reduction = getattr(op.attrs["atom"], "reduction", "")
        place = None if writes and not reduction else self.arrays.in_stretch(start, shape, strides)
        if place is None:
            return
        number = self.array_origin(op, *place, WHOLE)
        if reduction:
            self._report("update", group, op, np.full(group.lanes_count, number, ORIGIN))
        else:
            self.bringing.add(op)
            self.landing = self.landing or []

    def land(self, effect: Effect, begins: bool) -> None:
        """When a copy has landed, look for marked bytes of arrays of the caller among the cells that it wrote."""
        if begins:
            self.landing = [] if effect.op in self.bringing else None
            return
        cells, self.landing = self.landing, None
        if not cells:
            return
        group = effect.lanes.group
        shared, memory = group.wave.shared.bytes, self.memory_of(group)
        units = np.unique(np.concatenate([c.reshape(-1) for c in cells]) << self.shift >> 3)
        data = shared.view(np.uint64)[units].view(np.uint8)
        words = (units[:, None] * 2 + np.arange(2)).reshape(-1)[self.arrays.carried(data)]
        if words.size:
            per = max(1, WORD >> self.shift)
            memory[(words * WORD >> self.shift)[:, None] + np.arange(per)] = self.numbers["array", effect.op]
            self.shared_is_dirty(group)

    # -- of the class that keeps registers and shared memory -----------------------------------------------------------

    def memory_of(self, group: Group) -> Array:
        """The origins of the cells of the wave's shared memory."""
        raise NotImplementedError

    def shared_is_dirty(self, group: Group) -> None:
        raise NotImplementedError

    def _report(self, sink: str, group: Group, op: Op, origins: Origins) -> None:
        raise NotImplementedError
