"""The op ``launch`` of host functions: what each of its operands is."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.ir.core import Constant, Op, Value
from tilewright.ir.types import I32

OWN_SMEM = Constant(I32, -1)
"""In place of a number of bytes of shared memory: what the kernel's allocations need."""


class LaunchOperands(NamedTuple):
    """The operands of a launch. ``grid``, ``block`` and ``cluster`` are three extents each, along x, y and z."""

    grid: list[Value]
    block: list[Value]
    cluster: list[Value]
    smem: Value
    stream: Value | None
    arguments: list[Value]
    """One for each parameter of the kernel."""

    @classmethod
    def of(cls, op: Op) -> LaunchOperands:
        grid, block, cluster = (op.operands[i : i + 3] for i in (0, 3, 6))
        smem, *rest = op.operands[9:]
        stream = rest.pop(0) if op.attrs.get("has_stream") and rest else None
        return cls(grid, block, cluster, smem, stream, rest)

    @property
    def sizes(self) -> list[Value]:
        """The extents, and the bytes of shared memory."""
        return [*self.grid, *self.block, *self.cluster, self.smem]

    @property
    def flat(self) -> list[Value]:
        """All operands, in the order of the op."""
        return [*self.sizes, *([] if self.stream is None else [self.stream]), *self.arguments]

    @property
    def takes_own_smem(self) -> bool:
        return isinstance(self.smem, Constant) and self.smem.value == OWN_SMEM.value

    @property
    def is_empty(self) -> bool:
        """Whether the grid is known to have no blocks: nothing is launched."""
        return any(isinstance(n, Constant) and n.value == 0 for n in self.grid)

    @property
    def unknown_grid(self) -> list[Value]:
        """The extents of the grid that are known when the host function runs; nothing is launched where one is 0."""
        return [n for n in self.grid if not isinstance(n, Constant)]
