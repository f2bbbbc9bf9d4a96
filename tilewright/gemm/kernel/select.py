"""The kernel class of a configuration."""

from __future__ import annotations

from tilewright.gemm.config import AnyConfig, HopperConfig
from tilewright.gemm.kernel.dense import DenseGemm
from tilewright.gemm.kernel.multistage import MultistageGemm
from tilewright.gemm.kernel.warp_specialized import WarpSpecializedGemm


def kernel_of(config: AnyConfig) -> MultistageGemm | WarpSpecializedGemm:
    if not isinstance(config, HopperConfig):
        return MultistageGemm(config)
    return DenseGemm(config) if config.roles == "one" else WarpSpecializedGemm(config)
