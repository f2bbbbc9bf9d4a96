"""``cute.nvgpu``: the operations of NVIDIA GPUs, by architecture level."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.cute.nvgpu.common": "MmaUniversalOp CacheEvictionPriority CopyUniversalOp LoadCacheMode "
        "OperandMajorMode CopyG2ROp CopyR2GOp MemoryOrder MemoryScope",
        "tilewright.tiled.tma.atom": "make_tiled_tma_atom_A make_tiled_tma_atom_B",
        "tilewright.errors": "OpError=ConstraintError",
    },
    ("common", "cpasync", "tcgen05", "warp", "warpgroup"),
)
