"""The user's variables at a place of a running kernel: numbers from registers, tensors from memory through their
layouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tilewright.errors import ArgumentError, nearest
from tilewright.ir.core import Block, Constant, Function, Op, Value, Variable
from tilewright.ir.ops import PURE
from tilewright.ir.target import WARP
from tilewright.ir.types import FragType, PtrType, element_of
from tilewright.sim.access import VectorAccess
from tilewright.sim.group import Group
from tilewright.sim.lowering import constant_value
from tilewright.sim.memory import AbsoluteMemory
from tilewright.sim.program import Program
from tilewright.sim.shared import SharedBuffer
from tilewright.sim.steps import STEPS
from tilewright.sim.values import Ptr


class ValueUnavailable(Exception):
    """The machine does not hold the value here."""


class Variables:
    """The variables of the warp in ``row`` of a group that stopped before ``op``: of one ``lane``, or of all 32 (None).

    The language front notes each assignment to a variable, with the op staged last before it: that is its place in the
    program. Loops and branches give their values the names of the variables that they carry.
    """

    def __init__(self, program: Program, group: Group, op: Op, row: int, lane: int | None) -> None:
        self.function: Function = program.function
        self.slots: dict[Value, int] = program.slots
        self.template = program.template
        self.group, self.op, self.row, self.lane = group, op, row, lane
        self.positions = {each: k for k, each in enumerate(self.function.walk())}
        self.here = self.positions[op]
        self.around = _around(self.function.body, op) or []

    # -- names ---------------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The names of the variables assigned so far, in alphabetical order."""
        assigned = {v.name for v in self.function.variables if _is_shown(v.value) and self._at(v) < self.here}
        return sorted(assigned | {name for name, _, _ in self._carried()})

    def find(self, name: str) -> Any:
        """The value of ``name`` here: what was assigned to it last, in this file if it was there, or what a loop or
        a branch has made of it."""
        notes = [v for v in self.function.variables if v.name == name and _is_shown(v.value)]
        # Helpers in other files have variables of the same names.
        file = self.op.loc.file if self.op.loc is not None else ""
        notes = [v for v in notes if v.loc.file == file] or notes
        before: list[tuple[float, int, Any]] = [(self._at(v), k, v.value) for k, v in enumerate(notes)]
        before += [(at, -1, value) for variable, at, value in self._carried() if variable == name]
        before = [assignment for assignment in before if assignment[0] < self.here]
        if before:
            return max(before, key=lambda assignment: assignment[:2])[2]
        if notes:
            return notes[-1].value
        variable = sorted({v.name for v in self.function.variables})
        raise ArgumentError(f"kernel {self.function.name!r} has no variable {name!r}{nearest(name, variable)}")

    def _at(self, variable: Variable) -> float:
        """Where in the program a variable was assigned; behind everything, if that is in a region that is over."""
        values = [self.function.replaced.get(v, v) for v in _values(variable.value)]
        owners = [v.op for v in values if v.op is not None]
        if any(o in self.positions and not self._open(o) for o in owners):
            return float("inf")
        if variable.after is not None and variable.after in self.positions:
            owners.append(variable.after)
        return max((self.positions.get(o, -1) for o in owners), default=-1)

    def _open(self, op: Op) -> bool:
        """Whether ``op`` is in a block around the place."""
        return any(op in block.ops for block, _ in self.around)

    def _carried(self) -> Iterator[tuple[str, float, Value]]:
        """The names that loops around the place carry, and that loops and branches before it have left: where, and as
        which value."""
        for block, owner in self.around:
            at = self.positions[owner] if owner is not None else -1
            for value in block.args if owner is not None else ():
                if value.hint:
                    yield value.hint, at + 0.5, value
            for op in block.ops:
                if self.positions[op] >= self.here:
                    break
                if op.regions or op.opcode == "select":  # what a branch leaves may be chosen without one
                    end = self.positions[list(op.walk())[-1]]
                    for value in op.results:
                        if value.hint:
                            yield value.hint, end + 0.5, value

    # -- numbers -------------------------------------------------------------------------------------------------------

    def register(self, value: Value) -> Any:
        """The contents of a value of the IR: a number or an array ``[..]`` of the lane, or ``[32, ..]`` of the warp."""
        return self._rows(self._held(value), value)

    def _held(self, value: Value) -> Any:
        """The same for all lanes of the group, as registers hold it."""
        # Optimisation may have replaced the value that the variable was assigned by an equal one.
        value = self.function.replaced.get(value, value)
        if isinstance(value, Constant):
            return constant_value(value)
        slot = self.slots.get(value)
        if slot is None:
            return self._computed(value)
        # A register's slot is emptied after its last use.
        held = self.group.slots[slot]
        if held is None:
            raise ValueUnavailable("it has no value here: not yet assigned, or not used any more")
        return held

    def _computed(self, value: Value) -> Any:
        """A value that the kernel itself does not compute, because nothing needs it."""
        op = value.op
        if op is None or op.opcode not in PURE | {"sreg"}:
            raise ValueUnavailable("the kernel never uses it when it runs, so that it is not computed")
        # The op is run on registers of its own: nothing of the launch changes.
        registers = [*map(self._held, op.operands), None]
        STEPS[op.opcode](op, list(range(len(op.operands))), [len(op.operands)])(self.group, registers)
        return registers[-1]

    def _rows(self, held: Any, value: Value) -> Any:
        if isinstance(held, Ptr):
            off = self._lanes(np.asarray(held.off), 1)
            return Ptr(held.buf, off if np.ndim(off) else int(off))
        wide = 1 if isinstance(value.type, FragType) or hasattr(value.type, "n") else 0
        return self._lanes(np.asarray(held), 1 + wide)

    def _lanes(self, array: np.ndarray, per_lane: int) -> Any:
        """The rows of the lane or warp of an array whose first axis is lanes, if it has ``per_lane`` axes."""
        if array.ndim == per_lane:
            first = self.row * WARP
            array = array[first : first + WARP] if self.lane is None else array[first + self.lane]
        return array.copy() if array.ndim else array[()]

    def number(self, value: Any) -> Any:
        """A number of the language, or a Python number."""
        if isinstance(value, (int, float, str)) or value is None:
            return value
        value = getattr(value, "value", value)
        return self.register(value) if isinstance(value, Value) else value

    # -- tensors -------------------------------------------------------------------------------------------------------

    def tensor(self, value: Any) -> np.ndarray:
        """The elements of a tensor as this lane sees them: an array with the extents of the layout's modes."""
        if self.lane is None:
            raise ArgumentError("a tensor is seen by one lane: choose it")
        engine, linear = value.engine, value.linear
        try:
            offsets = self._offsets(linear)
        except ValueUnavailable:
            return self._whole(engine, linear)
        if hasattr(engine, "frag"):
            held = np.asarray(self.register(engine.frag))
            values: np.ndarray = held[offsets + int(self.number(engine.offset))]
            return values
        # Engines of fragments have ``frag``, those of memory ``base``; those of coordinates have neither.
        if not hasattr(engine, "base"):
            raise ArgumentError("a tensor of coordinates, or of descriptors of wgmma, has no elements in memory")
        pointer = self.register(engine.base)
        start = int(self.number(engine.const)) + int(self.number(engine.pending))
        size = element_of(engine.base.type).bytes
        moved = (offsets + start) * size
        if engine.swizzle is not None:
            moved = engine.swizzle.of(moved)
        return self._loaded(pointer, moved, engine.base.type)

    def _whole(self, engine: Any, linear: Any) -> np.ndarray:
        """The caller's array behind a tensor whose extents the kernel was not given, because it does not use them."""
        unknown = ValueUnavailable("the kernel does not use its extents when it runs, so that they are not known")
        if not isinstance(getattr(engine, "base", None), Value):
            raise unknown
        pointer = self.register(engine.base)
        owner = getattr(pointer.buf, "owner", None)
        rank = len(linear.shape) if isinstance(linear.shape, tuple) else 1
        if not isinstance(owner, np.ndarray) or owner.ndim != rank or int(pointer.off) != pointer.buf.low:
            raise unknown
        return owner.copy()

    def _loaded(self, pointer: Ptr, moved: np.ndarray, kind: Any) -> np.ndarray:
        """The elements at these bytes from ``pointer``, masked where they are out of the bounds of its memory."""
        assert isinstance(kind, PtrType)
        buffer, off = pointer.buf, int(pointer.off) + moved
        if isinstance(buffer, AbsoluteMemory):
            # A pointer that the kernel has read from memory: its number tells which of the arrays it points into.
            buffers = [b for b in buffer.space.exposed() if b.base + b.low <= int(pointer.off) < b.base + b.high]
            if not buffers:
                raise ValueUnavailable("it points to no array that the launch knows")
            buffer, off = buffers[0], off - buffers[0].base
        if isinstance(buffer, SharedBuffer):
            # Shared memory is one array for all blocks of the wave: a row of ``stride`` bytes for each.
            block = int(self.group.warps[self.row]) // self.group.wave.geometry.warps
            off = off + block * buffer.stride
            low, high = block * buffer.stride, (block + 1) * buffer.stride
        else:
            low, high = buffer.low, buffer.high
        access = VectorAccess(kind.elem, 1, kind.elem.bytes, True)
        inside = (off >= low) & (off <= high - access.nbytes)
        # Read at an address that is valid, then mask: one gather for all elements.
        flat = np.where(inside, off, low).reshape(-1)
        raw = buffer.bytes[flat[:, None] + np.arange(access.nbytes)]
        values = (raw[:, 0] != 0) if access.bool_ else np.ascontiguousarray(raw).view(access.dtype)[:, 0]
        values = values.reshape(off.shape)
        return values if inside.all() else np.ma.masked_array(values, ~inside)

    def _offsets(self, layout: Any) -> np.ndarray:
        """The offset of each element, an axis for each mode of the layout."""
        shape, stride = getattr(layout, "shape", None), getattr(layout, "stride", None)
        if shape is None or stride is None:
            raise ArgumentError(f"the layout {layout} cannot be followed here")
        modes = list(zip(shape, stride, strict=True)) if isinstance(shape, tuple) else [(shape, stride)]
        offsets = np.zeros((), np.int64)
        for mode in modes:
            offsets = offsets[..., None] + self._mode(*mode)
        return offsets

    def _mode(self, shape: Any, stride: Any) -> np.ndarray:
        if isinstance(shape, tuple):
            offsets = np.zeros(1, np.int64)
            for part in zip(shape, stride, strict=True):
                offsets = (self._mode(*part)[:, None] + offsets).reshape(-1)  # the first mode moves fastest
            return offsets
        return np.arange(int(self.number(shape)), dtype=np.int64) * int(self.number(stride))


def _around(block: Block, op: Op, owner: Op | None = None) -> list[tuple[Block, Op | None]]:
    """The blocks that ``op`` is in, outermost first, each with the op that it is a region of; empty if none."""
    if op in block.ops:
        return [(block, owner)]
    for inner in block.ops:
        for region in inner.regions:
            regions = _around(region, op, inner)
            if regions:
                return [(block, owner), *regions]
    return []


def _is_shown(value: Any) -> bool:
    if isinstance(value, (int, float)):
        return True
    return isinstance(getattr(value, "value", None), Value) or hasattr(value, "linear")


def _values(value: Any) -> list[Value]:
    engine = getattr(value, "engine", None)
    values = [getattr(value, "value", None), getattr(engine, "frag", None), getattr(engine, "base", None)]
    return [value for value in values if isinstance(value, Value)]
