# Made by `python tools/stubs.py` from tilewright/cute/arch/smem.py; do not edit.
"""``cute.arch.smem``: the older module of what ``cute.arch`` has for shared memory."""

from tilewright.lang.device.clusters import map_dsmem_ptr as map_dsmem_ptr
from tilewright.lang.device.smem import alloc_smem as alloc_smem
from tilewright.lang.device.smem import get_dyn_smem as get_dyn_smem
from tilewright.lang.device.smem import get_dyn_smem_size as get_dyn_smem_size
