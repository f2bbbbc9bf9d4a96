"""From accumulators in tensor memory to D: parts are loaded to registers one after the other, and leave as those of
wgmma do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
from tilewright import const_expr, cute, range_constexpr
from tilewright.cute.nvgpu import tcgen05
from tilewright.gemm.blackwell_config import BlackwellConfig
from tilewright.gemm.epilogue.tma_store import TmaStoreEpilogue


@dataclass(frozen=True)
class TensorMemoryEpilogue(TmaStoreEpilogue):
    """Four warps, each of which reaches its 32 lanes, the rows of a tile."""

    config: BlackwellConfig

    def parts(self, acc: cute.Tensor) -> list[tuple[Any, Any]]:
        """The parts of a tile's accumulators (MMA, 1, 1) in tensor memory: each is loaded when its turn comes."""
        rows = acc[(None, None), 0, 0]  # (rows, columns)
        shape = self.config.tile[0], self.config.epilogue_columns
        return [(i, cute.local_tile(rows, shape, (0, i))) for i in range(self.config.parts)]

    @cute.jit
    def by_turns(self, sums: list[tuple[Any, cute.Tensor]], write: Callable[[list], None]) -> None:
        """In a loop whose turns fill every buffer once: tensor memory has addresses, which registers have not, and each
        part that is not written out saves NVRTC a sixth of its time."""
        each = self.config.epilogue_buffers
        if const_expr(len(sums) % each != 0 or len(sums) == each):
            write(sums)
        else:
            for turn in cutlass.range(len(sums) // each, unroll=1):
                write([self.part_at(sums, turn * each + i) for i in range_constexpr(each)])

    def part_at(self, sums: list[tuple[Any, cute.Tensor]], i: Any) -> tuple[Any, cute.Tensor]:
        """Part ``i`` of all ``sums``, whose number is known at run time."""
        first = sums[0][1]
        return i, cute.make_tensor(first.iterator + i * self.config.epilogue_columns, first.layout)

    @cute.jit
    def sums(self, part: Any) -> cute.Tensor:
        """The accumulators of a part, ((2, 2), 2, columns / 8), as the tiled MMA of the epilogue has them."""
        columns, dtype = self.config.epilogue_columns, self.config.acc_dtype
        atom = cute.make_copy_atom(tcgen05.Ld16x256bOp(tcgen05.Repetition(columns // 8)), dtype)
        load = tcgen05.make_tmem_copy(atom, part)
        mine = load.get_slice(cute.arch.thread_idx()[0] % 128)
        shape = mine.partition_D(cute.make_identity_tensor((self.config.tile[0], columns))).shape
        registers = cute.make_rmem_tensor(shape, dtype)  # (values, 2, 1): the warp's lower and upper 16 rows
        cute.copy(load, mine.partition_S(part), registers)
        cute.arch.fence_view_async_tmem_load()
        layout = cute.make_layout(((2, 2), 2, columns // 8), stride=((1, 2), columns // 2, 4))
        return cute.make_tensor(registers.iterator, layout)
