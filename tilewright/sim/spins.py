"""While loops that change nothing: what they read, and whether one more iteration could differ.

Spinning is how GPU programs wait for memory, so the simulator must neither let a spinning warp run forever (the one it
waits for would never come) nor call it a hang too early. It cannot know what a loop is for, but it can know that one
more iteration would be like the last one.

A loop is *quiet* when its body writes only what it carries. An iteration of a quiet loop that leaves the carried
values as they were is *still*: the next one is the same unless another warp, or something asynchronous, changes memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.atoms.mbarrier_state import Mbarriers
from tilewright.ir.core import Op, Value
from tilewright.ir.types import PtrType
from tilewright.sim.access import VectorAccess
from tilewright.sim.memory import AbsoluteMemory
from tilewright.sim.progress import LoopInputs
from tilewright.sim.shared import SharedBuffer
from tilewright.sim.values import Ptr

if TYPE_CHECKING:
    from tilewright.sim.group import Group
    from tilewright.sim.lowering import Lowering

WRITES = frozenset(("store", "frag.store", "printf", "launch"))


class SpinLoop:
    """One while loop. ``reads``: the pointers that its iterations read, their registers, and whether an mbarrier is
    there. ``inputs``: what its condition is computed from."""

    __slots__ = ("op", "quiet", "reads", "inputs")

    def __init__(self, low: Lowering, op: Op) -> None:
        # Quiet: repeating the iteration with the same memory and the same carried values changes nothing. The clock
        # differs at each reading, and an instruction says itself whether it is quiet.
        self.op = op
        self.inputs = LoopInputs(low, op)
        self.quiet = True
        self.reads: list[tuple[Value, int, bool]] = []
        for inner in op.walk():
            atom = inner.attrs.get("atom") if inner.opcode == "call" else None
            clock = inner.opcode == "sreg" and inner.attrs["name"] == "clock"
            self.quiet &= inner.opcode not in WRITES and not clock and (atom is None or atom.quiet)
            if inner.opcode == "load":
                self.reads.append((inner.operands[0], low.slot(inner.operands[0]), False))
            elif atom is not None:
                self.reads += [
                    (pointer, low.slot(pointer), access.role == "mbarrier")
                    for pointer, access in atom.accessed(inner)
                    if access.reads and isinstance(pointer.type, PtrType)
                ]

    def still(self, group: Group, old: list[Any], new: list[Any]) -> bool:
        """Whether the iteration from the carried values ``old`` to ``new`` changed nothing."""
        # Atomics are quiet as instructions; whether one has changed its place, the memory has noted in the group.
        changed, group.changed = group.changed, False
        return self.quiet and not changed and all(map(_same, old, new))

    def describe(self, group: Group, row: int) -> str:
        """The places that the first active lane of the warp in ``row`` reads, for its condition if that reads memory:
        each place and what it holds."""
        mask = group.mask
        lanes = np.arange(row * 32, row * 32 + 32)
        active = lanes if mask is None else lanes[mask[lanes]]
        lane = int(active[0]) if active.size else int(lanes[0])
        mine = [read for read in self.reads if read[0] in self.inputs.pointers] or self.reads
        places = [_place(group, lane, *read) for read in mine]
        return ", ".join(dict.fromkeys(text for text in places if text))


def _same(old: Any, new: Any) -> bool:
    """Equal in all lanes; a NaN differs from itself and so counts as a change: a hang is reported late rather than
    wrongly."""
    if old is new:
        return True
    if old is None or new is None:
        return False
    if isinstance(old, Ptr):
        return old.buf is new.buf and np.array_equal(old.off, new.off)
    return np.shape(old) == np.shape(new) and np.array_equal(old, new)


def _place(group: Group, lane: int, pointer: Value, slot: int, mbarrier: bool) -> str:
    held = group.slots[slot]
    kind = pointer.type
    if held is None or not isinstance(kind, PtrType):
        return ""
    off, buffer = held.off if isinstance(held.off, int) else int(held.off[lane]), held.buf
    if isinstance(buffer, AbsoluteMemory):  # an address without an array of its own: find the array that it is in
        buffer = next((b for b in buffer.space.exposed() if b.base + b.low <= off < b.base + b.high), None)
        if buffer is None:
            return f"address {off:#x}"
        off -= buffer.base
    shared = isinstance(buffer, SharedBuffer)
    block = int(group.warps[lane // 32]) // group.wave.geometry.warps
    if mbarrier:
        table: Mbarriers | None = group.wave.kept.get(Mbarriers)
        row = -1 if table is None else int(table.rows(np.array([(block << 32) + off]))[0])
        return "" if table is None or row < 0 else table.describe(row)
    access = VectorAccess(kind.elem, 1, kind.elem.bytes, True)
    at = off + block * buffer.stride if shared else off
    value = buffer.bytes[at : at + access.nbytes].copy().view(access.dtype)
    holds = f"{kind.elem} {value[0]}" if value.size else str(kind.elem)
    if shared:
        return f"{holds} at shared-memory offset {off}"
    return f"{holds} at address {buffer.base + off:#x}, byte offset {off - buffer.low} {buffer.extent(access)}"
