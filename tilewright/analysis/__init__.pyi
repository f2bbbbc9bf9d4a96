# Made by `python tools/stubs.py` from tilewright/analysis/__init__.py; do not edit.
"""What a copy and a kernel cost, before anything runs: bank conflicts, sectors, registers, occupancy.

>>> from tilewright.analysis import occupancy
>>> print(occupancy(threads=128, registers=244, smem=64 * 1024, arch="sm_90"))
2 blocks on a multiprocessor of sm_90: 8 of 64 warps (12%), limited by registers
"""

from tilewright.analysis.copy import CopyReport as CopyReport
from tilewright.analysis.copy import InstructionCost as InstructionCost
from tilewright.analysis.copy import SideReport as SideReport
from tilewright.analysis.copy import analyse_copy as analyse_copy
from tilewright.analysis.fragments import Fragment as Fragment
from tilewright.analysis.fragments import FragmentCopy as FragmentCopy
from tilewright.analysis.fragments import FragmentReport as FragmentReport
from tilewright.analysis.fragments import analyse_fragments as analyse_fragments
from tilewright.analysis.kernel import KernelReport as KernelReport
from tilewright.analysis.kernel import analyse_kernel as analyse_kernel
from tilewright.analysis.memory import Memory as Memory
from tilewright.analysis.memory import gmem as gmem
from tilewright.analysis.memory import smem as smem
from tilewright.analysis.residency import Occupancy as Occupancy
from tilewright.analysis.residency import Waves as Waves
from tilewright.analysis.residency import occupancy as occupancy
from tilewright.ir.target import MULTIPROCESSORS as MULTIPROCESSORS
from tilewright.ir.target import Multiprocessor as Multiprocessor
