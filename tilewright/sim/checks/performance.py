"""Notes about speed (not errors): bank conflicts, global accesses that are not coalesced, barriers with nothing
between them, and grids whose last wave is nearly empty.

Of each op the first few executions are looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.core import Block, Function, Op
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.checks.actors import lanes_of, warp_of
from tilewright.sim.checks.checker import Checker
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.places import MemoryPlace, shared_memory
from tilewright.sim.checks.residency import resident_blocks_of
from tilewright.sim.checks.sites import kernel_facts, origin
from tilewright.sim.shared import RANK_SHIFT, SharedBuffer

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group

LOOKS = 2  # executions of each op
BANKS, WORD, SECTOR = 32, 4, 32


class Performance(Checker):
    def begin(self, launch: Launch) -> None:
        self.looked: dict[Op, int] = {}
        self.names = kernel_facts(launch.program).shared_names
        self.filled_by_tma = {
            origin(value)
            for op in kernel_facts(launch.program).calls
            for value, access in op.attrs["atom"].accessed(op)
            if access.agent == "tma" and access.role == "destination" and "tensor" in op.attrs["atom"].name
        }
        self._waves(launch)
        for first, second in redundant(kernel_facts(launch.program).function):
            self._note(
                "redundant-barrier",
                "two barriers with no access to memory between them",
                [Party("barrier", second), Party("after", first)],
                "leave one of them out",
            )

    def access(
        self, verb: str, buffer: Any, group: Group, off: Array, access: Any, mask: Array | None, values: Any
    ) -> None:
        op = group.lanes.op
        if self.looked.setdefault(op, 0) >= LOOKS or verb == "atomic":
            return
        self.looked[op] += 1
        lanes = lanes_of(group, mask)
        row = int(lanes[0]) // WARP
        mine = off[lanes // WARP == row]
        if isinstance(buffer, SharedBuffer):
            self._banks(verb, group, row, mine, access.nbytes)
        else:
            self._sectors(verb, group, row, mine, access.nbytes)

    def pointed(
        self, verb: str, buffer: Any, group: Group, pointer: Any, access: Any, mask: Array | None, values: Any
    ) -> None:
        if self.looked.get(group.lanes.op, 0) < LOOKS:
            off = np.broadcast_to(np.asarray(pointer.off, np.int64), (group.lanes_count,))
            self.access(verb, buffer, group, off if mask is None else off[mask], access, mask, None)

    def _banks(self, verb: str, group: Group, row: int, off: Array, size: int) -> None:
        """An access of 4 bytes or less is one wavefront, one of 8 or 16 bytes is two or four, unless banks collide."""
        per = max(1, WARP * WORD // max(size, WORD))  # lanes that are served together
        worst = 1
        for start in range(0, off.size, per):
            part = off[start : start + per]
            words = np.unique((part[:, None] + np.arange(0, max(size, 1), WORD)).reshape(-1) // WORD)
            block = words * WORD >> RANK_SHIFT  # each block of a cluster has banks of its own
            worst = max(worst, int(np.unique(block * BANKS + words % BANKS, return_counts=True)[1].max()))
        if worst > 1:
            self._note(
                "bank-conflict",
                f"a shared-memory access of {size} bytes a thread takes {worst} times as long: "
                "lanes name different words of one bank",
                [Party(verb, group.lanes.op, warp_of(group, row))],
                self._bank_advice(group.lanes.op, size),
                shared_memory(int(off[0]) & (1 << RANK_SHIFT) - 1, size, self.names),
            )

    def _bank_advice(self, op: Op, size: int) -> str:
        if self.filled_by_tma & {origin(value) for value in op.operands}:
            return (
                "swizzle the tile: give its layout and its TMA atom the swizzle whose span is a row (32, 64 or 128 "
                "bytes: tilewright.layout.design_swizzle(element_bytes, 16 // element_bytes, row)); no padding, "
                "because TMA fills the rows of a box one after another"
            )
        return (
            f"let the lanes of a warp name different banks: lengthen each row by {max(size, WORD)} bytes of "
            "padding, or swizzle the layout: tilewright.layout.solve_swizzle(layout, accesses, element_bits) finds "
            "the swizzle for all accesses to it"
        )

    def _sectors(self, verb: str, group: Group, row: int, off: Array, size: int) -> None:
        sectors = np.unique((off[:, None] + np.array([0, max(size, 1) - 1])) // SECTOR).size
        # The sectors that as many different elements fill if they are neighbours.
        least = -(-np.unique(off).size * size // SECTOR)
        if sectors >= 2 * least + 2:
            what = f"a global access of a warp touches {sectors} sectors of 32 bytes, where {least} would do"
            self._note(
                "uncoalesced",
                what,
                [Party(verb, group.lanes.op, warp_of(group, row))],
                "let neighbouring threads access neighbouring elements",
            )

    def _waves(self, launch: Launch) -> None:
        geometry = launch.geometry
        held = resident_blocks_of(launch)
        full, rest = divmod(geometry.blocks, held)
        if full and 0 < rest < held // 4:
            what = f"{geometry.blocks} blocks are {full} full waves of {held} and one of {rest}"
            self._note(
                "partial-wave",
                f"{what}: most of the GPU waits for the last",
                [],
                "choose tiles so that the waves fill, or share the work among persistent blocks",
            )

    def _note(self, rule: str, what: str, parties: list[Party], fix: str, memory: MemoryPlace | None = None) -> None:
        key = (rule, *(str(p.op.loc) if p.op is not None else "" for p in parties))
        if not self.findings.counted(key):
            self.findings.add(Finding(rule, what, parties, memory, "", fix, level="note"), key)


def redundant(function: Function) -> list[tuple[Op, Op]]:
    """Pairs of ``sync_threads`` one after the other with no access to memory in between."""
    pairs: list[tuple[Op, Op]] = []

    def follow(block: Block) -> None:
        last: Op | None = None
        for op in block.ops:
            if op.opcode == "call" and op.attrs["atom"].whole_block:
                if last is not None:
                    pairs.append((last, op))
                last = op
            elif op.regions or op.opcode in ("load", "store", "call"):
                last = None
            for region in op.regions:
                follow(region)

    follow(function.body)
    return pairs
