"""``tcgen05.mma.ws``: B is what stays in the tensor core ("weight stationary"), and M can be 32 (PTX ISA,
"tcgen05.mma.ws", "Zero-Column Mask Descriptor"; CuTe: ``tmem_frg_ws`` in include/cute/atom/mma_traits_sm100.hpp).

Below 128 rows D takes all lanes: those after the first M have the next part of N. It is for one block, and for kinds
without block scales. A descriptor may say that columns of B are taken as zeros, and at which column B begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tilewright.atoms.tcgen05_mma import Tcgen05Mma
from tilewright.atoms.tensor_memory import LANES, weight_stationary_layout
from tilewright.errors import ConstraintError
from tilewright.ir.lanes import Array
from tilewright.layout import Layout

BUFFERS = ("b0", "b1", "b2", "b3")
"""The collector buffers of B."""


@dataclass(frozen=True, repr=False)
class Tcgen05WsMma(Tcgen05Mma):
    """The data of one ``tcgen05.mma.ws``; fields as of :class:`.Tcgen05Mma`.

    >>> from tilewright.ir.types import BF16, F32
    >>> atom = Tcgen05WsMma("f16", (32, 128, 16), F32, BF16, BF16)
    >>> atom, atom.tensor_memory("C", ((32, 128), 1, 1))
    (SM100_32x128x16_F32BF16BF16_WS_SS<K,K>, ((32,(32,4)),1,1):((65536,(1,2097152)),0,0))
    """

    stationary: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source == "TS" and self.shape_mnk[0] != LANES:
            raise ConstraintError(
                f"{self.form}: A of {self.shape_mnk[0]} rows in tensor memory is not here: where the parts of N find "
                f"it, PTX shows in a figure only. M = {LANES} is, and A in shared memory"
            )

    def tensor_memory(self, operand: str, shape: Any) -> Layout:
        if operand == "C":
            return weight_stationary_layout(shape, self.type_d.width)
        return super().tensor_memory(operand, shape)


class ZeroColumns(NamedTuple):
    """What a zero-column mask descriptor says. Of the columns of each of 128 / M parts of N, ``zeros`` are taken as
    zeros and ``used`` as they are, in turns: part i begins with zeros where ``zeros_first[i]``, ``skipped[i]`` columns
    into its first turn. ``masks``: whether there are zeros at all. ``shift``: the column at which B begins.

    PTX's table calls the lengths of both turns the other way around than its examples, which are followed here.

    >>> found = ZeroColumns.of_word(0x3028000000000)  # M = 128: use span 3, skip span 2
    >>> "".join(str(int(x)) for x in found.mask((128, 64))[:14])
    '00001110000111'
    """

    zeros: int
    used: int
    zeros_first: tuple[bool, ...]
    skipped: tuple[int, ...]
    masks: bool
    shift: int

    @classmethod
    def of_word(cls, word: int) -> ZeroColumns:
        """ConstraintError for bits that must be 0."""
        if word & 0xC000_0070_0000_0000:
            raise ConstraintError(
                f"the zero-column mask descriptor 0x{word & (1 << 64) - 1:016x} has bits that must be 0"
            )
        return cls(
            zeros=(word >> 40 & 0xFF) + 1,
            used=(word >> 48 & 0xFF) + 1,
            zeros_first=tuple(bool(word >> 32 + i & 1) for i in range(4)),
            skipped=tuple(word >> 8 * i & 0xFF for i in range(4)),
            masks=bool(word >> 39 & 1),
            shift=word >> 56 & 0x3F,
        )

    def mask(self, shape_mn: tuple[int, int]) -> Array:
        """``[N]`` which columns are zeros."""
        m, n = shape_mn
        parts = LANES // m
        if not self.masks:
            return np.zeros(n, bool)
        at = np.arange(n // parts)
        found = []
        for first, skipped in zip(self.zeros_first[:parts], self.skipped[:parts], strict=True):
            turn = (at + skipped) % (self.zeros + self.used)
            found.append(turn < self.zeros if first else turn >= self.used)
        return np.concatenate(found)

    def check(self, m: int, max_shift: int) -> None:
        """ConstraintError for a shift that an MMA of M rows, or its instruction descriptor, does not have."""
        most = min(16 if m == 32 else 32, max_shift)
        if self.shift > most:
            raise ConstraintError(
                f"the zero-column mask descriptor shifts B by {self.shift} columns; with M = {m} and a max_shift of "
                f"{max_shift} in the instruction descriptor the most is {most}"
            )
