"""``cute.nvgpu``: the operations of NVIDIA GPUs, by architecture level."""

from tilewright.cute.nvgpu.common import (
    CacheEvictionPriority as CacheEvictionPriority,
    CopyG2ROp as CopyG2ROp, CopyR2GOp as CopyR2GOp, CopyUniversalOp as CopyUniversalOp, LoadCacheMode as LoadCacheMode, MemoryOrder as MemoryOrder,
    MemoryScope as MemoryScope, MmaUniversalOp as MmaUniversalOp, OperandMajorMode as OperandMajorMode,
)
from tilewright.errors import ConstraintError
from tilewright.tiled.tma.atom import (
    make_tiled_tma_atom_A as make_tiled_tma_atom_A, make_tiled_tma_atom_B as make_tiled_tma_atom_B,
)
from tilewright.cute.nvgpu import (
    common as common, cpasync as cpasync, tcgen05 as tcgen05, warp as warp, warpgroup as warpgroup,
)

OpError = ConstraintError
