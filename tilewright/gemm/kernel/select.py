"""The kernel class of a configuration."""

from __future__ import annotations

from tilewright.gemm.config import AnyConfig, HopperConfig
from tilewright.gemm.kernel.dense import DenseGemm
from tilewright.gemm.kernel.multistage import MultistageGemm
from tilewright.gemm.kernel.small_m import SmallMGemm
from tilewright.gemm.kernel.warp_specialized import WarpSpecializedGemm


def kernel_of(config: AnyConfig) -> MultistageGemm | SmallMGemm | WarpSpecializedGemm:
    if not isinstance(config, HopperConfig):
        return SmallMGemm(config) if config.math == "small_m" else MultistageGemm(config)
    return DenseGemm(config) if config.roles == "one" else WarpSpecializedGemm(config)
