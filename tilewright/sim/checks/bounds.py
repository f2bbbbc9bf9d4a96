"""Coordinates outside the shape of the tensor that is indexed, or that a slice was cut from.

The address may well be in memory that the launch has: the next row, or the tensor that follows it in shared
memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.atoms.copy import split_operands
from tilewright.ir.core import Constant, Op, Value
from tilewright.ir.lanes import Array
from tilewright.sim.checks.actors import lanes_of, thread_of
from tilewright.sim.checks.checker import Checker
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.places import MemoryPlace, flat_offsets, global_memory, shared_memory
from tilewright.sim.checks.sites import kernel_facts, origin
from tilewright.sim.shared import SharedBuffer

if TYPE_CHECKING:
    from tilewright.sim.agents import Effect
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group


class Bounds(Checker):
    each_effect = False  # repetitions of a call have its coordinates

    def begin(self, launch: Launch) -> None:
        self.landing = 0
        self.launch, known = launch, kernel_facts(launch.program)
        self.extents = self._extents(launch)
        self.within, self.names, self.slots = known.within, known.shared_names, launch.program.slots

    def access(
        self, verb: str, buffer: Any, group: Group, off: Array, access: Any, mask: Array | None, values: Any
    ) -> None:
        """Compare the coordinates that an access was computed from with the extents of its tensor: an address outside
        of a tile may still be inside of the buffer."""
        op = group.lanes.op
        pairs = self.within.get(op)
        # What lands was compared when it was issued: the coordinates may be others by now.
        if pairs is None or self.landing:
            return
        bad = self._outside(group, pairs)
        if bad is not None:
            lanes = lanes_of(group, mask)
            mine = bad if bad.ndim == 0 else bad[lanes]
            if mine.any():
                k = int(np.argmax(mine)) if mine.ndim else 0
                at = flat_offsets(buffer, group, off, mask) if isinstance(buffer, SharedBuffer) else off
                self._report(verb, group, op, pairs, int(lanes[k]), (buffer, int(at[k]), access.nbytes))

    def pointed(
        self, verb: str, buffer: Any, group: Group, pointer: Any, access: Any, mask: Array | None, values: Any
    ) -> None:
        pairs = self.within.get(group.lanes.op)
        if pairs is None or self.landing:
            return
        bad = self._outside(group, pairs)
        if bad is not None and (bad if mask is None or not bad.ndim else bad & mask).any():
            off = np.broadcast_to(np.asarray(pointer.off, np.int64), (group.lanes_count,))
            self.access(verb, buffer, group, off if mask is None else off[mask], access, mask, None)

    def pointed_together(
        self, verb: str, buffer: Any, group: Group, pointer: Any, distances: Any, access: Any, values: Any
    ) -> None:
        if group.lanes.op in self.within:  # one comparison stands for all distances
            self.pointed(verb, buffer, group, pointer.plus(distances[0]), access, None, None)

    def pointed_each(self, verb: str, buffer: Any, group: Group, pointers: Any, access: Any, values: Any) -> None:
        if group.lanes.op in self.within:
            self.pointed(verb, buffer, group, pointers[0], access, None, None)

    def issue(self, group: Group, effect: Effect) -> None:
        self.issued_together(group, [effect])

    def issued_together(self, group: Group, effects: Sequence[Effect]) -> None:
        """Compare those of an instruction that accesses memory later."""
        op = effects[0].op
        pairs = self.within.get(op)
        if pairs is None or self.landing:
            return
        bad = self._outside(group, pairs)
        for effect in effects if bad is not None else ():
            acting = np.zeros(group.lanes_count, bool) if effect.lane is not None else self._acting(group, effect)
            if effect.lane is not None:
                acting[effect.lane] = True
            lanes = np.flatnonzero(bad & acting)
            if lanes.size:
                self._report("", group, op, pairs, int(lanes[0]), None)

    def land(self, effect: Effect, begins: bool) -> None:
        self.landing += 1 if begins else -1

    def _acting(self, group: Group, effect: Effect) -> Array:
        """bool ``[L]``: the active lanes, of a copy with predicates those of which some predicate holds."""
        acting = np.ones(group.lanes_count, bool) if effect.mask is None else effect.mask
        if not effect.op.attrs.get("predicated"):
            return acting
        predicates = split_operands(effect.op, effect.op.operands)[2]
        return acting & np.any([np.broadcast_to(self._value(group, p), acting.shape) for p in predicates], axis=0)

    def _outside(self, group: Group, pairs: Any) -> Array | None:
        """bool ``[L]`` or one: where some coordinate is not below its extent; None: nowhere."""
        result: Array | None = None
        for coord, extent, step, _ in pairs:
            c, e = self._value(group, coord), self._value(group, extent)
            # An extent that neither the kernel nor the caller's array gives cannot be compared.
            if c is None or e is None:
                continue
            bad = (c < 0) | (c >= (e if step == 1 else -(-e // step)))
            if np.count_nonzero(bad):  # a fifth of the time of `any`
                result = np.asarray(bad if result is None else result | bad)
        return result

    def _value(self, group: Group, value: Any) -> Any:
        if not isinstance(value, Value):
            return value
        if isinstance(value, Constant):
            return value.value
        slot = self.slots.get(value)
        # No op uses an extent without a slot: it is known from the caller's array alone.
        if slot is None:
            return self.extents.get(value)
        # The group has ended and its copies still arrive: they were compared when they were issued.
        return group.slots[slot] if group.slots else None

    @staticmethod
    def _extents(launch: Launch) -> dict[Value, int]:
        """Extents of the caller's arrays that the kernel itself does not need."""
        found = {}
        for value, (number, mode) in launch.program.function.extents.items():
            pointer = launch.slots[launch.program.params[number]]
            shape = getattr(getattr(pointer, "buf", None), "shapes", {}).get(number, ())
            if mode < len(shape):
                found[value] = int(shape[mode])
        return found

    def _report(self, verb: str, group: Group, op: Op, pairs: Any, lane: int, where: Any) -> None:
        """``where``: the buffer, the offset and the bytes of an access; None for an instruction that is issued."""
        key = ("bounds", str(op.loc or id(op)))
        # The text costs more than the check, so it is made for the first finding of a line only.
        if self.findings.counted(key):
            return
        shown, notes = [], []
        for pair in pairs:
            c, e = (self._value(group, v) for v in (pair.coord, pair.extent))
            if c is not None and e is not None:
                c, e = (int(v if np.ndim(v) == 0 else v[lane]) for v in (c, e))
                if not 0 <= c * pair.step < e:
                    tile = "" if pair.step == 1 else f"tile {c} of {pair.step}, at "
                    shown.append(f"{tile}{c * pair.step} where the extent is {e}")
                    notes.append(pair.op)
        noted = notes[0]
        name = origin(noted.operands[0]).hint
        parties = [Party({"load": "read", "store": "write", "": "use"}.get(verb, verb), op, thread_of(group, lane))]
        if noted is not op and noted.loc != op.loc:
            parties.append(Party("of the slice", noted))
        memory: MemoryPlace | None = None
        if where is not None:
            buffer, at, size = where
            if isinstance(buffer, SharedBuffer):
                memory = shared_memory(at % buffer.stride, size, self.names)
            else:
                memory = global_memory(op, buffer, at, size)
        self.findings.add(
            Finding(
                "bounds",
                f"a coordinate outside {f'the tensor {name}' if name else 'its tensor'}: {', '.join(shown)}",
                parties,
                memory,
                "the address is one that the launch has, but not of this element of this tensor",
                "predicate the access (cute.elem_less), or make the tensor as large as its coordinates reach",
            ),
            key,
        )
