"""How many blocks of a kernel a multiprocessor holds at once, and what keeps it from holding more.

The rules are those of the CUDA C++ Programming Guide (technical specifications per compute capability) and of the
occupancy calculator: registers are given to warps in portions, each quarter of the multiprocessor having a quarter of
the registers; shared memory is given to blocks in portions, and the system keeps 1 KiB of it for each block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.analysis.text import many
from tilewright.errors import ArgumentError
from tilewright.ir.target import (
    LEAST_CAPABILITY,
    MOST_THREADS,
    MULTIPROCESSORS,
    REGISTERS,
    SMEM_RESERVED,
    WARP,
    Multiprocessor,
    architecture,
)
from tilewright.reports import Shown

QUARTERS, MOST_REGISTERS = 4, 255


REGISTER_UNIT, SMEM_UNIT = 256, 128
"""Portions that a warp is given registers in, and a block shared memory in bytes."""


def multiprocessor(arch: str) -> Multiprocessor:
    """The multiprocessor of ``"sm_90"``, ``"sm_90a"`` or ``"90"``."""
    arch_named = architecture(arch, bare=True)
    if arch_named.capability < LEAST_CAPABILITY:
        choices = ", ".join(f"sm_{n}" for n in MULTIPROCESSORS if n >= LEAST_CAPABILITY)
        raise ArgumentError(f"occupancy has the rules of {choices}, not of {arch!r}")
    return arch_named.multiprocessor


@dataclass(frozen=True)
class Waves(Shown):
    """A grid of ``grid`` blocks on ``sms`` multiprocessors that hold ``at_once`` blocks together."""

    grid: int
    sms: int
    at_once: int

    @property
    def count(self) -> int:
        """Waves, the last one maybe partial."""
        return -(-self.grid // self.at_once)

    @property
    def efficiency(self) -> float:
        """Blocks / places in all waves: what is left when the last wave is partial."""
        return self.grid / (self.count * self.at_once)

    def __str__(self) -> str:
        waves, blocks = many(self.count, "wave"), many(self.grid, "block")
        return f"{waves} of {self.at_once} for {blocks}: {self.efficiency:.0%} full"


@dataclass(frozen=True)
class Occupancy(Shown):
    """``limits`` says how many blocks each resource would allow; ``blocks`` is the least of them."""

    arch: str
    threads: int
    blocks: int
    limits: dict[str, int]

    @property
    def warps(self) -> int:
        """Resident warps of a multiprocessor."""
        return self.blocks * -(-self.threads // WARP)

    @property
    def fraction(self) -> float:
        """Resident warps / the most that a multiprocessor holds."""
        return self.warps / multiprocessor(self.arch).warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The resources that allow no more than ``blocks``."""
        return tuple(name for name, blocks in self.limits.items() if blocks == self.blocks)

    def waves(self, grid: int, sms: int | None = None) -> Waves:
        """The waves of a grid of ``grid`` blocks; ``sms`` is by default that of the architecture's usual device."""
        if grid < 1:
            raise ArgumentError(f"waves: a grid has at least one block, not {grid}")
        if not self.blocks:
            raise ArgumentError(f"waves: no block fits on a multiprocessor: too much of {', '.join(self.limited_by)}")
        sms = multiprocessor(self.arch).sms if sms is None else sms
        return Waves(grid, sms, self.blocks * sms)

    def __str__(self) -> str:
        most, why = multiprocessor(self.arch).warps, ", ".join(self.limited_by)
        where = f"{many(self.blocks, 'block')} on a multiprocessor of {self.arch}"
        return f"{where}: {self.warps} of {most} warps ({self.fraction:.0%}), limited by {why}"


def occupancy(threads: int, registers: int, smem: int, arch: str) -> Occupancy:
    """Resident blocks of ``threads`` threads with ``registers`` a thread and ``smem`` bytes of shared memory a block.

    Blocks is 0 when not even one fits. Raises ArgumentError for numbers that no kernel has.

    On sm_90, 4 warps of 244 registers: a warp takes 32 x 244 = 7808 registers, in portions of 256: 7936. A quarter of
    the register file (16384) holds 2 such warps, the multiprocessor 8: two blocks. Shared memory of 64 KiB and 1 KiB
    reserved would allow 228 // 65 = 3.

    >>> occ = occupancy(threads=128, registers=244, smem=64 * 1024, arch="sm_90")
    >>> occ.blocks, occ.limited_by, occ.limits
    (2, ('registers',), {'blocks': 32, 'warps': 16, 'registers': 2, 'shared memory': 3})
    >>> print(occ.waves(300))
    2 waves of 264 for 300 blocks: 57% full
    """
    unit = multiprocessor(arch)
    if not 1 <= threads <= MOST_THREADS:
        raise ArgumentError(f"occupancy: a block has 1 to {MOST_THREADS} threads, not {threads}")
    if not 0 <= registers <= MOST_REGISTERS:
        raise ArgumentError(f"occupancy: a thread has up to {MOST_REGISTERS} registers, not {registers}")
    if smem < 0:
        raise ArgumentError(f"occupancy: shared memory of {smem} bytes")
    warps = -(-threads // WARP)
    limits = {
        "blocks": unit.blocks,
        "warps": unit.warps // warps,
        "registers": _by_registers(unit, warps, registers),
        "shared memory": (unit.smem_kib * 1024 + SMEM_RESERVED) // (_portions(smem, SMEM_UNIT) + SMEM_RESERVED),
    }
    return Occupancy(arch, threads, min(limits.values()), limits)


def _by_registers(unit: Multiprocessor, warps: int, registers: int) -> int:
    if registers == 0:
        return unit.blocks
    each = _portions(registers * WARP, REGISTER_UNIT)
    return REGISTERS // QUARTERS // each * QUARTERS // warps


def _portions(amount: int, portion: int) -> int:
    return math.ceil(amount / portion) * portion
