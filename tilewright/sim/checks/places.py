"""Which memory: the tensor's name, the coordinate or element, the bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.errors import byte_count
from tilewright.ir.core import Location, Op
from tilewright.ir.lanes import Array
from tilewright.ir.tensormap import TENSOR_MAP
from tilewright.ir.types import PtrType
from tilewright.sim.checks.sites import SHARED_SPACES, origin
from tilewright.sim.messages import source_line
from tilewright.sim.shared import RANK_SHIFT, SharedBuffer
from tilewright.sim.shared_names import SharedNames, written

if TYPE_CHECKING:
    from tilewright.sim.group import Group


@dataclass(frozen=True)
class MemoryPlace:
    """``space``: ``shared``, ``global`` or ``registers``; ``name``: of the tensor or allocation; ``element``: its
    number or its coordinate; ``offset``: in bytes from the start of the block's shared memory, or an address."""

    space: str
    size: int
    offset: int
    name: str = ""
    element: int | tuple[int, ...] | None = None
    allocated: Location | None = None
    line: str = ""

    def __str__(self) -> str:
        if self.space == "global":
            where = self.name or "an array"
            if isinstance(self.element, tuple):
                where += f"[{', '.join(map(str, self.element))}]"
            return f"{where}: {byte_count(self.size)} at address {self.offset:#x}"
        if self.space == "registers":
            return f"registers of {self.name}, {byte_count(self.size)} of each thread"
        bytes_ = f"{byte_count(self.size)} at shared-memory offset {self.offset}"
        if not self.name:
            return bytes_
        line = f" (allocated {self.line})" if self.line else ""
        return f"{written(self.name, self.element)}{line}: {bytes_}"


def flat_offsets(buffer: SharedBuffer, group: Group, off: Array, mask: Array | None) -> Array:
    """Offsets of the active lanes in shared memory, as accesses name them, as bytes from the start of the wave's."""
    base = group.smem_base
    if type(base) is not int and mask is not None:
        base = base[mask]
    if off.size and int(off.max()) >> RANK_SHIFT:
        off, base = buffer._mapped(off, base)
    offsets: Array = off + base
    return offsets


def shared_memory(offset: int, size: int, names: SharedNames) -> MemoryPlace:
    """A place in shared memory; ``names``: the kernel's (``facts(program).shared_names``)."""
    named = names.at(offset)
    if named is None:
        return MemoryPlace("shared", size, offset)
    return MemoryPlace(
        "shared", size, offset, named.name, named.element_at(offset), named.alloc.loc, source_line(named.alloc)
    )


def global_memory(op: Op | None, buffer: Any, offset: int, size: int) -> MemoryPlace:
    """A place in an array of the caller; ``op``: one that names it, ``offset``: bytes from the buffer's base."""
    name = ""
    for value in op.operands if op is not None else ():
        root = origin(value)
        is_global = isinstance(value.type, PtrType) and value.type.space not in SHARED_SPACES
        if is_global or root.type == TENSOR_MAP:
            name = root.hint or name
    coordinate = _coordinate(buffer.owner, offset - buffer.low)
    if coordinate is None:
        name = f"{name or 'an array'} at byte {offset - buffer.low}"
    return MemoryPlace("global", size, buffer.base + offset, name, coordinate)


def _coordinate(owner: Any, at: int) -> tuple[int, ...] | None:
    """The index of the element at byte ``at`` of an array of NumPy's or PyTorch's."""
    if isinstance(owner, np.ndarray):
        strides = owner.strides
    elif hasattr(owner, "element_size") and hasattr(owner, "stride"):
        strides = tuple(int(s) * owner.element_size() for s in owner.stride())
    else:
        return None
    # A byte of a broadcast or reversed array has no coordinate, or several.
    if not strides or any(s <= 0 for s in strides):
        return None
    coordinate = [0] * len(strides)
    # By the largest stride first the quotients are the coordinate, if modes do not overlap.
    for mode in sorted(range(len(strides)), key=lambda k: -strides[k]):
        coordinate[mode], at = divmod(at, strides[mode])
        if coordinate[mode] >= owner.shape[mode]:
            return None
    return tuple(coordinate)
