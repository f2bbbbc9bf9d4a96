"""Kernels of tcgen05 and TMA for sm_100: persistent blocks, sums in tensor memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from tilewright import Int8
from tilewright.atoms.tcgen05_validity import MmaForm
from tilewright.atoms.tensor_memory_alloc import TCGEN05
from tilewright.gemm.blackwell_config import BlackwellConfig
from tilewright.gemm.config import AnyConfig, HopperConfig
from tilewright.gemm.family.blackwell_cost import BlackwellModel
from tilewright.gemm.family.grouped import TensorMemoryGroups
from tilewright.gemm.family.hopper import Hopper
from tilewright.gemm.family.plan_options import Limits, Problem
from tilewright.gemm.kernel.tensor_memory import TensorMemoryGemm, holds_block_scales


class Blackwell(Hopper):
    """It takes the operands of the Hopper kernels, on sm_100a and related GPUs."""

    model = BlackwellModel
    built_for = 100
    splits_in_clusters = False
    grouped: ClassVar[Any] = TensorMemoryGroups()

    def kernel(self, config: Any) -> TensorMemoryGemm:
        return TensorMemoryGemm(config)

    def with_block_scales(
        self, config: AnyConfig, rows: int | None, columns: int | None, smem: int
    ) -> AnyConfig | None:
        return config if isinstance(config, BlackwellConfig) and holds_block_scales(config) else None

    def epilogue_shows(self, problem: Problem, limits: Limits) -> bool:
        return False  # other warps multiply meanwhile

    def hides_epilogue(self, config: AnyConfig) -> bool:
        return True

    def buffered(self, config: AnyConfig, smem: int) -> AnyConfig:
        return config  # other warps multiply meanwhile

    def min_arch(self, config: AnyConfig) -> int:
        return 100

    def arch_refusal(self, config: AnyConfig, version: int) -> str | None:
        if version not in TCGEN05:
            archs = ", ".join(f"sm_{n}a" for n in TCGEN05)
            return (
                f"it needs tcgen05, which {archs} have and sm_{version} does not; the simulator runs it: "
                'tilewright.sim.options(arch="sm_100a")'
            )
        if config.a.dtype is Int8 and version not in MmaForm("i8").features:
            return f"its tcgen05.mma.kind::i8 is not there on sm_{version}a"
        return None

    def may_share(self, config: AnyConfig) -> bool:
        """Clusters exchange sums, each block with the one at its place in the other cluster."""
        return True

    def joined_sizes(self, config: AnyConfig) -> Iterator[HopperConfig]:
        """In parts as they are: tensor memory is read in parts anyway."""
        assert isinstance(config, HopperConfig)
        if config.cluster_size == 1:
            yield config
