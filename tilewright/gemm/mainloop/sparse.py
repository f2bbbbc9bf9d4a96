"""The Hopper main loop for a 2:4 sparse A: the metadata come by TMA with the stage, and go to registers.

wgmma reads its metadata from registers at any time until its group is done, and one group stays in flight. So stages
take turns with two sets of registers: one is loaded when the group that read it, two stages before, has been waited
for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import tilewright as cutlass
from tilewright import Int32, cute
from tilewright.atoms.sparsity import METADATA_ROWS, word_k
from tilewright.cute.nvgpu import warpgroup
from tilewright.gemm.config import HopperConfig
from tilewright.gemm.mainloop.staged_mma import StagedMma
from tilewright.gemm.mainloop.tma import TmaMainloop

WORDS = 128
"""Words of the metadata of 64 rows and 64 elements of K: one for each thread of a warpgroup."""


def metadata_stages(config: HopperConfig) -> Any:
    """(128, words along K, 64 rows of A each, stages): where the metadata are in shared memory."""
    return cute.make_layout(
        (WORDS, config.tile[2] // word_k(config.a.dtype.width), config.tile[0] // METADATA_ROWS, config.stages)
    )


@dataclass(frozen=True)
class SparseFragments:
    """A sparse A as a warpgroup reads it: the descriptors of its stored elements (MMA, MMA_M, MMA_K, stages), and the
    calling thread's ``words`` of metadata in shared memory (bK / 64, MMA_M, stages)."""

    stored: cute.Tensor
    words: cute.Tensor

    def registers(self) -> cute.Tensor:
        """Registers for the metadata of one stage, (1, MMA_M, bK / 64)."""
        words, rows, _ = self.words.shape
        return cute.make_rmem_tensor((1, rows, words), Int32)


@dataclass(frozen=True)
class SparseTmaMainloop(TmaMainloop):
    """acc = A[:, k tiles] @ B[:, k tiles] for a sparse A."""

    @cute.jit
    def multiply_stages(
        self, mma: StagedMma, acc: cute.Tensor, state: Any, k_tiles: Any, issued: Callable[[], None]
    ) -> Any:
        """acc = the sum over ``k_tiles`` > 0 stages; ``mma.a`` are :class:`SparseFragments`."""
        sets = mma.a.registers(), mma.a.registers()
        issue = [partial(self.multiply_sparse_stage, mma, acc, registers) for registers in sets]
        release = self.first_stage(mma, issue[0], state)
        pairs = (k_tiles - 1) // 2
        for _ in cutlass.range(pairs, unroll=1):
            for i in cutlass.range_constexpr(2):
                self.next_stage(mma, issue[1 - i], state, release)
        if 2 * pairs + 1 < k_tiles:
            self.next_stage(mma, issue[1], state, release)
        issued()
        warpgroup.wait_group(0)
        mma.ring.consumer_release(release)
        return state

    @cute.jit
    def multiply_sparse_stage(self, mma: StagedMma, acc: cute.Tensor, registers: cute.Tensor, stage: Any) -> None:
        """Load the metadata of one stage and issue its wgmma as one group."""
        _, rows, words = registers.shape
        for m in cutlass.range_constexpr(rows):
            for k in cutlass.range_constexpr(words):
                registers[0, m, k] = mma.a.words[k, m, stage]
        warpgroup.fence()
        here = (None, None, None, stage)
        cute.gemm(mma.tiled_mma, acc, (mma.a.stored[here], registers), mma.b[here], acc)
        warpgroup.commit_group()
