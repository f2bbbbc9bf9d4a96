"""Uninitialised values: registers, shared memory, tensor memory and arrays of the caller that were never written, where
they reach a result (a store to global memory), a branch or an address. Only moving them is not an error: padding is
copied together with the data.

Every cell of shared memory and every register that holds such a value remembers where it was first read
(:mod:`.taint`); operations hand it on (:mod:`.register_origins`). Which elements of the caller's arrays are
undefined is read from their contents (:mod:`.caller_arrays`), also where a copy has brought them to shared memory.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.atoms.tensor_memory import LOAD
from tilewright.errors import SimulationError
from tilewright.ir.core import Op
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.ir.types import FragType, MemSpace, PtrType
from tilewright.sim.access import WIDEST
from tilewright.sim.checks.actors import actor_in_wave, lanes_of, thread_of
from tilewright.sim.checks.places import MemoryPlace, flat_offsets, shared_memory
from tilewright.sim.checks.reach import blocks_of, span_at, span_of
from tilewright.sim.checks.register_origins import RegisterOrigins
from tilewright.sim.checks.sites import kernel_facts
from tilewright.sim.checks.taint import ORIGIN, Origins, Registers, joined
from tilewright.sim.checks.undefined import Origin, finding_of
from tilewright.sim.checks.written_cells import WrittenCells
from tilewright.sim.events import RunAgain
from tilewright.sim.shared import RANK_SHIFT, PieceReads, SharedBuffer

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.wave import Wave

UNWRITTEN = 1  # the origin of shared memory that was never written
MOST_PLACES = 512  # of accesses that are remembered for a group


class Uninitialised(RegisterOrigins):
    follows_issues = False  # what cp.async brings appears at a wait

    def begin(self, launch: Launch) -> None:
        self.launch = launch
        facts = kernel_facts(launch.program)
        super().begin(launch)
        self.names, self.maybe_unwritten = facts.shared_names, facts.maybe_unwritten
        if not self.thorough:
            # Invariant: no register is undefined before the first read of shared memory that was never written, unless
            # some are likely to be (``likely_unwritten``). At that read all registers are followed from then on,
            # beginning with the op itself.
            self.arrays.held.clear()
            self.maybe_unwritten = facts.likely_unwritten
            if not facts.likely_unwritten:
                self.asleep = frozenset({"executed", "flow", "land"})
        read = facts.may_read_unwritten if self.thorough else facts.allocations or facts.likely_unwritten
        concerned = self.arrays or read or facts.tensor_memory
        if launch.events is not None and not concerned:
            launch.events.dismiss([self])
        elif self.asleep:
            launch.sleep(self)
        self.finest = facts.least_shared_element.bit_length() - 1
        self.shift = WIDEST.bit_length() - 1 if self.asleep else self.finest
        self.slots = launch.program.slots
        self.origins = [Origin(None, None), Origin(None, None)]
        self.numbers: dict[Any, int] = {}
        self.registers: dict[Wave, Registers] = {}
        self.memory: dict[Wave, Array] = {}
        self.written_cells: dict[Wave, WrittenCells] = {}
        self.pending: Origins = None  # of what the op that is executed has read from memory
        self.stored: dict[Op, deque[tuple[int, int, int]]] = {}
        self.within_shared: dict[Op, bool] = {}
        self.carried: dict[Op, Array] = {}  # cells on their way from one block's shared memory to another's

    def wave(self, wave: Wave) -> None:
        self.registers[wave] = Registers(len(wave.coords) * wave.geometry.warps * WARP)
        self._keep(wave, np.full((wave.shared.bytes.size >> self.shift) + 1, UNWRITTEN, ORIGIN))

    def _keep(self, wave: Wave, cells: Array) -> None:
        self.memory[wave] = cells
        self.written_cells[wave] = WrittenCells(cells, wave.shared.stride >> self.shift, len(wave.coords))

    def wake(self) -> None:
        """Follow the registers from here on. From here on an origin may stand in each element of shared memory."""
        self.launch.wake(self)
        self._divide_cells(1)

    def _divide_cells(self, size: int) -> None:
        """Have cells of at most ``size`` bytes, or of the kernel's least element. Invariant: while the check is asleep,
        all accesses were of whole cells, and a cell is written or not, so the parts of a cell are what it is. (Narrower
        cells from the start find the same, and cost an access of 16 bytes up to 16 times as much.)"""
        shift = max(self.finest, size.bit_length() - 1)
        parts, self.shift = 1 << max(0, self.shift - shift), min(self.shift, shift)
        for wave, cells in self.memory.items() if parts > 1 else ():
            self._keep(wave, np.repeat(cells, parts))

    def _origin(self, op: Op, offset: int | None = None) -> int:
        """The number of the origin ``op``; ``offset`` in shared memory, for what it reads there."""
        found = self.numbers.get(op)
        if found is None:
            memory = None
            if offset is not None:
                memory = shared_memory(offset, 1 << self.shift, self.names)
            elif op.opcode == "call" and op.attrs["atom"].name == LOAD:
                memory = MemoryPlace("tensor", 0, 0, "tensor memory")
            elif op.opcode == "frag.alloc":
                kind = op.result.type
                memory = MemoryPlace(
                    "registers",
                    kind.n * kind.elem.bytes if isinstance(kind, FragType) else 0,
                    0,
                    op.result.hint or "a fragment",
                )
            self.origins.append(Origin(op, memory))
            found = self.numbers[op] = min(len(self.origins) - 1, np.iinfo(ORIGIN).max)
        return found

    # -- memory --------------------------------------------------------------------------------------------------------

    def pointed(
        self, verb: str, buffer: Any, group: Group, pointer: Any, access: Any, mask: Array | None, values: Any
    ) -> None:
        if isinstance(buffer, SharedBuffer):
            if (
                mask is None
                and pointer.root is not None
                and self._again(group, (pointer.root, pointer.add, 0, access.nbytes))
            ):
                return
            if not self._changes_nothing(verb, group, span_of((pointer,), access.nbytes), access):
                super().pointed(verb, buffer, group, pointer, access, mask, values)
        elif buffer in self.arrays.held and verb != "store":
            off = np.broadcast_to(np.asarray(pointer.off, np.int64), (group.lanes_count,))
            self.read_array(verb, buffer, group, off if mask is None else off[mask], access, mask)

    def pointed_together(
        self,
        verb: str,
        buffer: Any,
        group: Group,
        pointer: Any,
        distances: Sequence[int],
        access: Any,
        values: Callable[[int], Any],
    ) -> None:
        if isinstance(buffer, SharedBuffer):
            if self._again(group, (pointer.root, pointer.add, tuple(distances), access.nbytes)):
                return
            if self._changes_nothing(verb, group, span_at(pointer, distances, access.nbytes), access):
                return
        elif not self.arrays:
            return
        for at in distances:  # the registers of an op, not what it stores, say what is undefined
            self.pointed(verb, buffer, group, pointer.plus(at), access, None, None)

    def pointed_each(
        self,
        verb: str,
        buffer: Any,
        group: Group,
        pointers: Sequence[Any],
        access: Any,
        values: Callable[[int], Any],
    ) -> None:
        if isinstance(buffer, SharedBuffer):
            if self._changes_nothing(verb, group, span_of(pointers, access.nbytes), access):
                return
        elif not self.arrays:
            return
        for pointer in pointers:
            self.pointed(verb, buffer, group, pointer, access, None, None)

    def loaded(self, group: Group, pointer: Any, access: Any, copies: Sequence[tuple[Op, tuple[int, ...]]]) -> None:
        if isinstance(pointer.buf, SharedBuffer):
            if self._again(group, (pointer.root, pointer.add, copies, access.nbytes)):
                return
            distances = [at for _, distances in copies for at in distances]
            if self._changes_nothing("load", group, span_at(pointer, distances, access.nbytes), access):
                return
        elif not self.arrays:
            return
        super().loaded(group, pointer, access, copies)

    def _again(self, group: Group, places: Any) -> bool:
        """Whether the group has accessed these places of shared memory before, in all lanes. Invariant: while the check
        is asleep, each access finds all of its cells written (else the check wakes), or writes them, and they stay so
        until :meth:`WrittenCells.forget`."""
        if not self.asleep:
            return False
        forgets = self.written_cells[group.wave].forgets
        known: tuple[int, set[Any]] | None = group.registers.get("check.written")
        if known is None or known[0] != forgets or len(known[1]) > MOST_PLACES:
            known = group.registers["check.written"] = forgets, set()
        if places in known[1]:
            return True
        known[1].add(places)
        return False

    def _changes_nothing(self, verb: str, group: Group, span: tuple[int, int], access: Any) -> bool:
        """Whether accesses to the bytes ``span`` of shared memory find or change nothing. Invariant: True only where
        all bytes between the first and the last that they reach are written in their blocks: loads find nothing there,
        and only stores of undefined values change anything."""
        if self.landing is not None:
            return False
        if access.width >> self.shift == 0:
            self._divide_cells(access.width)
        low, high = span
        if high >> RANK_SHIFT:  # in other blocks of the cluster
            return False
        first, stop = low >> self.shift, -(-high >> self.shift)
        written, blocks = self.written_cells[group.wave], blocks_of(group)
        if verb == "load":
            return written.has(blocks, first, stop)
        return written.known(blocks, first, stop) and not (
            group.lanes.op.opcode == "store" and self.registers[group.wave].held
        )

    def access(
        self, verb: str, buffer: Any, group: Group, off: Array, access: Any, mask: Array | None, values: Any
    ) -> None:
        """Stores make cells initialised, unless the value that they store is not; loads hand the origins of what they
        read to the result of the op (``pending``)."""
        if not isinstance(buffer, SharedBuffer):
            if buffer in self.arrays.held:
                self.read_array(verb, buffer, group, off, access, mask)
            return
        if access.width >> self.shift == 0:
            self._divide_cells(access.width)
        memory, op = self.memory[group.wave], group.lanes.op
        at = flat_offsets(buffer, group, off, mask) >> self.shift
        count = max(1, access.nbytes >> self.shift)
        cells = at if count == 1 else at[:, None] + np.arange(count)
        if verb == "store":
            held = self.registers[group.wave].held
            memory[cells] = 0
            self.written_cells[group.wave].writes += 1
            if self.landing is not None:
                self.landing.append(cells)
            if held and op.opcode == "store":
                self._store(group, op, memory, cells, mask)
            return
        found = memory[cells]
        undefined = bool(np.maximum.reduce(found, axis=None, initial=0))
        # The first undefined value: the registers are followed from this op on, which is executed again.
        if self.asleep and undefined:
            self.wake()
            raise RunAgain
        if not undefined:
            if verb == "atomic" and self.registers[group.wave].held:
                self._update(group, op, memory, cells, mask)
            return
        if (found == UNWRITTEN).any():
            first = int(np.flatnonzero((found == UNWRITTEN).reshape(found.shape[0], -1).any(1))[0])
            found[found == UNWRITTEN] = self._origin(op, int(off[first]) & 0xFFFFFF)
        origins = np.zeros((group.lanes_count, *found.shape[1:]), ORIGIN)
        origins[lanes_of(group, mask)] = found
        self.pending = origins if self.pending is None else np.maximum(self.pending, origins)
        if verb == "atomic":
            if getattr(op.attrs["atom"], "kind", "") == "exch":
                memory[cells] = 0
            self._update(group, op, memory, cells, mask)

    def _store(self, group: Group, op: Op, memory: Array, cells: Array, mask: Array | None) -> None:
        """Undefined values go to shared memory."""
        slot = self.slots.get(op.operands[1])
        origins = None if slot is None else self.registers[group.wave].get(group, slot)
        if origins is not None:
            mine = origins if mask is None else origins[mask]
            wide = mine.reshape(mine.shape[0], -1)
            per = cells.reshape(mine.shape[0], -1)
            memory[per] = np.repeat(wide, per.shape[1] // wide.shape[1], axis=1)
            self.written_cells[group.wave].forget()

    def _update(self, group: Group, op: Op, memory: Array, cells: Array, mask: Array | None) -> None:
        """An atomic with undefined operands leaves an undefined value."""
        registers = self.registers[group.wave]
        operands = [self.slots.get(v) for v in op.operands[1:]]
        origins = joined([registers.get(group, s) for s in operands if s is not None], group.lanes_count)
        if origins is not None and origins.ndim == 1:
            mine = origins if mask is None else origins[mask]
            memory[cells] = np.maximum(memory[cells], mine if cells.ndim == 1 else mine[:, None])
            self.written_cells[group.wave].forget()

    def stretch(
        self, group: Group, memory: str, start: int, shape: tuple[int, ...], strides: tuple[int, ...], writes: bool
    ) -> None:
        if memory == "global" and self.arrays:
            self.array_stretch(group, start, shape, strides, writes)
        if memory == "global" and not writes:
            return
        if memory == "shared" and writes and not self.carried and self._again(group, (start, shape)):
            return
        op, size = group.lanes.op, math.prod(shape)
        if memory == "shared":
            self._divide_cells((start | size) & -(start | size))
            where = slice(start >> self.shift, (start + size) >> self.shift)
            cells = self.memory[group.wave][where]
            if writes:
                carried = self.carried.pop(op, None)
                cells[:] = 0 if carried is None else carried
                self.written_cells[group.wave].writes += 1
                if carried is not None and carried.any():
                    self.written_cells[group.wave].forget()
                if self.landing is not None:
                    self.landing.append(np.arange(where.start, where.stop))
            elif self._within_shared(op):
                self.carried[op] = cells.copy()
            else:
                undefined = int(np.count_nonzero(cells)) << self.shift
                self.stored.setdefault(op, deque()).append((undefined, size, int(cells.max(initial=0))))
        elif writes and self.stored.get(op):
            undefined, whole, origin = self.stored[op].popleft()
            if undefined > whole - size:  # more than a box that hangs over the edge leaves behind
                every = np.full(group.lanes_count, origin if origin != UNWRITTEN else self._origin(op), ORIGIN)
                self._report("result", group, op, every)

    def _within_shared(self, op: Op) -> bool:
        """Whether an asynchronous copy that reads shared memory ends there, too."""
        found = self.within_shared.get(op)
        if found is None:
            ends = [a for a in op.attrs["atom"].accesses if a.role == "destination"]
            found = self.within_shared[op] = any(MemSpace.SMEM in a.memories for a in ends)
        return found

    def pieces(self, group: Group, reads: PieceReads, rows: Array) -> None:
        """wgmma reads its operands: what comes of undefined ones is undefined in all accumulators of its warps.
        (Accumulators in tensor memory are not followed.)"""
        op, (low, high) = group.lanes.op, reads.span
        if not isinstance(op.operands[0].type, FragType):
            return
        if self.written_cells[group.wave].has(blocks_of(group), low >> self.shift, high >> self.shift):
            return
        cells = (reads.start[..., None] >> self.shift) + np.arange(16 >> self.shift)
        bad = (self.memory[group.wave][cells] != 0).reshape(len(rows), -1).any(1)
        if not bad.any():
            return
        if self.asleep:  # a product takes place when a warp waits for it: the registers are read after that node
            self.wake()
        kind, slot = op.operands[0].type, self.slots[op.operands[0]]
        registers, per = self.registers[group.wave], group.warps.size // max(1, len(rows))
        old = registers.get(group, slot)
        origins = np.zeros((group.lanes_count, kind.n), ORIGIN) if old is None else old.copy()
        offset = int(reads.offsets[bad][0][0])
        for row in rows[bad]:
            origins[int(row) * WARP : (int(row) + per) * WARP] = self._origin(op, offset)
        registers.put(group, slot, origins)

    def unwritten(self, group: Group, registers: Array) -> None:
        """A load of cells of tensor memory that nothing has written since they were allocated."""
        if self.asleep:
            self.wake()
            raise RunAgain
        self.pending = np.where(registers, ORIGIN(self._origin(group.lanes.op)), ORIGIN(0))

    def memory_of(self, group: Group) -> Array:
        return self.memory[group.wave]

    def shared_is_dirty(self, group: Group) -> None:
        self.written_cells[group.wave].forget()

    # -- findings ------------------------------------------------------------------------------------------------------

    def _report(self, sink: str, group: Group, op: Op, origins: Origins) -> None:
        if origins is None:
            return
        by_lane = origins.reshape(origins.shape[0], -1).max(1)
        if group.mask is not None and group.mask.any():  # no lane is active where a copy lands late
            by_lane = np.where(group.mask, by_lane, 0)
        bad = np.flatnonzero(by_lane)
        if not bad.size:
            return
        lane = int(bad[0])
        origin = self.origins[int(by_lane[lane])]
        self.findings.add(finding_of(sink, op, thread_of(group, lane), origin, int(bad.size)))

    def error(self, launch: Launch, error: SimulationError) -> None:
        """A fault of an op whose address comes from an undefined value: that value is the cause."""
        for value in error.op.operands if error.op is not None else ():
            for wave, registers in self.registers.items():
                lanes = registers.held.get(self.slots.get(value, -1))
                if lanes is not None and isinstance(value.type, PtrType) and lanes.any():
                    first = int(np.flatnonzero(lanes)[0])
                    who = actor_in_wave(wave, first // WARP, first % WARP)
                    origin = self.origins[int(lanes[first])]
                    self.findings.add(finding_of("address", error.op, who, origin, int(np.count_nonzero(lanes))))
