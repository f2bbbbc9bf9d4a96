"""The warp-specialised Hopper GEMM with a prepared weight of 4 or 8 bits as A, which is converted in registers.

What changes is what is loaded, words, scales and zero points, and how a stage is multiplied (``mainloop.mixed``, for
8-bit activations ``mainloop.mixed_narrow``);
schedules, clusters and epilogues are those of the dense kernel. The weight has to be A, which wgmma may read from
registers: the product is the transposed one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import Int32, Uint8, cute, pipeline
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.kernel.warp_specialized import WarpSpecializedGemm
from tilewright.gemm.mainloop.mixed import MixedFragments, MixedMath, MixedTmaMainloop
from tilewright.gemm.mainloop.mixed_narrow import NarrowFragments, NarrowMixedMainloop
from tilewright.gemm.mainloop.tma import TmaMainloop
from tilewright.gemm.mixed_config import MixedHopperConfig
from tilewright.gemm.schedule.launch_arguments import Decomposition


@dataclass(frozen=True)
class MixedOperand:
    """A prepared weight (N, K) as the kernel's argument."""

    words: cute.Tensor  # (N / 8, words of 8 rows, 1) of Int32, contiguous along K
    scales: cute.Tensor  # (N, K / scale_k, 1), contiguous along N
    zeros: Any = None  # the same of Uint8, where the numbers have zero points


class MixedHopperGemm(WarpSpecializedGemm):
    """D = f((scales * (A - zeros)) @ B, C) for a :class:`MixedOperand` A, B (N, K, 1), C and D (M, N, 1)."""

    config: MixedHopperConfig

    def __init__(self, config: MixedHopperConfig) -> None:
        super().__init__(config)
        self.LOADED = (0, 1, 0, 0) if config.zeros else (0, 1, 0)

    def make_math(self) -> MixedMath:
        return MixedMath(self.config)

    def make_mainloop(self) -> TmaMainloop:
        kind = NarrowMixedMainloop if self.config.narrow else MixedTmaMainloop
        return kind(self.config, self.math)

    @cute.jit
    def __call__(  # type: ignore[override]  # a prepared weight in place of a matrix
        self,
        mA: MixedOperand,
        mB: cute.Tensor,
        mC: cute.Tensor,
        mD: cute.Tensor,
        function: EpilogueFunction,
        decomposition: Decomposition,
        stream: Any = None,
    ) -> None:
        """Launch the product."""
        zeros = () if mA.zeros is None else (mA.zeros,)
        self.launch((mA.words, mB, mA.scales, *zeros), mC, mD, function, decomposition, stream)

    def stage_layouts(self) -> tuple:
        """(8 rows, words, 1, stages) of the weight, (rows, bK, 1, stages) of B, (rows, groups, 1, stages) of scales and
        zero points."""
        config = self.config
        (down, across), rows, stages = config.words, config.tile[0], config.stages
        words = cute.make_layout((down, across, 1, stages), stride=(across, 1, 0, down * across))
        vectors = [
            cute.make_layout((rows, config.groups, 1, stages), stride=(1, rows, 0, config.vector_stride(dtype)))
            for dtype in self.loaded_types()[2:]
        ]
        return words, self.math.smem_layout(config.b, 1), *vectors

    def consumers(self, warpgroups: int) -> Any:
        """Each warp, whose lanes read their words themselves."""
        return pipeline.CooperativeGroup(pipeline.Agent.Warp, 4 * warpgroups)

    def loaded_types(self) -> tuple:
        zeros = (Uint8,) if self.config.zeros else ()
        return Int32, self.config.b.dtype, self.config.scale_dtype, *zeros

    def fragments(self, tiled_mma: cute.TiledMma, stages: tuple, part: tuple) -> tuple[Any, Any]:
        """The weight as each thread reads it, and the descriptors of the stages of B."""
        tCsB = tiled_mma.get_slice(0).partition_B(self.part_of(stages[1], 1, part[1]))  # (MMA, MMA_N, MMA_K, stages)
        kind = NarrowFragments if self.config.narrow else MixedFragments
        return kind.of(self.config, stages, part[0]), tiled_mma.make_fragment_B(tCsB)
