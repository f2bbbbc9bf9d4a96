"""The GPU that the CPU replaces: the properties that programs read."""

from __future__ import annotations

from dataclasses import dataclass

NAME = "Tilewright simulator on the CPU"


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


DEVICE = Properties()

#: The driver's attributes by the end of their names
ATTRIBUTES = {
    "MULTIPROCESSOR_COUNT": DEVICE.multi_processor_count,
    "COMPUTE_CAPABILITY_MAJOR": DEVICE.major,
    "COMPUTE_CAPABILITY_MINOR": DEVICE.minor,
    "L2_CACHE_SIZE": DEVICE.L2_cache_size,
    "WARP_SIZE": DEVICE.warp_size,
    "MAX_THREADS_PER_BLOCK": 1024,
    "MAX_THREADS_PER_MULTIPROCESSOR": DEVICE.max_threads_per_multi_processor,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": DEVICE.regs_per_multiprocessor,
    "MAX_SHARED_MEMORY_PER_BLOCK": DEVICE.shared_memory_per_block,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": DEVICE.shared_memory_per_block_optin,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": DEVICE.shared_memory_per_multiprocessor,
    "CLOCK_RATE": 1_980_000,
    "COOPERATIVE_LAUNCH": 1,
    "CLUSTER_LAUNCH": 1,
    "MAX_BLOCKS_PER_MULTIPROCESSOR": 32,
}
