"""GPU architectures by name, and what their launches and blocks are limited to (CUDA C++ Programming Guide, "Compute
Capabilities")."""

from __future__ import annotations

import re
from typing import NamedTuple

from tilewright.errors import ArgumentError

WARP = 32
MOST_THREADS = 1024  # of a block
MOST_BLOCK = (1024, 1024, 64)
MOST_GRID = ((1 << 31) - 1, 65535, 65535)
REGISTERS = 65536  # of a multiprocessor
SMEM_RESERVED = 1024  # bytes that the system keeps for each block
_SMEM_KIB = {
    70: 96, 72: 96, 75: 64, 80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 101: 227, 103: 227, 110: 227, 120: 99,
    121: 99,
}  # fmt: skip
MOST_SMEM = max(_SMEM_KIB.values()) * 1024
"""Shared memory that one block can ask for on the GPUs that have most, in bytes."""
_NAME = re.compile(r"(sm_)?(\d{2,3})([af]?)")


class Architecture(NamedTuple):
    """``sm_90a``: compute capability 90, suffix ``a`` (the features of this very chip)."""

    capability: int
    suffix: str

    def __str__(self) -> str:
        return f"sm_{self.capability}{self.suffix}"

    @property
    def smem(self) -> int:
        """Bytes of shared memory that one block can ask for."""
        if self.capability not in _SMEM_KIB:
            known = ", ".join(f"sm_{n}" for n in _SMEM_KIB)
            raise ArgumentError(f"unknown compute capability {str(self)!r}; known are {known}")
        return _SMEM_KIB[self.capability] * 1024

    def runs_on(self, other: Architecture) -> bool:
        """Whether machine code for this architecture runs on a GPU of ``other``: the same generation, no newer, and
        the same chip where it uses features of one.

        >>> architecture("sm_80").runs_on(architecture("sm_89")), architecture("sm_80").runs_on(architecture("sm_90"))
        (True, False)
        """
        if self.suffix:
            return self.capability == other.capability
        return self.capability // 10 == other.capability // 10 and self.capability <= other.capability


def architecture(name: str, bare: bool = False) -> Architecture:
    """The architecture of a name: ``"sm_90a"``, ``"sm_80"``; with ``bare`` also its number alone, ``"80"``.
    ArgumentError where it is none.

    >>> architecture("sm_90a").capability, architecture("80", bare=True).smem
    (90, 166912)
    """
    found = _NAME.fullmatch(str(name))
    if found is None or not (found[1] or bare):
        raise ArgumentError(f"unknown architecture {name!r}: expected a name like sm_80, sm_89 or sm_90a")
    return Architecture(int(found[2]), found[3])
