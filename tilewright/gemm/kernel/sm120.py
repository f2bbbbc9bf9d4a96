"""The persistent, warp-specialised GEMM of sm_120: TMA loads, mma.sync multiplies, TMA stores.

GPUs of sm_120 have neither wgmma nor tcgen05. Schedule, ring of stages, roles, sharing of tiles and stores are those of
the Hopper kernel (``warp_specialized.py``). What differs is how a warpgroup multiplies: by mma.sync, whose operands
come to registers by ldmatrix (``mainloop.mma_sync``).
"""

from __future__ import annotations

from typing import Any, ClassVar

from tilewright import cute, pipeline
from tilewright.gemm.epilogue.mma_sync import MmaSyncEpilogue
from tilewright.gemm.kernel.warp_specialized import WarpSpecializedGemm
from tilewright.gemm.mainloop.mma_sync import Fragment, MmaSyncMainloop, MmaSyncMath
from tilewright.gemm.sm120_config import Sm120Config


class Sm120Gemm(WarpSpecializedGemm):
    """As :class:`WarpSpecializedGemm`, on sm_120 and its like."""

    LEAST_BLOCKS: ClassVar[int | None] = 1
    """As in ``kernel.tensor_memory``."""

    config: Sm120Config
    math: MmaSyncMath
    mainloop: MmaSyncMainloop

    def make_math(self) -> MmaSyncMath:
        return MmaSyncMath(self.config)

    def make_mainloop(self) -> MmaSyncMainloop:
        return MmaSyncMainloop(self.config, self.make_math())

    def make_epilogue(self) -> MmaSyncEpilogue:
        return MmaSyncEpilogue(self.config)

    def consumers(self, warpgroups: int) -> Any:
        """Each warp releases a stage for itself."""
        return pipeline.CooperativeGroup(pipeline.Agent.Thread, 4 * warpgroups)

    def fragments(self, tiled_mma: cute.TiledMma, stages: tuple, part: tuple) -> tuple[Any, Any]:
        """The registers of A and B of a thread, and what fills them."""
        thr_mma = tiled_mma.get_slice(cute.arch.thread_idx()[0] % 128)
        a, b = (self.part_of(stages[mode], mode, part[mode]) for mode in range(2))  # (rows, bK, stages)
        tCrA = thr_mma.make_fragment_A(thr_mma.partition_A(a[None, None, 0]))  # (MMA, MMA_M, MMA_K)
        tCrB = thr_mma.make_fragment_B(thr_mma.partition_B(b[None, None, 0]))  # (MMA, MMA_N, MMA_K)
        to_rA, to_rB = (self.math.to_registers(x) for x in (self.config.a, self.config.b))
        copies = cute.make_tiled_copy_A(to_rA, tiled_mma), cute.make_tiled_copy_B(to_rB, tiled_mma)
        return self.fragment(copies[0], a, tCrA), self.fragment(copies[1], b, tCrB)

    def fragment(self, copy: cute.TiledCopy, stages: cute.Tensor, registers: cute.Tensor) -> Fragment:
        """``registers`` that ``copy`` fills from the ``stages`` (rows, bK, stages)."""
        mine = copy.get_slice(cute.arch.thread_idx()[0] % 128)
        return Fragment(registers, (copy, mine.partition_S(stages), copy.retile(registers)))
