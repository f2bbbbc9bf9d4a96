"""Kernels of mma.sync and TMA for sm_120: persistent blocks, warps that only load."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from tilewright.gemm.config import AnyConfig, HopperConfig
from tilewright.gemm.family.grouped import Sm120Groups
from tilewright.gemm.family.hopper import Hopper
from tilewright.gemm.family.plan_options import Limits, Problem
from tilewright.gemm.family.sm120_cost import Sm120Model
from tilewright.gemm.kernel.sm120 import Sm120Gemm, holds_block_scales
from tilewright.gemm.mainloop.mma_sync import MmaSyncMainloop
from tilewright.gemm.sm120_config import PERMUTATION, Sm120Config

SM120 = (120, 121)
"""The compute capabilities of the GPUs that the kernels are for."""


class Sm120(Hopper):
    """It takes operands that TMA reads, as the Hopper kernels do, on sm_120 and related GPUs."""

    model = Sm120Model
    mainloop = MmaSyncMainloop
    built_for = SM120[0]
    splits_in_clusters = False
    grouped: ClassVar[Any] = Sm120Groups()

    def kernel(self, config: Any) -> Sm120Gemm:
        return Sm120Gemm(config)

    def with_block_scales(
        self, config: AnyConfig, rows: int | None, columns: int | None, smem: int
    ) -> AnyConfig | None:
        return config if isinstance(config, Sm120Config) and holds_block_scales(config, rows, columns) else None

    def epilogue_shows(self, problem: Problem, limits: Limits) -> bool:
        return False  # no size has been measured with one

    def buffered(self, config: AnyConfig, smem: int) -> AnyConfig:
        return config  # not measured

    def min_arch(self, config: AnyConfig) -> int:
        return SM120[0]

    def arch_refusal(self, config: AnyConfig, version: int) -> str | None:
        if version in SM120:
            return None
        return f"it is for {', '.join(f'sm_{n}a' for n in SM120)}, and this is sm_{version}"

    def joined_sizes(self, config: AnyConfig) -> Iterator[HopperConfig]:
        """In the narrowest parts, so that there is one for each of many blocks."""
        assert isinstance(config, HopperConfig)
        if not config.pingpong:
            yield replace(config, epilogue_columns=PERMUTATION[1])
