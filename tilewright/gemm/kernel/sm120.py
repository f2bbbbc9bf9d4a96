"""The persistent, warp-specialised GEMM of sm_120: TMA loads, mma.sync multiplies, TMA stores.

GPUs of sm_120 have neither wgmma nor tcgen05. Schedule, ring of stages, roles, sharing of tiles and stores are those of
the Hopper kernel (``warp_specialized.py``). What differs is how a warpgroup multiplies: by mma.sync, whose operands
come to registers by ldmatrix (``mainloop.mma_sync``).
"""

from __future__ import annotations

from typing import Any, ClassVar

from tilewright import cute, pipeline
from tilewright.errors import ConstraintError
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.epilogue.mma_sync import MmaSyncEpilogue
from tilewright.gemm.epilogue.scales import BLOCK, block_scales
from tilewright.gemm.kernel.warp_specialized import WarpSpecializedGemm
from tilewright.gemm.mainloop.mma_sync import Fragment, MmaSyncMainloop, MmaSyncMath
from tilewright.gemm.sm120_config import MOST_SUMS, Sm120Config

SCALES = 8
"""Registers for scales of blocks that a thread has beside two sets of sums: ptxas spills with 17."""


def holds_block_scales(config: Sm120Config, rows: int | None = 1, columns: int | None = BLOCK) -> bool:
    """Whether a size can multiply the sums of each k tile by scales of blocks of ``rows`` of A and ``columns`` of B: a
    k tile is a block long, a warpgroup's part of a tile is within one block of rows and one of columns, and a thread
    has registers for two sets of sums and for the scales of its part."""
    part_m, part_n = config.part
    if config.pingpong or config.transposed or config.tile[2] != BLOCK or BLOCK % part_m or BLOCK % part_n:
        return False
    held = (part_m // 16 if rows == 1 else 1) + (part_n // 8 if columns == 1 else 1)
    return 2 * config.apart + held <= MOST_SUMS[config.warpgroups] + SCALES


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

    def check_block_scales(self, function: EpilogueFunction) -> None:
        if block_scales(function) is not None and not holds_block_scales(self.config):
            raise ConstraintError(
                f"scales of blocks are applied to the sums of {BLOCK} elements of K, in parts of tiles that divide "
                f"{BLOCK} x {BLOCK}, which a thread holds beside the sums of all: take a size of half as many that is "
                f"not transposed and whose warpgroups do not take turns, not {self.config}"
            )

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
