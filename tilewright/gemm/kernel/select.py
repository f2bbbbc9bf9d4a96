"""The kernel class of a configuration."""

from __future__ import annotations

from tilewright.gemm.config import AnyConfig, HopperConfig
from tilewright.gemm.kernel.multistage import MultistageGemm
from tilewright.gemm.kernel.warp_specialized import WarpSpecializedGemm


def kernel_of(config: AnyConfig) -> MultistageGemm | WarpSpecializedGemm:
    return WarpSpecializedGemm(config) if isinstance(config, HopperConfig) else MultistageGemm(config)
