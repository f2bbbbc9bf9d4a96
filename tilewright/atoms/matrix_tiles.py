"""Where the bytes of an operand are that matrix descriptors name, and the matrix that they make: for the simulator."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tilewright.atoms import numbers
from tilewright.atoms.matrix_descriptor import UNIT
from tilewright.atoms.tables import offsets
from tilewright.ir.lanes import Array
from tilewright.ir.types import ScalarType
from tilewright.layout.swizzle import Swizzle

FIELD = 0x3FFF
"""The bits of a field of a descriptor."""


@lru_cache(maxsize=1024)
def addresses(
    words: tuple[int, ...], layout: Any, major: str, swizzle: Swizzle, stride: int, rows: int, k: int, type_: ScalarType
) -> Array:
    """``[units, pieces]``: where in shared memory the pieces of 16 bytes are that descriptors with these low words and
    a call's ``layout`` name, by repetition, then in the order of :func:`chunk_table`."""
    steps = offsets(layout[1])[:, None] + offsets(layout[2])[None, :]
    low = np.array(words, np.int64)
    start = ((low[:, None, None] + steps) & FIELD) * UNIT
    chunks = np.stack([chunk_table(major, swizzle, int(w >> 16) & FIELD, stride, rows, k, type_) for w in low])
    address = start[..., None] + chunks[:, None, None]
    if swizzle.bits:
        address ^= (address >> (swizzle.base + swizzle.shift) & ((1 << swizzle.bits) - 1)) << swizzle.base
    flat: Array = address.reshape(low.size, -1)
    flat.flags.writeable = False
    return flat


@lru_cache(maxsize=512)
def chunk_table(major: str, swizzle: Swizzle, leading: int, stride: int, rows: int, k: int, type_: ScalarType) -> Array:
    """Byte offsets, before the swizzle of bytes, of the pieces of 16 bytes of one instruction's operand.

    K-major ``(row, piece)``, MN-major ``(piece, k)``, the second index running faster; canonical layouts as in
    :mod:`tilewright.atoms.matrix_descriptor`.
    """
    bits = swizzle.bits
    width, rows_of_k = 1 << (bits + swizzle.base - 4), 1 << swizzle.shift
    if major == "K":
        row, piece = np.arange(rows)[:, None], np.arange(k * type_.width // (8 * UNIT))[None, :]
        units = row % 8 * width + row // 8 * stride + piece * (1 if bits else leading)
    else:
        piece, row = np.arange(rows * type_.width // (8 * UNIT))[:, None], np.arange(k)[None, :]
        along_mn, along_k = (leading, stride) if bits else (stride, leading)
        units = piece % width + piece // width * along_mn + row % rows_of_k * width + row // rows_of_k * along_k
    return (units * UNIT).reshape(-1)


def unpacked(packed: Array, width: int) -> Array:
    """The numbers of 4 or 6 bits in the last mode, in a byte each; the first ones are in the lowest bits.

    >>> unpacked(np.array([0x21, 0x43], np.uint8), 4), unpacked(np.array([0x41, 0x30, 0x10], np.uint8), 6)
    (array([1, 2, 3, 4], dtype=uint8), array([1, 1, 3, 4], dtype=uint8))
    """
    if width == 4:
        return np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1)
    threes = packed.reshape(*packed.shape[:-1], -1, 3).astype(np.uint32)
    words = threes[..., 0] | threes[..., 1] << 8 | threes[..., 2] << 16
    numbers_ = np.stack([words >> 6 * i & 63 for i in range(4)], -1).astype(np.uint8)
    return numbers_.reshape(*packed.shape[:-1], -1)


def matrices(
    pieces: Array, rests: tuple[int, int], major: str, rows: int, type_: ScalarType, held: ScalarType | None = None
) -> Array:
    """``[units, RestMN * rows, RestK * k]`` numbers that multiply exactly, of the ``[units, pieces, 16]`` bytes at
    :func:`addresses`. ``held``: the type as which they take place, where it is another: narrower numbers fill the first
    bytes of 16, and the others are not read."""
    per, units = 8 * UNIT // (held or type_).width, len(pieces)
    if type_.width < 8:
        pieces = unpacked(pieces[..., : per * type_.width // 8], type_.width)
    values = numbers.widen(numbers.raw(pieces.view(f"u{type_.bytes}"), type_), type_)
    if major == "K":
        split = values.reshape(units, *rests, rows, -1).transpose(0, 1, 3, 2, 4)
    else:
        split = values.reshape(units, *rests, rows // per, -1, per).transpose(0, 1, 3, 5, 2, 4)
    return split.reshape(units, rests[0] * rows, -1)
