"""How operations hand the origins of undefined values from their operands to their results, register by register: the
part of the check for uninitialised values that follows the ops of a kernel. What memory gives them is in
:mod:`.uninitialised`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.atoms.copy import split_operands
from tilewright.ir.core import Constant, Op
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.ir.types import BOOL, FragType, PtrType, VecType
from tilewright.sim.checks.actors import lanes_of
from tilewright.sim.checks.from_arrays import FromArrays
from tilewright.sim.checks.initialised import product_registers
from tilewright.sim.checks.places import flat_offsets
from tilewright.sim.checks.shadow_run import ShadowLanes, run_copy, run_product
from tilewright.sim.checks.sites import SHARED_SPACES
from tilewright.sim.checks.taint import ORIGIN, Origins, Registers, joined, rule_of
from tilewright.sim.columns import Columns
from tilewright.sim.lowering import constant_value
from tilewright.sim.shared import SharedBuffer
from tilewright.sim.values import TypedPointer

if TYPE_CHECKING:
    from tilewright.sim.group import Group
    from tilewright.sim.program import ControlFlow
    from tilewright.sim.wave import Wave


class RegisterOrigins(FromArrays):
    """``slots``: the number of each value's register; ``registers``: the origins of each wave's registers."""

    slots: dict[Any, int]
    registers: dict[Wave, Registers]
    maybe_unwritten: set[Op]
    """Fragments that some element may be read of before it is written."""

    def _origin(self, op: Op, offset: int | None = None) -> int:
        raise NotImplementedError

    def executed(self, group: Group, op: Op) -> None:
        """Hand origins of uninitialised values from the operands of an op to its results, by the rule of the op, and
        report where they reach an address, a branch or a result."""
        registers = self.registers[group.wave]
        pending, self.pending = self.pending, None
        held, slots = registers.held, self.slots
        if op.opcode == "frag.alloc":
            kind = op.result.type
            assert isinstance(kind, FragType)
            if op in self.maybe_unwritten:
                registers.put(group, slots[op.result], np.full((group.lanes_count, kind.n), self._origin(op), ORIGIN))
            return
        if pending is None and not self._partial(group, op):
            if not held:
                return
            for value in op.operands:
                if slots.get(value) in held:
                    break
            else:
                for value in op.results:
                    if slots.get(value) in held:
                        break
                else:
                    return
        # Origins of each operand: None, [L] of a scalar, [L, n] of a vector or fragment.
        of_operands = [self._get(registers, group, v) for v in op.operands]
        for value, origins in zip(op.operands, of_operands, strict=True):
            if origins is not None and isinstance(value.type, PtrType) and op.opcode in ("load", "store", "call"):
                self._report("address", group, op, origins)
        if op.opcode == "call":
            self._call(registers, group, op, of_operands, pending)
        elif op.opcode == "load":
            registers.put(group, slots[op.result], self._loaded(op, pending))
        elif op.opcode == "store":
            space = op.operands[0].type.space.value if isinstance(op.operands[0].type, PtrType) else ""
            if of_operands[1] is not None and space not in ("smem", "dsmem"):
                self._report("result", group, op, of_operands[1])
        elif op.opcode == "frag.store":
            self._frag_store(registers, group, op, of_operands)
        elif op.opcode == "assert":
            self._report("branch", group, op, of_operands[0])
        elif op.results and op.opcode not in ("for", "while", "if"):
            values = [self._value(group, v) for v in op.operands]
            registers.put(group, slots[op.result], rule_of(op)(op, of_operands, values, group.lanes_count))

    def _partial(self, group: Group, op: Op) -> bool:
        """A shuffle of a part of a warp, which may read lanes that take no part: what those give is undefined."""
        return self.thorough and group.mask is not None and op.opcode == "call" and op.attrs["atom"].shuffles

    def flow(self, group: Group, op: Op, flow: ControlFlow) -> None:
        registers = self.registers[group.wave]
        if not registers.held:
            return
        for slot in flow.decides:
            self._report("branch", group, op, registers.get(group, slot))
        taken = [(registers.get(group, source), target) for source, target in flow.moves]
        for origins, target in taken:
            registers.move(group, origins, target)

    def _get(self, registers: Registers, group: Group, value: Any) -> Origins:
        slot = self.slots.get(value)
        return None if slot is None else registers.get(group, slot)

    @staticmethod
    def _loaded(op: Op, pending: Origins) -> Origins:
        """The result of a load, from the cells that it has read."""
        if pending is None:
            return None
        if not isinstance(op.result.type, VecType):
            return pending if pending.ndim == 1 else pending.max(1)
        wide = pending.reshape(pending.shape[0], op.result.type.n, -1)
        return np.asarray(wide.max(2))

    def _frag_store(self, registers: Registers, group: Group, op: Op, of_operands: list[Origins]) -> None:
        """Registers of a fragment take the origins of the stored value, where the lane is active; others keep
        theirs."""
        frag, value = of_operands[:2]
        kind = op.operands[0].type
        assert isinstance(kind, FragType)
        if frag is None and value is None:
            return
        count = group.lanes_count
        new = np.zeros((count, kind.n), ORIGIN) if frag is None else frag.copy()
        where = np.broadcast_to(np.array(op.attrs["offsets"]), (count, len(op.attrs["offsets"])))
        if len(op.operands) > 2:
            index = np.broadcast_to(np.asarray(self._value(group, op.operands[2]), np.int64), (count,))
            where = np.clip(index[:, None] + where, 0, kind.n - 1)
        put: Array = np.zeros(where.shape, ORIGIN)
        if value is not None:
            put = np.broadcast_to(value if value.ndim == 2 else value[:, None], where.shape)
        if group.mask is not None:
            put = np.where(group.mask[:, None], put, np.take_along_axis(new, where, 1))
        np.put_along_axis(new, where, put, 1)
        registers.put(group, self.slots[op.operands[0]], new)

    # -- instructions --------------------------------------------------------------------------------------------------

    def _call(self, registers: Registers, group: Group, op: Op, of_operands: list[Origins], pending: Origins) -> None:
        """An instruction: products by the products of the origins, copies value by value, and others by the rule that
        one uninitialised operand makes all results uninitialised (of the whole warp, where lanes exchange values)."""
        atom = op.attrs["atom"]
        if atom.in_flight and not atom.copies:
            return self._wgmma(registers, group, op, of_operands)
        if atom.multiplies and not atom.agents:
            return self._product(registers, group, op, of_operands)
        if atom.copies and atom.agents:
            if atom.in_flight:  # another check watches its registers until they are loaded
                slot = self.slots[op.operands[0]]
                registers.fill(group, slot, of_operands[0], op.attrs["registers"])
                if pending is not None:  # cells of tensor memory that nothing has written
                    kept = registers.get(group, slot)
                    registers.put(group, slot, pending if kept is None else np.maximum(kept, pending))
            return None
        if atom.copies or (atom.shuffles and op.operands[0].type != BOOL):
            return self._copy(registers, group, op, of_operands, pending)
        return self._other(registers, group, op, of_operands, pending)

    def _product(self, registers: Registers, group: Group, op: Op, of_operands: list[Origins]) -> None:
        """A matrix product of a warp: an accumulator is uninitialised where a factor of it is, or a scale factor."""
        words = [o for o in of_operands[3:] if o is not None and o.ndim == 1]  # scale factors
        if of_operands[1] is not None or of_operands[2] is not None or words:
            bad = run_product(group, op, [self._value(group, v) for v in op.operands], of_operands[1], of_operands[2])
            for word in words:
                bad |= np.repeat(word.reshape(-1, WARP).any(1), WARP)[:, None]
            self._write(registers, group, op.operands[0], bad, of_operands[0], joined_max(of_operands[1:]), keep=True)

    def _other(self, registers: Registers, group: Group, op: Op, of_operands: list[Origins], pending: Origins) -> None:
        """One uninitialised operand makes all results uninitialised, of the whole warp where lanes exchange values."""
        atom = op.attrs["atom"]
        scalars = [o for o in of_operands if o is not None and o.ndim == 1]
        result = joined([*scalars, None if pending is None else pending.reshape(pending.shape[0], -1).max(1)], 0)
        if result is not None and type(atom).__module__.endswith(".warp"):
            active = result if group.mask is None else np.where(group.mask, result, 0)
            result = np.repeat(active.reshape(-1, WARP).max(1), WARP)
        if result is not None and any(a.writes and not _in_shared(v) for v, a in atom.accessed(op)):
            self._report("result", group, op, result)
        for value in op.results:
            wide = result
            if result is not None and isinstance(value.type, VecType):
                wide = np.repeat(result[:, None], value.type.n, axis=1)
            registers.put(group, self.slots[value], wide)

    def _wgmma(self, registers: Registers, group: Group, op: Op, of_operands: list[Origins]) -> None:
        """Accumulators of lanes that do not accumulate are as defined as the operands; what a warp brings in registers
        reaches all accumulators of its lanes."""
        slot, kind = self.slots[op.operands[0]], op.operands[0].type
        assert isinstance(kind, FragType)
        of_a = of_operands[1] if isinstance(op.operands[1].type, FragType) else None
        if of_operands[0] is None and of_a is None:
            return
        new = np.zeros((group.lanes_count, kind.n), ORIGIN) if of_operands[0] is None else of_operands[0].copy()
        acts = np.ones(group.lanes_count, bool) if group.mask is None else group.mask
        written = sorted(product_registers(op, "d"))
        fresh = acts & ~np.broadcast_to(np.asarray(self._value(group, op.operands[3])), acts.shape).astype(bool)
        new[np.ix_(fresh, written)] = 0
        if of_a is not None:
            warps = np.where(acts, np.repeat(of_a.reshape(group.warps.size, -1).max(1), WARP), 0)
            new[:, written] = np.maximum(new[:, written], warps[:, None])
        registers.put(group, slot, new if new.any() else None)

    def _copy(self, registers: Registers, group: Group, op: Op, of_operands: list[Origins], pending: Origins) -> None:
        """Run the copy on booleans in place of values ('comes from uninitialised memory'), so that each value keeps
        its origin wherever the instruction puts it."""
        if pending is None and self._fills(registers, group, op, of_operands):
            return
        for value, origins in zip(op.operands, of_operands, strict=True):
            if value.type == BOOL:
                self._report("branch", group, op, origins)
        # Booleans have no origin: all that is undefined behind the copy gets this one.
        origin = joined_max([pending]) or joined_max(of_operands) or self._origin(op)
        lanes = ShadowLanes(group, partial(self._undefined_at, group), partial(self._mark, group, op, origin))
        after = run_copy(lanes, op, [self._value(group, v) for v in op.operands], of_operands)
        results, operands = after[: len(op.results)], after[len(op.results) :]
        for value, bad in zip(op.results, results, strict=True):
            registers.put(group, self.slots[value], np.where(bad, ORIGIN(origin), ORIGIN(0)) if bad.any() else None)
        for value, bad, old in zip(op.operands, operands, of_operands, strict=True):
            if isinstance(value.type, FragType) and bad.size and (bad.any() or old is not None):
                fresh = None if pending is None else np.asarray(pending.reshape(pending.shape[0], -1).any(1))
                self._write(registers, group, value, bad, old, origin, fresh=fresh)

    def _undefined_at(self, group: Group, pointer: Any, count: int, mask: Array | None) -> Array:
        """``[L, count]`` which of the elements at a pointer are undefined, False in lanes that rest."""
        result = np.zeros((group.lanes_count, count), bool)
        lanes = lanes_of(group, mask)
        if isinstance(pointer.buf, SharedBuffer):
            cells = self._cells_at(group, pointer, count, mask)
            result[lanes] = (self.memory_of(group)[cells] != 0).any(2)
        elif self.arrays:
            off = np.broadcast_to(np.asarray(pointer.off, np.int64), (group.lanes_count,))[lanes]
            result[lanes] = self.arrays.at(pointer.buf, off, count, pointer.elem.bytes)
        return result

    def _mark(self, group: Group, op: Op, origin: int, pointer: Any, bad: Array, mask: Array | None) -> None:
        """The elements at a pointer become undefined where ``bad [L, elements]`` says so, and defined elsewhere. What
        leaves the block is a result."""
        lanes = lanes_of(group, mask)
        if isinstance(pointer.buf, SharedBuffer):
            cells = self._cells_at(group, pointer, bad.shape[1], mask)
            self.memory_of(group)[cells] = np.where(bad[lanes], origin, 0)[..., None]
            self.shared_is_dirty(group)
        elif bad[lanes].any():
            every = np.zeros(group.lanes_count, ORIGIN)
            every[lanes] = np.where(bad[lanes].any(1), origin, 0)
            self._report("result", group, op, every)

    def _cells_at(self, group: Group, pointer: Any, count: int, mask: Array | None) -> Array:
        """``[active lanes, count, cells of an element]``: those of ``count`` elements at a pointer to shared memory."""
        off = np.broadcast_to(np.asarray(pointer.off, np.int64), (group.lanes_count,))
        at = flat_offsets(pointer.buf, group, off if mask is None else off[mask], mask)
        cells = (at[:, None] >> self.shift) + np.arange(max(1, count * pointer.elem.bytes >> self.shift))
        return cells.reshape(cells.shape[0], count, -1)

    def _fills(self, registers: Registers, group: Group, op: Op, of_operands: list[Origins]) -> bool:
        """Whether a copy brings defined values to registers of all lanes. Invariant: then running it on the origins
        (:meth:`_copy`) would do the same, clear these registers and nothing else."""
        attrs = op.attrs
        if "registers" not in attrs or "source_registers" in attrs or attrs.get("store") or group.mask is not None:
            return False
        if any(origins is not None for origins in of_operands[1:]):
            return False
        _, _, predicates = split_operands(op, [self._value(group, v) for v in op.operands])
        if not all(p is None or np.all(p) for p in predicates):
            return False
        registers.fill(group, self.slots[op.operands[0]], of_operands[0], attrs["registers"])
        return True

    def _write(
        self,
        registers: Registers,
        group: Group,
        value: Any,
        bad: Array,
        old: Origins,
        origin: int,
        keep: bool = False,
        fresh: Array | None = None,
    ) -> None:
        """A fragment now holds ``bad`` undefined; what was undefined before keeps its origin, but not in the lanes that
        have loaded something ``fresh``."""
        new = np.where(bad, ORIGIN(origin), ORIGIN(0))
        if old is not None:
            # An accumulator that was undefined stays so (``keep``); a copy replaces what it writes.
            kept = (old != 0) & (bad | keep)
            new = np.where(kept if fresh is None else kept & ~fresh[:, None], old, new)
        registers.put(group, self.slots[value], new if new.any() else None)

    def _value(self, group: Group, value: Any) -> Any:
        """The value of an operand as an instruction sees it."""
        if isinstance(value, Constant):
            return constant_value(value)
        held = group.slots[self.slots[value]]
        if isinstance(value.type, PtrType):
            return TypedPointer(held, value.type.elem, value.type.align)
        return np.asarray(held) if isinstance(held, Columns) else held


def _in_shared(pointer: Any) -> bool:
    return not isinstance(pointer.type, PtrType) or pointer.type.space in SHARED_SPACES


def joined_max(of_operands: list[Origins]) -> int:
    """The largest origin among several registers."""
    return max([int(o.max()) for o in of_operands if o is not None], default=0)
