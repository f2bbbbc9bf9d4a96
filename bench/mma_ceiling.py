"""What mma.sync can reach at all: fragments stay in registers, nothing is loaded in the loop.

    python bench/mma_ceiling.py

The operands are drawn once (normal numbers, or integers in [-2, 2]); blocks of eight warps multiply their 128 x 256
tile again and again, for long enough that the clock settles. What a GEMM with this instruction loses against this
figure, it loses to moving data; what this figure loses against cuBLAS, no schedule of mma.sync can win back.
"""

from __future__ import annotations

import statistics
from typing import Any

import torch
from figures import table

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.runtime import from_dlpack

TILE = (128, 256, 32)
ROUNDS = 4000


class Ceiling:
    @cute.jit
    def __call__(self, mA: cute.Tensor, mB: cute.Tensor, mD: cute.Tensor, rounds: cutlass.Int32, blocks: cutlass.Int32):
        op = cute.nvgpu.warp.MmaF16BF16Op(mA.element_type, cutlass.Float32, (16, 8, 16))
        tiled_mma = cute.make_tiled_mma(op, cute.make_layout((2, 4, 1)), permutation_mnk=(32, 64, 16))
        self.kernel(mA, mB, mD, rounds, tiled_mma).launch(grid=(blocks, 1, 1), block=(256, 1, 1))

    @cute.kernel
    def kernel(
        self, mA: cute.Tensor, mB: cute.Tensor, mD: cute.Tensor, rounds: cutlass.Int32, tiled_mma: cute.TiledMma
    ):
        tidx, _, _ = cute.arch.thread_idx()
        thr_mma = tiled_mma.get_slice(tidx)
        tCgA, tCgB, tCgD = thr_mma.partition_A(mA), thr_mma.partition_B(mB), thr_mma.partition_C(mD)
        tCrA, tCrB = thr_mma.make_fragment_A(tCgA), thr_mma.make_fragment_B(tCgB)
        tCrC = cute.make_rmem_tensor(thr_mma.partition_shape_C(TILE[:2]), cutlass.Float32)
        cute.basic_copy(tCgA, tCrA)
        cute.basic_copy(tCgB, tCrB)
        tCrC.fill(0)
        for _ in cutlass.range(rounds, unroll=1):
            for k_block in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
                cute.gemm(tiled_mma, tCrC, tCrA[None, None, k_block], tCrB[None, None, k_block], tCrC)
        cute.basic_copy(tCrC, tCgD)


def measure(a: torch.Tensor, b: torch.Tensor) -> float:
    """TFLOP/s, the median of nine launches after as many to settle the clock."""
    out = torch.empty(TILE[:2], device="cuda")
    blocks = torch.cuda.get_device_properties(0).multi_processor_count
    tensors = [from_dlpack(t, assumed_align=16) for t in (a, b, out)]
    run: Any = cute.compile(Ceiling(), *tensors, ROUNDS, blocks)
    run(*tensors, 3, 1)
    torch.testing.assert_close(out, 3 * a.float() @ b.float().T, rtol=1e-2, atol=1e-1)
    times = []
    for _ in range(18):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run(*tensors, ROUNDS, blocks)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e-3)
    return 2.0 * TILE[0] * TILE[1] * TILE[2] * ROUNDS * blocks / statistics.median(times[9:]) * 1e-12


def main() -> None:
    rows = []
    for kind in ("normal", "integers", "zeros"):
        draw = {
            "normal": lambda *s: torch.randn(s, device="cuda"),
            "integers": lambda *s: torch.randint(-2, 3, s, device="cuda"),
            "zeros": lambda *s: torch.zeros(s, device="cuda"),
        }[kind]
        a, b = draw(TILE[0], TILE[2]).half(), draw(TILE[1], TILE[2]).half()
        rows.append((kind, f"{measure(a, b):.0f}"))
    table("mma.sync m16n8k16 f16, f32 sums, operands in registers", rows, ("inputs", "TFLOP/s"))


if __name__ == "__main__":
    main()
