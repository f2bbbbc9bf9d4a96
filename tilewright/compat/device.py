"""The GPU that the CPU replaces: the properties that programs read."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from tilewright.ir.target import WARP, Architecture, assumed_architecture

NAME = "Tilewright simulator on the CPU"
GIB, MIB = 1 << 30, 1 << 20
MEMORY_AND_L2 = {
    80: (80 * GIB, 40 * MIB),
    90: (80 * GIB, 50 * MIB),
    100: (180 * GIB, 126 * MIB),
    103: (270 * GIB, 126 * MIB),
    120: (32 * GIB, 96 * MIB),
}
"""By compute capability, in bytes; the others have those of an H100."""


@dataclass(frozen=True)
class Properties:
    """PyTorch's names of the properties of a device; the figures are those of an H100 SXM."""

    name: str = NAME
    major: int = 9
    minor: int = 0
    total_memory: int = 80 << 30
    multi_processor_count: int = 132
    is_integrated: bool = False
    is_multi_gpu_board: bool = False
    warp_size: int = 32
    max_threads_per_multi_processor: int = 2048
    regs_per_multiprocessor: int = 65536
    shared_memory_per_block: int = 49152
    shared_memory_per_block_optin: int = 232448
    shared_memory_per_multiprocessor: int = 233472
    L2_cache_size: int = 50 << 20
    gcnArchName: str = ""


def device() -> Properties:
    """The properties of the device that programs see: the usual one of the architecture that is assumed
    (``CUTE_DSL_ARCH``)."""
    return _properties(assumed_architecture())


@functools.cache
def _properties(arch: Architecture) -> Properties:
    unit, (memory, l2) = arch.multiprocessor, MEMORY_AND_L2.get(arch.capability, MEMORY_AND_L2[90])
    return Properties(
        major=arch.capability // 10,
        minor=arch.capability % 10,
        total_memory=memory,
        multi_processor_count=unit.sms,
        max_threads_per_multi_processor=unit.warps * WARP,
        shared_memory_per_block_optin=arch.smem,
        shared_memory_per_multiprocessor=arch.smem + 1024,
        L2_cache_size=l2,
    )


#: The driver's attributes by the end of their names: that property of the device, or a number
ATTRIBUTES: dict[str, str | int] = {
    "MULTIPROCESSOR_COUNT": "multi_processor_count",
    "COMPUTE_CAPABILITY_MAJOR": "major",
    "COMPUTE_CAPABILITY_MINOR": "minor",
    "L2_CACHE_SIZE": "L2_cache_size",
    "WARP_SIZE": "warp_size",
    "MAX_THREADS_PER_BLOCK": 1024,
    "MAX_THREADS_PER_MULTIPROCESSOR": "max_threads_per_multi_processor",
    "MAX_REGISTERS_PER_MULTIPROCESSOR": "regs_per_multiprocessor",
    "MAX_SHARED_MEMORY_PER_BLOCK": "shared_memory_per_block",
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": "shared_memory_per_block_optin",
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": "shared_memory_per_multiprocessor",
    "CLOCK_RATE": 1_980_000,
    "COOPERATIVE_LAUNCH": 1,
    "CLUSTER_LAUNCH": 1,
    "MAX_BLOCKS_PER_MULTIPROCESSOR": 32,
}


def attribute(name: str) -> int | None:
    """The number of one of ``ATTRIBUTES``; None for other names."""
    value = ATTRIBUTES.get(name)
    return int(getattr(device(), value)) if isinstance(value, str) else value
