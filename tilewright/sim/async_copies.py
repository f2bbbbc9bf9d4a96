"""``cp.async``: all repetitions of a call at once, where all lanes make them and no observer follows each of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.atoms.copy import split_operands
from tilewright.atoms.cp_async import AGENT, CpAsync
from tilewright.ir.core import Op
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.ir.types import PtrType
from tilewright.sim.access import VectorAccess, access_of
from tilewright.sim.moves import Arrangement, by_pointer, gather_arranged, scatter_arranged
from tilewright.sim.program import Closure
from tilewright.sim.values import Ptr, TypedPointer


def is_async_copy(op: Op) -> bool:
    return op.opcode == "call" and isinstance(op.attrs["atom"], CpAsync)


def async_copy(plain: Closure, op: Op, slots: list[int]) -> Closure:
    """The step of a call whose plain step is ``plain``; ``slots`` are the registers of its operands."""
    sources, targets, predicates = split_operands(op, slots)
    conditions = [p for p in dict.fromkeys(predicates) if p is not None]
    kind: Any = op.operands[0].type
    to: Any = op.operands[len(sources)].type
    assert isinstance(kind, PtrType) and isinstance(to, PtrType)
    nbytes, count = op.attrs["atom"].bits // 8, len(sources)
    read = access_of(kind.elem, nbytes // kind.elem.bytes, nbytes, False)
    write = access_of(to.elem, nbytes // to.elem.bytes, nbytes, False)
    order = Arrangement(np.repeat(np.arange(count), WARP), np.tile(np.arange(WARP), count))  # [repetitions, lanes]

    def run(group: Any, slots: list[Any]) -> None:
        followed = group.events is not None and group.events.each_effect
        if group.mask is None and not followed and all(slots[p] is np.True_ or slots[p].all() for p in conditions):
            group.lanes.mask, group.lanes.op = None, op
            copied = gather_arranged(group, [slots[p] for p in sources], read, order)
            if copied is not None:
                group.lanes.defer(AGENT, Arrivals(group, [slots[p] for p in targets], write, to, order, copied))
                return
        plain(group, slots)

    return run


class Arrivals:
    """The moment at which the bytes of one call appear in shared memory."""

    def __init__(
        self, group: Any, targets: list[Ptr], access: VectorAccess, kind: PtrType, order: Arrangement, items: Array
    ) -> None:
        self.group, self.targets, self.access, self.kind = group, targets, access, kind
        self.order, self.items = order, items

    def __call__(self) -> None:
        if scatter_arranged(self.group, self.targets, self.access, self.order, self.items):
            return
        parts = by_pointer(self.items, self.access, len(self.targets))
        for target, values in zip(self.targets, parts, strict=True):
            self.group.lanes.store(TypedPointer(target, self.kind.elem, self.kind.align), values)
