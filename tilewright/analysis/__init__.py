"""What a copy and a kernel cost, before anything runs: bank conflicts, sectors, registers, occupancy.

>>> from tilewright.analysis import occupancy
>>> print(occupancy(threads=128, registers=244, smem=64 * 1024, arch="sm_90"))
2 blocks on a multiprocessor of sm_90: 8 of 64 warps (12%), limited by registers
"""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.analysis.memory": "Memory gmem smem",
        "tilewright.analysis.copy": "analyse_copy CopyReport SideReport InstructionCost",
        "tilewright.analysis.residency": "occupancy Occupancy Waves",
        "tilewright.ir.target": "Multiprocessor MULTIPROCESSORS",
        "tilewright.analysis.fragments": "analyse_fragments FragmentReport Fragment FragmentCopy",
        "tilewright.analysis.kernel": "analyse_kernel KernelReport",
    },
)
