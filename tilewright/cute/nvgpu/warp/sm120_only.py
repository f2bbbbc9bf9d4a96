"""Block-scaled MMAs of one warp, and matrices of 16 x 16 bytes, which are not here yet."""

from tilewright import stand_ins

__getattr__, __all__ = stand_ins.names(
    __name__,
    "LdMatrix16x16x8bOp MmaMXF4NVF4Op MmaMXF4Op MmaMXF8F6F4Op MmaMXF8Op",
    public="cute.nvgpu.warp",
    why=stand_ins.SM120,
    instead={"LdMatrix16x16x8bOp": "LdMatrix8x16x8bOp, or CopyUniversalOp to transpose"},
)
