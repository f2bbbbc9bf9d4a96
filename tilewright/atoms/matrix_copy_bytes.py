"""``ldmatrix.m16n16`` and ``stmatrix.m16n8``: transposed matrices of 8-bit cells; ``ldmatrix.m8n16``: rows of 4- and
6-bit numbers, a byte for each in registers (PTX ISA; CuTe: include/cute/atom/copy_traits_sm100.hpp, which the layouts
are from).

Transposed, a register of lane ``l`` has the cells of two neighbouring rows of columns ``l / 4`` and ``l / 4 + 8``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from tilewright.atoms.copy import as_index, check_fragment, split_operands, write_registers
from tilewright.atoms.ldmatrix import LdMatrix
from tilewright.atoms.matrix_copy import MatrixCopy
from tilewright.atoms.matrix_tiles import unpacked
from tilewright.atoms.stmatrix import StMatrix
from tilewright.errors import ConstraintError
from tilewright.ir.core import Op
from tilewright.ir.instruction import Lanes
from tilewright.ir.lanes import Array
from tilewright.ir.types import element_of
from tilewright.layout import Layout, offsets

ROW = 16
ARCHITECTURES = (100, 103, 110, 120, 121)


@cache
def places(copy: MatrixCopy) -> Array:
    """``[lane, byte of its registers]``: the byte among those of the rows, lane after lane."""
    held = offsets(copy.memory_bits, (32, 8 * ROW))[: copy.rows, ::8].reshape(-1) // 8
    where = np.empty(held.size, np.intp)
    where[held] = np.arange(held.size)
    chosen: Array = where[offsets(copy.register_bits, (32, 32 * copy.words))[:, ::8] // 8]
    return chosen


class _Cells(MatrixCopy):
    """What copies of 8-bit cells share."""

    min_arch = 100
    features: ClassVar[tuple[int, ...]] = ARCHITECTURES

    def verify(self, op: Op) -> None:
        elem = check_fragment(self, op, 32 * self.words).elem
        if elem.width != 8:
            raise ConstraintError(f"{self}: moves cells of 8 bits, not {elem}")
        super().verify(op)


class _Transposed(_Cells):
    """What transposing loads and stores share."""

    def contiguity_hint(self) -> str:
        return "use LdMatrix8x16x8bOp or StMatrix8x8x16bOp, which do not transpose cells of 8 bits, on this one"

    @property
    def register_bits(self) -> Layout:
        return Layout(((4, 8), (8, 2, 2, self.words)), ((256, 8), (1, 128, 64, 1024)))


@dataclass(frozen=True, repr=False)
class LdMatrixBytes(_Transposed, LdMatrix):
    """``ldmatrix.sync.aligned.m16n16.xN.trans.shared.b8``, of one or two matrices.

    >>> LdMatrixBytes(2), LdMatrixBytes(2).src_bits
    (SM100_U8x16_LDSM_T, ((2,2,4,2),128):((128,1024,256,2048),1))
    """

    transpose: bool = True

    name = "ldmatrix.m16n16"

    def check_parameters(self) -> None:
        if self.num_matrices not in (1, 2):
            raise ConstraintError(f"{self.name} moves 1 or 2 matrices, not num_matrices={self.num_matrices}")

    @property
    def rows(self) -> int:
        return 16 * self.num_matrices

    @property
    def words(self) -> int:
        return 2 * self.num_matrices

    @property
    def memory_bits(self) -> Layout:
        second = 2048 if self.num_matrices == 2 else 0
        return Layout(((2, 2, 4, 2), 8 * ROW), ((128, 1024, 256, second), 1))

    @property
    def cute_name(self) -> str:
        return f"SM100_U8x{8 * self.num_matrices}_LDSM_T"

    def form(self) -> str:
        return f"ldmatrix.sync.aligned.m16n16.x{self.num_matrices}.trans.shared.b8"

    def numbers(self, rows: Array) -> Array:
        """The 16 numbers of each row of 16 bytes, a byte for each."""
        return rows

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        (fragment,), pointers, _ = split_operands(op, operands)
        busy, place = self.busy_mask(lanes), places(self)
        for registers, pointer in zip(op.attrs["registers"], pointers, strict=True):
            rows = self.numbers(np.ascontiguousarray(lanes.load(pointer, ROW, busy)).view("u1"))
            cells = np.ascontiguousarray(rows.reshape(-1, 32 * ROW)[:, place].reshape(-1, place.shape[1]))
            write_registers(fragment, registers, cells.view(fragment.dtype), lanes.mask)
        return ()


@dataclass(frozen=True, repr=False)
class StMatrixBytes(_Transposed, StMatrix):
    """``stmatrix.sync.aligned.m16n8.xN.trans.shared.b8``, of one, two or four matrices.

    >>> StMatrixBytes(2), StMatrixBytes(2).src_bits
    (SM100_U8x8_STSM_T, ((4,8),(8,2,2,2)):((256,8),(1,128,64,1024)))
    """

    transpose: bool = True

    name = "stmatrix.m16n8"

    @property
    def cute_name(self) -> str:
        return f"SM100_U8x{4 * self.num_matrices}_STSM_T"

    def form(self) -> str:
        return f"stmatrix.sync.aligned.m16n8.x{self.num_matrices}.trans.shared.b8"

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        (fragment,), pointers, _ = split_operands(op, operands)
        elem, busy, place = element_of(op.operands[1].type), self.busy_mask(lanes), places(self)
        for registers, pointer in zip(op.attrs["registers"], pointers, strict=True):
            values = np.ascontiguousarray(fragment[:, as_index(registers)]).view("u1")
            rows = np.zeros((len(values) // 32, 32 * ROW), np.uint8)
            rows[:, place] = values.reshape(-1, *place.shape)
            lanes.store(pointer, rows.reshape(-1, ROW).view(elem.dtype), busy)
        return ()


@dataclass(frozen=True, repr=False)
class LdMatrixUnpacking(_Cells, LdMatrix):
    """``ldmatrix.sync.aligned.m8n16.xN.shared.b8x16``, of one, two or four matrices of 8 rows: of the 16 bytes of a row
    the first 8 or 12 have 16 numbers of ``width`` 4 or 6 bits, as TMA leaves them. Each becomes the low bits of a byte.

    >>> LdMatrixUnpacking(4, width=6)
    SM100_SU6_DU8x16_x4_LDSM_N
    """

    width: int = 4

    name = "ldmatrix.m8n16"

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.width not in (4, 6):
            raise ConstraintError(f"{self.name} unpacks numbers of 4 or 6 bits, not of {self.width}")

    def contiguity_hint(self) -> str:
        return "keep the 16 bytes of a row together"

    def mnemonic(self) -> str:
        return f"{self.name}.x{self.num_matrices}.b{self.width}"

    @property
    def cute_name(self) -> str:
        return f"SM100_SU{self.width}_DU8x16_x{self.num_matrices}_LDSM_N"

    def form(self) -> str:
        packed = f"b{self.width}x16_p{8 * ROW - 16 * self.width}"
        return f"ldmatrix.sync.aligned.m8n16.x{self.num_matrices}.shared.b8x16.{packed}"

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        (fragment,), pointers, _ = split_operands(op, operands)
        busy = self.busy_mask(lanes)
        for registers, pointer in zip(op.attrs["registers"], pointers, strict=True):
            rows = np.ascontiguousarray(lanes.load(pointer, ROW, busy)).view("u1")
            numbers = np.ascontiguousarray(unpacked(rows[:, : 2 * self.width], self.width))
            cells = self.to_registers(numbers.view("u2").reshape(-1, 32, 8))
            write_registers(fragment, registers, np.ascontiguousarray(cells).view(fragment.dtype), lanes.mask)
        return ()


@dataclass(frozen=True, repr=False)
class LdMatrixBytesUnpacking(LdMatrixBytes):
    """``ldmatrix.sync.aligned.m16n16.xN.trans.shared.b8x16``: rows of 16 bytes with 16 numbers of ``width`` 4 or 6
    bits, as :class:`LdMatrixUnpacking` reads them, transposed as :class:`LdMatrixBytes` does.

    >>> LdMatrixBytesUnpacking(1, width=6).form()
    'ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.b6x16_p32'
    """

    width: int = 4

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.width not in (4, 6):
            raise ConstraintError(f"{self.name} unpacks numbers of 4 or 6 bits, not of {self.width}")

    def mnemonic(self) -> str:
        return f"{super().mnemonic()}.b{self.width}"

    @property
    def cute_name(self) -> str:
        return f"SM100_SU{self.width}_DU8x{8 * self.num_matrices}_LDSM_T"

    def form(self) -> str:
        packed = f"b{self.width}x16_p{8 * ROW - 16 * self.width}"
        return f"ldmatrix.sync.aligned.m16n16.x{self.num_matrices}.trans.shared.b8x16.{packed}"

    def numbers(self, rows: Array) -> Array:
        return unpacked(rows[:, : 2 * self.width], self.width)
