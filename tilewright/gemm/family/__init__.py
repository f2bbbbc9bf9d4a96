"""Kernel families: one object for each kind of kernel. It states which operands the kernel takes and why it refuses
others, which sizes can share tiles, how long they take, what must be packed, and how the kernel is launched.

A new family is a module with a :class:`~tilewright.gemm.family.base.KernelFamily` and its row here; start reading at
``base.py``, then ``small_m.py``, the smallest.
"""

from tilewright.gemm.family.base import FAMILIES, KernelFamily
from tilewright.gemm.family.blackwell import Blackwell
from tilewright.gemm.family.hopper import Hopper
from tilewright.gemm.family.mixed import MixedHopper
from tilewright.gemm.family.multistage import Multistage
from tilewright.gemm.family.sm120 import Sm120
from tilewright.gemm.family.small_m import SmallM
from tilewright.gemm.family.sparse import SparseHopper, SparseMultistage

FAMILIES.update(
    tensorop=Multistage(),
    simt=Multistage(),
    small_m=SmallM(),
    wgmma=Hopper(),
    wgmma_mixed=MixedHopper(),
    wgmma_sparse=SparseHopper(),
    tensorop_sparse=SparseMultistage(),
    tcgen05=Blackwell(),
    sm120=Sm120(),
)

__all__ = ["FAMILIES", "KernelFamily"]
