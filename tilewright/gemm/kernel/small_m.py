"""Products with few rows (M <= 16): the time is that of reading B once, so everything serves the stream of B.

Each warp reads rows of B (that is columns of the product, which are contiguous along K) with 16-byte loads straight
into the registers that mma.sync takes: nothing goes through shared memory. The warps of a block take different k tiles
of the same columns, and add up their sums in the end.

mma.sync 16x8x16 gives a thread the k elements 2t, 2t + 1, 2t + 8 and 2t + 9 of its row, t being the lane modulo 4. A
sum over k may be taken in any order, so k elements of memory are renamed: of 32, thread t holds 8t .. 8t + 7, which are
16 bytes, in two instructions. A is read in the same order, mostly from L1.
"""

from __future__ import annotations

from typing import Any

from tilewright import Float32, cute, range, range_constexpr, utils
from tilewright.gemm.access import VECTOR as BYTES
from tilewright.gemm.access import AccessRequirement
from tilewright.gemm.addressing import aligned_pointer
from tilewright.gemm.config import GemmConfig, Major
from tilewright.gemm.epilogue.fragment import FragmentEpilogue
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.kernel.overlap import wait_then_let_next_begin
from tilewright.gemm.mainloop.math import tensor_core_op
from tilewright.gemm.tiles import aligned

ROWS, GROUP, STEP, VECTOR = 16, 8, 32, 8
"""Rows of A, columns of B and k elements of one pair of instructions; and k elements of one load."""


class SmallMGemm:
    """D = f(A @ B, C) for A (M, K, L), B (N, K, L), C and D (M, N, L), M at most 16, with A and B contiguous along K.

    ``config.tile`` is (16, columns, k elements that a warp loads at once); ``config.warps`` (1, warps that share K).
    """

    ACCESS = AccessRequirement("the kernel for few rows", along=(Major.K,), step=BYTES, whole=True)
    """The requirement on A and B. C and D have none: threads access elements where vectors do not fit."""
    LAST = STEP
    """The k elements of :meth:`multiply_last`."""

    def __init__(self, config: GemmConfig) -> None:
        config.check()
        self.config = config
        self.epilogue = FragmentEpilogue(config)
        self.groups, self.steps, self.warps = config.tile[1] // GROUP, config.tile[2] // STEP, config.warps[1]

    def tiled_mma(self) -> Any:
        """One warp's instructions."""
        op = tensor_core_op(self.config.a.dtype, self.config.acc_dtype)
        return cute.make_tiled_mma(op, cute.make_layout((1, 1, 1)))

    @cute.jit
    def __call__(
        self,
        mA: cute.Tensor,
        mB: Any,
        mC: cute.Tensor,
        mD: cute.Tensor,
        function: EpilogueFunction,
        decomposition: Any = None,
        stream: Any = None,
    ) -> None:
        """Launch the product; each block makes ``config.tile[1]`` columns of it."""
        config = self.config
        mA, mC, mD = (aligned(tensor, operand) for tensor, operand in ((mA, config.a), (mC, config.c), (mD, config.c)))
        self.kernel(mA, self.weight(mB), mC, mD, function, self.tiled_mma()).launch(
            grid=(cute.ceil_div(cute.size(mD, mode=[1]), config.tile[1]), 1, cute.size(mD, mode=[2])),
            block=(config.threads, 1, 1),
            stream=stream,
            use_pdl=True,
        )

    @cute.kernel
    def kernel(
        self,
        mA: cute.Tensor,
        mB: Any,
        mC: cute.Tensor,
        mD: cute.Tensor,
        function: EpilogueFunction,
        tiled_mma: cute.TiledMma,
    ) -> None:
        column, _, batch = cute.arch.block_idx()
        mA, mC, mD = (tensor[None, None, batch] for tensor in (mA, mC, mD))
        lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
        K = cute.size(mA, mode=[1])
        _, columns, deep = self.config.tile
        # Rows and columns beyond the matrix read its last ones: what comes of them is not stored.
        rows = [self.row(mA, lane // 4 + 8 * half, lane) for half in range_constexpr(2)]
        cols = self.rows_of_weight(mB, batch, column, lane)
        acc = cute.make_rmem_tensor(tiled_mma.get_slice(0).partition_shape_C((ROWS, columns)), self.config.acc_dtype)
        acc.fill(0)  # (MMA, MMA_M, MMA_N)
        whole = K // deep
        wait_then_let_next_begin()
        for step in range(warp, whole, self.warps, unroll=1):
            self.multiply(tiled_mma, acc, rows, cols, step * deep)
        # What does not fill a warp's loads any more is the next warp's.
        if warp == whole % self.warps:
            for k in range(whole * deep, K, self.LAST, unroll=1):
                self.multiply_last(tiled_mma, acc, rows, cols, k, K, lane)
        self.add_up(acc, warp, lane)
        if warp == 0:
            extent = (cute.size(mD, mode=[0]), cute.size(mD, mode=[1]))
            gC, gD, cD = (
                cute.local_tile(tensor, (ROWS, columns), (0, column))
                for tensor in (mC, mD, cute.make_identity_tensor(extent))
            )
            for g in range_constexpr(self.groups):
                self.epilogue.run(tiled_mma, lane, acc[None, None, g], g, gC, gD, cD, extent, function)

    def weight(self, mB: Any) -> Any:
        """B as the kernel's argument."""
        return aligned(mB, self.config.b)

    def rows_of_weight(self, mB: Any, batch: Any, column: Any, lane: Any) -> list:
        """Where the lane's row of B begins, for each 8 columns of the block's."""
        matrix, first = mB[None, None, batch], column * self.config.tile[1] + lane // 4
        return [self.row(matrix, first + GROUP * g, lane) for g in range_constexpr(self.groups)]

    def row(self, matrix: cute.Tensor, index: Any, lane: Any) -> Any:
        """A pointer to the lane's first vector of a row."""
        last = cute.size(matrix, mode=[0]) - 1
        return aligned_pointer(matrix.iterator + (cute.min(index, last) * matrix.stride[0] + lane % 4 * VECTOR), 16)

    def fragments(self, steps: int) -> tuple[Any, Any]:
        """Registers of A (MMA, MMA_M, MMA_K) and B (MMA, MMA_N, MMA_K): the k elements of one row or column are
        neighbours, as they come from memory."""
        dtype, groups = self.config.a.dtype, self.groups
        a = cute.make_layout(((2, 2, 2), 1, (2, steps)), stride=((1, VECTOR, 2), 0, (4, 2 * VECTOR)))
        b = cute.make_layout(((2, 2), groups, (2, steps)), stride=((1, 2), VECTOR, (4, groups * VECTOR)))
        return cute.make_rmem_tensor(a, dtype), cute.make_rmem_tensor(b, dtype)

    def load(self, row: Any, k: Any, fragment: Any, at: int) -> None:
        """16 bytes of a row from ``k`` on into the registers from ``at`` on."""
        source = cute.make_tensor(aligned_pointer(row + k, 16), cute.make_layout(VECTOR))
        cute.autovec_copy(source, cute.make_tensor(fragment.iterator + at, cute.make_layout(VECTOR)))

    def multiply(self, tiled_mma: cute.TiledMma, acc: cute.Tensor, rows: list, cols: list, k: Any) -> None:
        """Whole vectors of all steps: all loads before the first instruction."""
        rA, rB = self.fragments(self.steps)
        for step in range_constexpr(self.steps):
            for g in range_constexpr(self.groups):
                self.load(cols[g], k + step * STEP, rB, (step * self.groups + g) * VECTOR)
        self.load_rows(rows, k, rA, self.steps)
        cute.gemm(tiled_mma, acc, rA, rB, acc)

    def load_rows(self, rows: list, k: Any, rA: cute.Tensor, steps: int) -> None:
        """The fragments of A for whole vectors of this number of steps."""
        for step in range_constexpr(steps):
            for half in range_constexpr(2):
                self.load(rows[half], k + step * STEP, rA, (2 * step + half) * VECTOR)

    @cute.jit
    def multiply_last(
        self, tiled_mma: cute.TiledMma, acc: cute.Tensor, rows: list, cols: list, k: Any, K: Any, lane: Any
    ) -> None:
        """One step whose vectors may be beyond K: they are zero."""
        rA, rB = self.fragments(1)
        rA.fill(0)
        rB.fill(0)
        if k + lane % 4 * VECTOR < K:
            for g in range_constexpr(self.groups):
                self.load(cols[g], k, rB, g * VECTOR)
            for half in range_constexpr(2):
                self.load(rows[half], k, rA, half * VECTOR)
        cute.gemm(tiled_mma, acc, rA, rB, acc)

    @cute.jit
    def add_up(self, acc: cute.Tensor, warp: Any, lane: Any) -> None:
        """The sums of all warps into those of the first, in the order of the warps."""
        count = cute.size(acc)
        # (accumulators, lanes, warps): the lanes of a warp touch 32 neighbouring words, a bank each.
        smem = utils.SmemAllocator().allocate_tensor(
            Float32, cute.make_layout((count, 32, self.warps), stride=(32, 1, 32 * count)), 16
        )
        for i in range_constexpr(count):
            smem[i, lane, warp] = acc[i]
        cute.arch.sync_threads()
        if warp == 0:
            for other in range_constexpr(1, self.warps):
                for i in range_constexpr(count):
                    acc[i] = acc[i] + smem[i, lane, other]
