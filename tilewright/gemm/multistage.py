"""The multistage GEMM kernel: which tiles and k tiles a thread block multiplies, and what becomes of the sums.

The decomposition says what the block's share of the work is, the main loop multiplies, the epilogue writes D.
"""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
from tilewright import cute, utils
from tilewright.gemm.config import GemmConfig, Major, Operand
from tilewright.gemm.epilogue import epilogue_of
from tilewright.gemm.mainloop import MultistageMainloop, Slices
from tilewright.gemm.math import math_of
from tilewright.gemm.operand import global_to_shared
from tilewright.gemm.raster import GroupedRaster


class MultistageGemm:
    """D = alpha * A @ B + beta * C for A (M, K, L), B (N, K, L), C and D (M, N, L).

    Extents and strides are run-time; ``config`` fixes dtypes, contiguous modes, vector widths and tiles. Extents need
    not be multiples of the tile; K may be 0.
    """

    def __init__(self, config: GemmConfig) -> None:
        config.check()
        self.config = config
        self.math = math_of(config)
        self.mainloop = MultistageMainloop(config, self.math)
        self.raster = GroupedRaster(config.group)
        self.epilogue = epilogue_of(config)

    @cute.jit
    def __call__(
        self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, mD: cute.Tensor,
        alpha: cutlass.Numeric, beta: cutlass.Numeric, stream: Any = None,
    ) -> None:  # fmt: skip
        config = self.config
        bM, bN, bK = config.tile
        mA, mB, mC, mD = (
            aligned(tensor, operand)
            for tensor, operand in ((mA, config.a), (mB, config.b), (mC, config.c), (mD, config.c))
        )
        tiles_m = cute.ceil_div(cute.size(mD, mode=[0]), bM)
        tiles_n = cute.ceil_div(cute.size(mD, mode=[1]), bN)
        self.kernel(
            mA, mB, mC, mD, alpha, beta,
            self.math.smem_layout(config.a, (bM, bK)),
            self.math.smem_layout(config.b, (bN, bK)),
            global_to_shared(config.a, (bM, bK), config.threads),
            global_to_shared(config.b, (bN, bK), config.threads),
            self.math.tiled_mma(),
        ).launch(
            grid=(tiles_m * tiles_n, 1, cute.size(mD, mode=[2])),
            block=(config.threads, 1, 1),
            stream=stream,
        )  # fmt: skip

    @cute.kernel
    def kernel(
        self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, mD: cute.Tensor,
        alpha: cutlass.Numeric, beta: cutlass.Numeric,
        sA_layout: cutlass.Constexpr, sB_layout: cutlass.Constexpr,
        copy_A: cute.TiledCopy, copy_B: cute.TiledCopy, tiled_mma: cute.TiledMma,
    ) -> None:  # fmt: skip
        bM, bN, bK = self.config.tile
        tidx, _, _ = cute.arch.thread_idx()
        bidx, _, bidz = cute.arch.block_idx()
        M, N, K = cute.size(mA, mode=[0]), cute.size(mB, mode=[0]), cute.size(mA, mode=[1])
        tile_m, tile_n = self.raster.tile(bidx, cute.ceil_div(M, bM), cute.ceil_div(N, bN))

        # Shift K so that the first tile is the ragged one and all others are whole.
        k_tiles = cute.ceil_div(K, bK)
        gA, cA = k_slices(mA[None, None, bidz], (bM, bK), tile_m, k_tiles)
        gB, cB = k_slices(mB[None, None, bidz], (bN, bK), tile_n, k_tiles)

        # The main loop's stages and the epilogue's tile take turns in the same bytes.
        bytes_A = cute.cosize(sA_layout) * self.config.a.dtype.width // 8
        bytes_B = cute.cosize(sB_layout) * self.config.b.dtype.width // 8
        smem = utils.SmemAllocator().allocate(max(bytes_A + bytes_B, self.epilogue.smem_bytes), 128)
        sA = cute.make_tensor(cute.recast_ptr(smem, dtype=self.config.a.dtype), sA_layout)
        sB = cute.make_tensor(cute.recast_ptr(smem + bytes_A, dtype=self.config.b.dtype), sB_layout)

        thr_mma = tiled_mma.get_slice(tidx)
        tCrC = cute.make_rmem_tensor(thr_mma.partition_shape_C((bM, bN)), self.config.acc_dtype)
        tCrC.fill(0)
        self.mainloop.run(
            tiled_mma, tidx, tCrC, Slices(gA, cA, M, sA, copy_A), Slices(gB, cB, N, sB, copy_B), 0, k_tiles
        )
        cute.arch.sync_threads()
        gC = cute.local_tile(mC[None, None, bidz], (bM, bN), (tile_m, tile_n))
        gD = cute.local_tile(mD[None, None, bidz], (bM, bN), (tile_m, tile_n))
        cD = cute.local_tile(cute.make_identity_tensor((M, N)), (bM, bN), (tile_m, tile_n))
        self.epilogue.run(tiled_mma, tidx, tCrC, gC, gD, cD, smem, (M, N), alpha, beta)


def aligned(tensor: Any, operand: Operand) -> Any:
    """``tensor`` with the promise that its rows begin and end on multiples of the operand's vector."""
    vector, contiguous = operand.vector, 1 if operand.major is Major.K else 0
    shape = tuple(cute.assume(n, divby=vector) if mode == contiguous else n for mode, n in enumerate(tensor.shape))
    stride = tuple(s if isinstance(s, int) else cute.assume(s, divby=vector) for s in tensor.stride)
    return cute.make_tensor(tensor.iterator, cute.make_layout(shape, stride=stride))


def k_slices(matrix: Any, tile: tuple[int, int], index: Any, k_tiles: Any) -> tuple[Any, Any]:
    """The (MN, K, k tiles) slices of one operand and their coordinates, K shifted so that the last tile ends with
    it."""
    residue = cute.size(matrix, mode=[1]) - k_tiles * tile[1]
    identity = cute.make_identity_tensor(matrix.shape)
    return tuple(
        cute.local_tile(cute.domain_offset((0, residue), tensor), tile, (index, None)) for tensor in (matrix, identity)
    )
