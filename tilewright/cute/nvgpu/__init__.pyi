# Made by `python tools/stubs.py` from tilewright/cute/nvgpu/__init__.py; do not edit.
"""``cute.nvgpu``: the operations of NVIDIA GPUs, by architecture level."""

from tilewright.cute.nvgpu import common as common
from tilewright.cute.nvgpu import cpasync as cpasync
from tilewright.cute.nvgpu import tcgen05 as tcgen05
from tilewright.cute.nvgpu import warp as warp
from tilewright.cute.nvgpu import warpgroup as warpgroup
from tilewright.cute.nvgpu.common import CacheEvictionPriority as CacheEvictionPriority
from tilewright.cute.nvgpu.common import CopyG2ROp as CopyG2ROp
from tilewright.cute.nvgpu.common import CopyR2GOp as CopyR2GOp
from tilewright.cute.nvgpu.common import CopyUniversalOp as CopyUniversalOp
from tilewright.cute.nvgpu.common import LoadCacheMode as LoadCacheMode
from tilewright.cute.nvgpu.common import MemoryOrder as MemoryOrder
from tilewright.cute.nvgpu.common import MemoryScope as MemoryScope
from tilewright.cute.nvgpu.common import MmaUniversalOp as MmaUniversalOp
from tilewright.cute.nvgpu.common import OperandMajorMode as OperandMajorMode
from tilewright.errors import ConstraintError as OpError
from tilewright.tiled.tma.atom import make_tiled_tma_atom_A as make_tiled_tma_atom_A
from tilewright.tiled.tma.atom import make_tiled_tma_atom_B as make_tiled_tma_atom_B
