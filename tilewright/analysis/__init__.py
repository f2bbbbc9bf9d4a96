"""The cost of a copy and of a kernel, before anything runs: bank conflicts, sectors, registers, occupancy.

>>> from tilewright.analysis import occupancy
>>> print(occupancy(threads=128, registers=244, smem=64 * 1024, arch="sm_90"))
2 blocks on a multiprocessor of sm_90: 8 of 64 warps (12%), limited by registers
"""

from tilewright._names import attach

attach(__name__)
