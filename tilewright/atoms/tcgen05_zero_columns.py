"""The zero-column mask descriptor of ``tcgen05.mma.ws`` (PTX ISA, "Zero-Column Mask Descriptor")."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.atoms.tensor_memory import LANES
from tilewright.errors import ConstraintError
from tilewright.ir.lanes import Array


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
        parts_masked = []
        for first, skipped in zip(self.zeros_first[:parts], self.skipped[:parts], strict=True):
            turn = (at + skipped) % (self.zeros + self.used)
            parts_masked.append(turn < self.zeros if first else turn >= self.used)
        return np.concatenate(parts_masked)

    def check(self, m: int, max_shift: int) -> None:
        """ConstraintError for a shift that an MMA of M rows, or its instruction descriptor, does not have."""
        most = min(16 if m == 32 else 32, max_shift)
        if self.shift > most:
            raise ConstraintError(
                f"the zero-column mask descriptor shifts B by {self.shift} columns; with M = {m} and a max_shift of "
                f"{max_shift} in the instruction descriptor the most is {most}"
            )
