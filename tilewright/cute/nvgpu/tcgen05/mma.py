"""``cute.nvgpu.tcgen05.mma``: the older module of names that ``cute.nvgpu.tcgen05`` has."""

from tilewright._lazy import names_of

__getattr__, __dir__, __all__ = names_of("tilewright.cute.nvgpu.tcgen05")
