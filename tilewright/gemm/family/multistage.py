"""Kernels that copy tiles to shared memory with cp.async: mma.sync on tensor cores, and FMAs."""

from __future__ import annotations

from typing import Any

from tilewright import Float8E4M3FN, Float8E5M2
from tilewright.gemm.config import AnyConfig, GemmConfig
from tilewright.gemm.family.ampere_cost import AmpereModel, ends_us, k_tile_us, peer_us
from tilewright.gemm.family.base import KernelFamily
from tilewright.gemm.family.grouped import MultistageGroups
from tilewright.gemm.kernel.multistage import MultistageGemm


class Multistage(KernelFamily):
    """It takes all operands and extents: what cp.async cannot copy is loaded element by element."""

    model = AmpereModel
    parts = (2, 3, 4, 8)
    mixes_types = True
    grouped = MultistageGroups()

    def kernel(self, config: Any) -> MultistageGemm:
        return MultistageGemm(config)

    def simulated_rate(self, config: AnyConfig) -> float:
        # The simulator multiplies the fragments of a warp by one call of BLAS, those of a thread with many small ones.
        if config.math != "tensorop":
            return 0.8e9
        return 6e9 if config.a.dtype.width <= 16 else 2.5e9

    def piece_costs(self, config: AnyConfig, smem: int, several: bool) -> tuple[float, float, float]:
        # Blocks that share a multiprocessor share its tensor cores: a k tile takes them longer.
        assert isinstance(config, GemmConfig)
        full, lone = k_tile_us(config, smem)
        return full if several else lone, peer_us(config), ends_us(config)

    def min_arch(self, config: AnyConfig) -> int:
        return 89 if config.a.dtype in (Float8E4M3FN, Float8E5M2) else 80
