"""The common part of ldmatrix and stmatrix: 8x8 matrices of 16-bit cells between shared memory and a warp's registers.

Memory side: lane ``8 j + i`` points to row ``i`` of matrix ``j`` (16 bytes, the lanes beyond the last matrix are not
asked). Register side: lane ``l`` holds, of each matrix, the two neighbours at row ``l / 4``, columns ``2 (l % 4)`` and
the next; transposed, the two rows ``2 (l % 4)`` and the next of column ``l / 4``.
"""

from __future__ import annotations

import numpy as np

from tilewright.atoms.copy import REGISTERS, CopyInstruction, check_fragment, check_pointer, check_width, split_operands
from tilewright.atoms.mma import active_warps
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed
from tilewright.ir.core import Op
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Lanes
from tilewright.ir.lanes import Array
from tilewright.ir.types import MemSpace
from tilewright.layout import Layout


class MatrixCopy(CopyInstruction):
    """ldmatrix or stmatrix with ``num_matrices`` 1, 2 or 4, plain or transposed."""

    num_matrices: int
    transpose: bool

    thr_id = Layout(32, 1)
    exchanges = True

    def _sides(self, memory: str, registers: str) -> tuple[Access, Access]:
        """The accesses of the memory side (a row of 16 bytes from each of the busy lanes) and of the register side."""
        role = {"read": "source", "write": "destination"}
        rows = Access(memory, role[memory], (MemSpace.SMEM,), bits=128, lanes=self.rows)
        return rows, Access(registers, role[registers], REGISTERS, bits=32 * self.words)

    @property
    def rows(self) -> int:
        """Lanes that point to a row of 16 bytes."""
        return 8 * self.num_matrices

    @property
    def words(self) -> int:
        """Registers of each lane."""
        return self.num_matrices

    def contiguity_hint(self) -> str:
        return f"use the instruction with transpose={not self.transpose} on this one"

    def check_parameters(self) -> None:
        if self.num_matrices not in (1, 2, 4):
            raise ConstraintError(f"{self.name} moves 1, 2 or 4 matrices, not num_matrices={self.num_matrices}")

    @property
    def memory_bits(self) -> Layout:
        """(lane, bit) of the memory side; the idle lanes repeat the busy ones."""
        busy = self.rows
        return Layout((32, 128), (128, 1)) if busy == 32 else Layout(((busy, 32 // busy), 128), ((128, 0), 1))

    @property
    def register_bits(self) -> Layout:
        """(lane, bit) of the register side."""
        n = self.num_matrices
        if self.transpose:
            return Layout(
                ((4, 8), (16, 2) + ((n,) if n > 1 else ())), ((256, 16), (1, 128) + ((1024,) if n > 1 else ()))
            )
        return Layout((32, (32, n)), (32, (1, 1024))) if n > 1 else Layout((32, 32), (32, 1))

    @computed
    def ref_bits(self) -> Layout:
        return self.register_bits

    def mnemonic(self) -> str:
        return f"{self.name}.x{self.num_matrices}{'.trans' if self.transpose else ''}"

    def verify(self, op: Op) -> None:
        _, pointers, predicates = split_operands(op, op.operands)
        if op.attrs.get("predicated"):
            raise ConstraintError(f"{self}: cannot be predicated, all 32 lanes execute it: load and select instead")
        fragment = check_fragment(self, op, 32 * self.words)
        memory = self.source if self.destination.registers else self.destination
        for pointer in pointers:
            kind = check_pointer(
                self,
                memory,
                pointer,
                "each lane names a row of 16 bytes, so rows of the shared-memory layout must start at multiples of "
                "16 bytes and the tensor must be allocated with byte_alignment=16",
            )
            check_width(self, fragment.elem, kind.elem)
        if fragment.elem.width not in (8, 16, 32):
            raise ConstraintError(f"{self}: moves 16-bit cells; elements of {fragment.elem} do not fit")
        if self.transpose and fragment.elem.width == 32:
            raise ConstraintError(
                f"{self}: transposes 16-bit cells, which would tear {fragment.elem} apart: use transpose=False"
            )
        per = 32 // fragment.elem.width
        for registers in op.attrs["registers"]:
            for i in range(0, len(registers), per):
                cell = registers[i : i + per]
                if cell != tuple(range(cell[0], cell[0] + per)) or cell[0] % per:
                    raise ConstraintError(
                        f"{self}: one 32-bit register holds {per} neighbours, but values V{i}..V{i + per - 1} are the "
                        f"fragment elements {list(cell)}: retile the fragment with this copy (thr_copy.retile)"
                    )

    def busy_mask(self, lanes: Lanes) -> Array | None:
        """The lanes whose addresses count."""
        active_warps(lanes, self)
        if self.rows == 32:
            return lanes.mask
        busy = lanes.lane() < self.rows
        return busy if lanes.mask is None else busy & lanes.mask

    def to_registers(self, rows: Array) -> Array:
        """16-bit cells ``[warps, 32, 8]`` of the memory side as ``[lanes, 2 * num_matrices]`` of the register side."""
        n = self.num_matrices
        if not self.transpose:  # neighbours stay together: half as many items of twice the width
            pairs = np.ascontiguousarray(rows).view("u4")[:, : 8 * n].reshape(-1, n, 8, 4)
            return np.ascontiguousarray(pairs.transpose(0, 2, 3, 1).reshape(-1, n)).view(rows.dtype)
        cells = rows[:, : 8 * n].reshape(-1, n, 8, 8).swapaxes(2, 3)
        return cells.reshape(-1, n, 8, 4, 2).transpose(0, 2, 3, 1, 4).reshape(-1, 2 * n)

    def _to_rows(self, registers: Array) -> Array:
        """The inverse: ``[lanes, 2 * num_matrices]`` as ``[lanes, 8]``, zero for idle lanes."""
        n = self.num_matrices
        cells = registers.reshape(-1, 8, 4, n, 2).transpose(0, 3, 1, 2, 4).reshape(-1, n, 8, 8)
        if self.transpose:
            cells = cells.swapaxes(2, 3)
        rows = np.zeros((len(cells), 32, 8), dtype=cells.dtype)
        rows[:, : 8 * n] = cells.reshape(-1, 8 * n, 8)
        return rows.reshape(-1, 8)
