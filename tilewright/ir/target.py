"""GPU architectures by name, and the limits of their launches, blocks and multiprocessors (CUDA C++ Programming Guide,
"Compute Capabilities"). This is the only table of them. The architecture that an instruction needs is stated on the
instruction's class."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from tilewright.errors import ArgumentError

WARP = 32  # threads
WARPGROUP_WARPS = 4
WARPGROUP = WARPGROUP_WARPS * WARP
MOST_THREADS = 1024  # of a block
MOST_BLOCK = (1024, 1024, 64)
MOST_GRID = ((1 << 31) - 1, 65535, 65535)
REGISTERS = 65536  # of a multiprocessor
SMEM_RESERVED = 1024  # bytes that the system keeps for each block
SMEM_UNIT = 128  # bytes; what a block has is a multiple


class Multiprocessor(NamedTuple):
    """The resources of one multiprocessor: KiB of shared memory for one block, warps and blocks; the usual ``device``
    of the architecture has ``sms`` of them; ``cuda`` is the first version of CUDA that compiles for it."""

    smem_kib: int
    warps: int
    blocks: int
    device: str
    sms: int
    cuda: tuple[int, int]


MULTIPROCESSORS = {
    70: Multiprocessor(96, 64, 32, "V100", 80, (9, 0)),
    72: Multiprocessor(96, 64, 32, "Jetson AGX Xavier", 8, (9, 2)),
    75: Multiprocessor(64, 32, 16, "T4", 40, (10, 0)),
    80: Multiprocessor(163, 64, 32, "A100", 108, (11, 0)),
    86: Multiprocessor(99, 48, 16, "RTX 3090", 82, (11, 1)),
    87: Multiprocessor(163, 48, 16, "Jetson AGX Orin", 16, (11, 5)),
    89: Multiprocessor(99, 48, 24, "RTX 4090", 128, (11, 8)),
    90: Multiprocessor(227, 64, 32, "H100 SXM", 132, (12, 0)),
    100: Multiprocessor(227, 64, 32, "B200", 148, (12, 8)),
    101: Multiprocessor(227, 48, 24, "Jetson AGX Thor", 20, (12, 8)),
    103: Multiprocessor(227, 64, 32, "B300", 148, (12, 9)),
    110: Multiprocessor(227, 48, 24, "Jetson AGX Thor", 20, (13, 0)),
    120: Multiprocessor(99, 48, 24, "RTX 5090", 170, (12, 8)),
    121: Multiprocessor(99, 48, 24, "DGX Spark", 48, (12, 9)),
}
"""By compute capability. CUDA 13 names 110 what CUDA 12 named 101. Kernels run from 80 on."""
LEAST_CAPABILITY = 80
SPECIFIC = (90, 100, 103, 110, 120, 121)
"""The compute capabilities with architecture-specific targets (``sm_90a``), and instructions that only these know."""
CLUSTERS = 90
"""The compute capability from which there are clusters of blocks."""
MOST_SMEM = max(m.smem_kib for m in MULTIPROCESSORS.values()) * 1024
"""Shared memory that one block can ask for on the GPUs that have most, in bytes."""
_NAME = re.compile(r"(sm_)?(\d{2,3})([af]?)")


class Architecture(NamedTuple):
    """``sm_90a``: compute capability 90, suffix ``a`` (the features of this chip alone)."""

    capability: int
    suffix: str

    def __str__(self) -> str:
        return f"sm_{self.capability}{self.suffix}"

    @property
    def multiprocessor(self) -> Multiprocessor:
        """The resources of its multiprocessors. ArgumentError where the table has no such architecture."""
        if self.capability not in MULTIPROCESSORS:
            names = ", ".join(f"sm_{n}" for n in MULTIPROCESSORS)
            raise ArgumentError(f"unknown compute capability {str(self)!r}; known are {names}")
        return MULTIPROCESSORS[self.capability]

    @property
    def smem(self) -> int:
        """Bytes of shared memory that one block can ask for."""
        return self.multiprocessor.smem_kib * 1024

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
    ArgumentError where there is no such architecture.

    >>> architecture("sm_90a").capability, architecture("80", bare=True).smem
    (90, 166912)
    """
    match = _NAME.fullmatch(str(name))
    if match is None or not (match[1] or bare):
        raise ArgumentError(f"unknown architecture {name!r}: expected a name like sm_80, sm_90a or sm_120a")
    return Architecture(int(match[2]), match[3])


def assumed_architecture() -> Architecture:
    """What stands in where there is no GPU: the architecture of the variable ``CUTE_DSL_ARCH``, else ``sm_90a``.
    ArgumentError where the variable names none."""
    arch = architecture(os.environ.get("CUTE_DSL_ARCH") or "sm_90a", bare=True)
    arch.multiprocessor  # noqa: B018 - one that the table lacks is an error here
    return arch
