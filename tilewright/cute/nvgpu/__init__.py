"""``cute.nvgpu``: the operations of NVIDIA GPUs, by architecture level."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.cute.nvgpu.common": "MmaUniversalOp CopyUniversalOp LoadCacheMode OperandMajorMode",
        "tilewright.errors": "OpError=ConstraintError",
    },
    ("common", "cpasync", "warp", "warpgroup"),
)
