"""``cute.nvgpu.warp.mma``: what the block-scaled MMAs of sm_120 multiply, which are not here yet."""

from tilewright import stand_ins

__getattr__, __all__ = stand_ins.names(__name__, "MXF8F6F4_SUPPORTED_PAIRS", why=stand_ins.SM120)
