"""Some columns of an mma.sync or FMA tile to D, straight from the registers: what a reduction block writes, and what
products with few rows end in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import Boolean, const_expr, cute, range_constexpr
from tilewright.gemm.config import GemmConfig, Major
from tilewright.gemm.epilogue.functions import EpilogueFunction, applied, stores_result
from tilewright.gemm.epilogue.store import by_rows, rounded
from tilewright.gemm.epilogue.tile import EpilogueTile


@dataclass(frozen=True)
class FragmentEpilogue:
    """The accumulators (MMA, MMA_M) of one step of the instruction along N. Threads write pairs of neighbouring columns
    where D allows it, otherwise element by element: there are few of them, and many blocks."""

    config: GemmConfig

    @property
    def pair(self) -> int:
        """Elements of one access."""
        config = self.config
        return 2 if config.tensor_cores and config.c.major is Major.K and config.c.vector > 1 else 1

    def atom(self) -> Any:
        dtype = self.config.c.dtype
        return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), dtype, num_bits_per_copy=self.pair * dtype.width)

    @cute.jit
    def run(
        self,
        tiled_mma: cute.TiledMma,
        tidx: Any,
        sums: cute.Tensor,
        step: Any,
        gC: cute.Tensor,
        gD: cute.Tensor,
        cD: cute.Tensor,
        extent: tuple,
        function: EpilogueFunction,
        scatter: Any = None,
    ) -> None:
        """Write ``sums``, the accumulators of ``step``, to their place in the tile ``gD``."""
        thr_mma = tiled_mma.get_slice(tidx)
        tC, tD, tc = (thr_mma.partition_C(x)[None, None, step] for x in (gC, gD, cD))  # (MMA, MMA_M)
        acc = cute.make_tensor(sums.iterator, cute.make_layout(tc.shape))
        c = self.pairs(tc)
        inside = cute.make_rmem_tensor((1, cute.size(c, mode=[1])), Boolean)
        for i in range_constexpr(cute.size(inside)):
            inside[i] = cute.elem_less(c[0, i], extent)
        move = by_rows(scatter, [c[0, i][0] for i in range(cute.size(inside))], extent[0], 1, 2)

        def read_source() -> Any:
            source = cute.make_rmem_tensor(tc.shape, self.config.c.dtype)
            source.fill(0)
            move(self.atom(), self.pairs(tC), self.pairs(source), inside, False)
            return source.load()

        acc = applied(function, acc, EpilogueTile(tc, extent, read_source, self.config.transposed))
        if const_expr(stores_result(function)):
            move(self.atom(), self.pairs(rounded(acc, self.config.c.dtype)), self.pairs(tD), inside, True)

    def pairs(self, tensor: cute.Tensor) -> cute.Tensor:
        """A partition as (elements of one access, accesses)."""
        return cute.flat_divide(cute.group_modes(tensor, 0, cute.rank(tensor)), (self.pair,))
