"""Whether the matrix descriptors of an asynchronous unit stay inside the allocation that they were derived from.

Where a program computes the address, as ``descriptor + stage * 256``, no tensor gives the bounds of a coordinate. But
an address that was derived from one allocation must stay inside it: what lies behind it depends on what else the kernel
allocates, and in which order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.core import Op
from tilewright.ir.target import WARP
from tilewright.sim.checks.actors import thread_of
from tilewright.sim.checks.checker import Checker
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.places import shared_memory
from tilewright.sim.checks.sites import kernel_facts

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.shared import PieceReads

Extents = dict[tuple[int, int], Op]


class Allocations(Checker):
    """``extents``: for each op with matrix descriptors, the bytes of the allocations that they were derived from, and
    the ``smem.alloc`` of each; None if that is not known for every descriptor."""

    def begin(self, launch: Launch) -> None:
        known = kernel_facts(launch.program)
        self.names, self.known = known.shared_names, known
        self.extents: dict[Op, Extents | None] = {}

    def pieces(self, group: Group, reads: PieceReads, rows: Any) -> None:
        op = group.lanes.op
        if op not in self.extents:
            self.extents[op] = self._extents(op)
        extents = self.extents[op]
        if extents is None:
            return
        low, high = reads.span
        if any(start <= low and high <= stop for start, stop in extents):
            return
        key = ("bounds", str(op.loc or id(op)))
        if self.findings.counted(key):
            return
        # The operand is the one from whose allocation most of the bytes are read.
        (start, stop), of = max(extents.items(), key=lambda e: min(high, e[0][1]) - max(low, e[0][0]))
        places = reads.offsets
        outside = (places < start) | (places + 16 > stop)
        unit = int(np.argmax(outside.any(1)))
        at = int(places[unit][outside[unit]][0]) if outside.any() else low
        named = self.names.at(start)
        name = named.name if named is not None else "the allocation"
        self.findings.add(
            Finding(
                "bounds",
                f"a matrix descriptor derived from {name} reaches other memory: bytes {low} to {high - 1} of shared "
                f"memory, where {name} has {start} to {stop - 1}",
                [Party("read", op, thread_of(group, WARP * int(rows[unit]))), Party("of the allocation", of)],
                shared_memory(at, 16, self.names),
                "what is there depends on what else the kernel allocates, and in which order",
                "count the stage modulo the stages of the ring, or allocate all that the instruction reads",
            ),
            key,
        )

    def _extents(self, op: Op) -> Extents | None:
        found: Extents = {}
        for value in self.known.descriptors.get(op, ()):
            allocated = self.known.derived_from.get(value)
            # The size of dynamic shared memory as a whole is not known here.
            if not allocated or not all(of.attrs["bytes"] for of in allocated):
                return None
            found.update({(of.attrs["offset"], of.attrs["offset"] + of.attrs["bytes"]): of for of in allocated})
        return found or None
