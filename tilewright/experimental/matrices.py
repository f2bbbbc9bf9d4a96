"""The primitives ``ldmatrix`` and ``stmatrix``: matrices between shared memory and a warp's registers, word by word."""

from __future__ import annotations

import enum
from typing import Any

from tilewright.atoms.ldmatrix import LdMatrix
from tilewright.atoms.matrix_copy import MatrixCopy
from tilewright.atoms.matrix_copy_bytes import (
    LdMatrixBytes,
    LdMatrixBytesUnpacking,
    LdMatrixUnpacking,
    StMatrixBytes,
)
from tilewright.atoms.stmatrix import StMatrix
from tilewright.errors import ConstraintError
from tilewright.experimental.choices import MMALayout, chosen
from tilewright.ir.builder import Builder
from tilewright.ir.types import U8, U16
from tilewright.lang.device.array import Array
from tilewright.lang.device.bulk_bytes import place_operand
from tilewright.lang.numbers.numeric import Int32, Uint8, Uint16, unwrap
from tilewright.lang.tensors.algebra import make_rmem_tensor, recast_tensor
from tilewright.lang.tensors.tensor import Tensor
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from tilewright.lang.tensors.vector import Vector

__all__ = ["LoadShape", "LoadSrcFormat", "StoreShape", "ldmatrix", "stmatrix"]
ROW = 16
"""Bytes that a lane's pointer names."""


class LoadShape(enum.Enum):
    """The matrices of :func:`ldmatrix`: of 8x8 cells of 16 bits, of 8 rows of 16 numbers of 4 or 6 bits, of 16x16 cells
    of 8 bits (or of such numbers).
    """

    M8N8 = "m8n8"
    M8N16 = "m8n16"
    M16N16 = "m16n16"


class LoadSrcFormat(enum.Enum):
    """What a row of 16 bytes holds: 16 bytes, or 16 numbers of 6 or 4 bits with padding behind them, which become a
    byte each.
    """

    B8 = "b8"
    B6X16_P32 = "b6x16_p32"
    B4X16_P64 = "b4x16_p64"


class StoreShape(enum.Enum):
    """The matrices of :func:`stmatrix`: of 8x8 cells of 16 bits, or of 16x8 cells of 8 bits."""

    M8N8 = "m8n8"
    M16N8 = "m16n8"


_WIDTHS = {LoadSrcFormat.B6X16_P32: 6, LoadSrcFormat.B4X16_P64: 4}


def ldmatrix(
    ptr: Any,
    num: int,
    layout: Any = MMALayout.ROW,
    *,
    shape: Any = LoadShape.M8N8,
    src_format: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> TensorSSA:
    """Load ``num`` 32-bit words of each lane, as a Vector of Int32: 1, 2 or 4 matrices of 8 rows (``m16n16``, two words
    each: 1 or 2). Each lane's ``ptr`` names a row of 16 bytes of shared memory: lane i row i of the first matrix, and
    so on. A whole warp. ``layout=COL``: transposed (``m16n16`` only so).

    ``src_format``: of ``m8n16`` and ``m16n16`` (sm_100a, sm_120a and their like), what the rows hold.

    >>> from tilewright import Int16
    >>> def first_word(t):
    ...     tile = arch.alloc_smem(Int16, 64, 16)
    ...     for i in range(2):
    ...         (tile + 2 * t + i).store(Int16(2 * t + i))
    ...     arch.sync_warp()
    ...     return ldmatrix(tile + 8 * (t % 8), 1)[0]
    >>> [hex(x) for x in per_thread(first_word, 32)[:3]]  # two numbers of 16 bits
    ['0x10000', '0x30002', '0x50004']
    """
    what = "ldmatrix"
    instruction = _load(int(unwrap(num)), *_chosen(layout, shape, LoadShape, what), src_format)
    bits, number = _cells(instruction)
    registers = make_rmem_tensor(32 * instruction.words // bits.width, number)
    _move(instruction, registers, place_operand(ptr, what, bits, ROW))
    return recast_tensor(registers, Int32).load()


def stmatrix(
    ptr: Any,
    values: Any,
    layout: Any = MMALayout.ROW,
    *,
    shape: Any = StoreShape.M8N8,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """Store 1, 2 or 4 words of each lane, a Vector or a sequence of Int32, as so many matrices: what :func:`ldmatrix`
    gives goes back to the same rows. sm_90 and later; ``m16n8``, which is always transposed (``layout=COL``), sm_100a,
    sm_120a and their like.

    >>> from tilewright import Int16, Int32
    >>> def transposed(t):
    ...     tile = arch.alloc_smem(Int16, 64, 16)
    ...     stmatrix(tile + 8 * (t % 8), [t << 16 | t], "col")
    ...     arch.sync_warp()
    ...     return Int32((tile + t).load())
    >>> per_thread(transposed, 32)[:10]  # the first row is what the lanes of column 0 hold
    [0, 4, 8, 12, 16, 20, 24, 28, 0, 4]
    """
    what = "stmatrix"
    mode, form = _chosen(layout, shape, StoreShape, what)
    if isinstance(values, Array):
        values = values.load(0, int(values.shape[0]))
    vector = values if isinstance(values, TensorSSA) else Vector.from_elements(list(values), Int32)
    if vector.dtype.width != 32:
        raise ConstraintError(f"{what} takes words of 32 bits, not {vector.numel} x {vector.dtype}: bitcast to Int32")
    transposed = mode is MMALayout.COL
    if form is StoreShape.M16N8 and not transposed:
        raise ConstraintError(f"{what}: m16n8 is always transposed: layout=MMALayout.COL")
    kind = StMatrixBytes if form is StoreShape.M16N8 else StMatrix
    instruction = kind(int(vector.numel), transposed)
    bits, number = _cells(instruction)
    registers = make_rmem_tensor(32 * instruction.words // bits.width, number)
    recast_tensor(registers, vector.dtype).store(vector)
    _move(instruction, registers, place_operand(ptr, what, bits, ROW))


def _chosen(layout: Any, shape: Any, shapes: Any, what: str) -> tuple[MMALayout, Any]:
    return chosen(MMALayout, layout, what), chosen(shapes, shape, what)


def _load(num: int, layout: MMALayout, shape: LoadShape, src_format: Any) -> MatrixCopy:
    """The instruction; ConstraintError if PTX does not have it."""
    transposed = layout is MMALayout.COL
    if shape is LoadShape.M8N8:
        if src_format is not None:
            raise ConstraintError("ldmatrix: src_format is for m8n16 and m16n16; m8n8 has cells of 16 bits")
        return LdMatrix(num, transposed)
    source = LoadSrcFormat.B8 if src_format is None else chosen(LoadSrcFormat, src_format, "ldmatrix")
    if transposed is (shape is LoadShape.M8N16):
        way = "never" if shape is LoadShape.M8N16 else "always"
        raise ConstraintError(f"ldmatrix: {shape.value} is {way} transposed, not layout={layout}")
    if shape is LoadShape.M8N16:
        if source is LoadSrcFormat.B8:
            raise ConstraintError("ldmatrix: m8n16 unpacks: src_format is B6X16_P32 or B4X16_P64")
        return LdMatrixUnpacking(num, width=_WIDTHS[source])
    if num not in (2, 4):
        raise ConstraintError(f"ldmatrix: a matrix of m16n16 is two words of each lane: num is 2 or 4, not {num}")
    if source is LoadSrcFormat.B8:
        return LdMatrixBytes(num // 2)
    return LdMatrixBytesUnpacking(num // 2, width=_WIDTHS[source])


def _cells(instruction: MatrixCopy) -> tuple[Any, Any]:
    """The type of the cells, and the number that stands for it."""
    return (U16, Uint16) if type(instruction) in (LdMatrix, StMatrix) else (U8, Uint8)


def _move(instruction: MatrixCopy, registers: Tensor, place: Any) -> None:
    stores = isinstance(instruction, StMatrix)
    numbers = (tuple(range(int(registers.shape))),)
    operands = [registers.engine.frag, place]
    Builder.current().call(instruction, operands, registers=numbers, store=stores, predicated=False)
