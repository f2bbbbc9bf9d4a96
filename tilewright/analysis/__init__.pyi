"""What a copy and a kernel cost, before anything runs: bank conflicts, sectors, registers, occupancy.

>>> from tilewright.analysis import occupancy
>>> print(occupancy(threads=128, registers=244, smem=64 * 1024, arch="sm_90"))
2 blocks on a multiprocessor of sm_90: 8 of 64 warps (12%), limited by registers
"""

from tilewright.analysis.copy import (
    CopyReport as CopyReport, InstructionCost as InstructionCost, SideReport as SideReport,
    analyse_copy as analyse_copy,
)
from tilewright.analysis.fragments import (
    Fragment as Fragment, FragmentCopy as FragmentCopy, FragmentReport as FragmentReport,
    analyse_fragments as analyse_fragments,
)
from tilewright.analysis.kernel import KernelReport as KernelReport, analyse_kernel as analyse_kernel
from tilewright.analysis.memory import MemoryTile as MemoryTile, gmem as gmem, smem as smem
from tilewright.analysis.residency import Occupancy as Occupancy, Waves as Waves, occupancy as occupancy
from tilewright.ir.target import MULTIPROCESSORS as MULTIPROCESSORS, Multiprocessor as Multiprocessor
