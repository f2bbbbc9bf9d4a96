"""The warp-specialised Hopper GEMM with a 2:4 sparse A, by wgmma.sp: twice as long K tiles in the same time.

What changes is what is loaded, half of A and its metadata, and how a stage is multiplied (``mainloop.sparse``);
schedules, clusters, turns and epilogues are those of the dense kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import Int32, cute, pipeline
from tilewright.gemm.config import SparseHopperConfig
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.kernel.warp_specialized import WarpSpecializedGemm
from tilewright.gemm.mainloop.sparse import SparseFragments, SparseTmaMainloop, metadata_stages
from tilewright.gemm.schedule.launch_arguments import Decomposition


@dataclass(frozen=True)
class SparseOperand:
    """A sparse A as the kernel's argument."""

    stored: cute.Tensor  # (M, K / 2, L), contiguous along K
    metadata: cute.Tensor  # (128 * M / 64, K / 64, 1) of Int32, contiguous along the first mode


class SparseGemm(WarpSpecializedGemm):
    """D = f(A @ B, C) for a :class:`SparseOperand` A, B (N, K, 1), C and D (M, N, 1)."""

    LOADED: tuple[int, ...] = (0, 1, 0)

    def __init__(self, config: SparseHopperConfig) -> None:
        super().__init__(config)

    def make_mainloop(self) -> SparseTmaMainloop:
        return SparseTmaMainloop(self.config, self.math)

    @cute.jit
    def __call__(  # type: ignore[override]  # a sparse operand in place of a matrix
        self,
        mA: SparseOperand,
        mB: cute.Tensor,
        mC: cute.Tensor,
        mD: cute.Tensor,
        function: EpilogueFunction,
        decomposition: Decomposition,
        stream: Any = None,
    ) -> None:
        """Launch the product."""
        self.launch((mA.stored, mB, mA.metadata), mC, mD, function, decomposition, stream)

    def stage_layouts(self) -> tuple:
        return *super().stage_layouts(), metadata_stages(self.config)

    def consumers(self, warpgroups: int) -> Any:
        """Each warp, whose lanes read their metadata themselves."""
        return pipeline.CooperativeGroup(pipeline.Agent.Warp, 4 * warpgroups)

    def loaded_types(self) -> tuple:
        return *super().loaded_types(), Int32

    def fragments(self, tiled_mma: cute.TiledMma, stages: tuple, part: tuple) -> tuple[Any, Any]:
        """What a warpgroup's wgmma reads of the stages, and each thread's words of metadata."""
        tCrA, tCrB = super().fragments(tiled_mma, stages, part)
        mine = stages[2][cute.arch.thread_idx()[0] % 128, None, None, None]  # (bK / 64, bM / 64, stages)
        words, blocks, count = mine.shape
        own = cute.local_tile(mine, (words, blocks // self.config.split[0], count), (0, part[0], 0))
        return SparseFragments(tCrA, own), tCrB
