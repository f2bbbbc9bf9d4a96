"""How long a kernel will take on a problem, compared with others of its library: the choice of tile and decomposition.

Times are in microseconds for 16-bit tensor-core kernels on an H200, where the constants were fitted (products from
16 x 4096 x 4096 to 8192^3, mostly within a fifth). The rates of other operands and of FMA units are nominal, not
fitted. Only ratios matter for the choice; on other GPUs they were not measured.
"""

from __future__ import annotations

from tilewright.gemm.config import GemmConfig
from tilewright.gemm.schedule.streamk import StreamK

FLOPS_PER_US = 4.2e6  # of one multiprocessor with its tensor pipes full, 16-bit operands
RATES = {8: 2.0, 16: 1.0, 32: 0.5, 64: 0.1}  # of tensor cores by the width of their operands
SIMT_RATE = 0.1
BYTES_PER_US = 6.0e4  # of operands from L2 to one multiprocessor when all of them load
FOUR_WARPS = 0.74  # how much of either a block of four warps reaches when it has a multiprocessor to itself
LARGEST = 128 * 256
SHARING = 2.0  # what the shared loop costs once
NARROW = {64: 1.45, 32: 2.1, 16: 4.4, 8: 8.0}  # a k tile whose operands come in accesses of so many bits, not of 128


def estimate(
    config: GemmConfig, plan: StreamK | None, problem: tuple[int, int, int, int], limits: tuple[int, int]
) -> float:
    """Microseconds for an (M, N, K, L) problem on a GPU of ``limits`` (multiprocessors, shared memory of each).

    ``plan`` None means data-parallel.
    """
    bM, bN, bK = config.tile
    m, n, k, batch = problem
    multiprocessors, smem = limits
    k_tiles, tiles = -(-k // bK), -(-m // bM) * -(-n // bN) * batch
    blocks = Blocks(config, multiprocessors, smem)
    if plan is None:
        return blocks.time(tiles, k_tiles)
    share, peers = plan.sk_tiles / plan.sk_blocks, max(1, plan.sk_blocks / plan.sk_tiles)
    per_peer = 0.5 + 0.7 * bM * bN / LARGEST
    shared = blocks.time(plan.sk_blocks, share * k_tiles) + SHARING + per_peer * (1 + peers)
    # A share of more than a tile mostly has a tile cut at either end, and starts the pipeline for each of its tiles.
    shared += blocks.ends * (share if share > 1 else 0)
    return shared + blocks.time(tiles - plan.sk_tiles, k_tiles)


class Blocks:
    """Thread blocks of one kernel: ``full`` and ``alone``, the time of a k tile on a multiprocessor that holds as many
    as it can, and one; ``ends``, the time of filling the pipeline and of the epilogue."""

    def __init__(self, config: GemmConfig, multiprocessors: int, smem: int) -> None:
        bM, bN, bK = config.tile
        width = config.a.dtype.width
        rate = SIMT_RATE if config.math == "simt" else RATES[width]
        flops = 2 * bM * bN * bK / (FLOPS_PER_US * rate)
        loads = (bM + bN) * bK * width / 8 / BYTES_PER_US
        slower = NARROW.get(min(config.a.copy_bits, config.b.copy_bits), 1.0)
        self.at_once = min(2, config.blocks_at_once(smem))
        self.multiprocessors = multiprocessors
        self.full = max(flops, loads) * slower * self.at_once
        self.alone = max(flops / FOUR_WARPS, 0.9 * loads) * slower if self.at_once > 1 else self.full
        self.ends = 2.0 + 2.5 * bM * bN / LARGEST

    def time(self, count: int, k_tiles: float) -> float:
        """Of ``count`` blocks with so many k tiles each."""
        waves, rest = divmod(count, self.multiprocessors * self.at_once)
        last = 0.0 if not rest else self.alone if rest <= self.multiprocessors else self.full
        # Blocks that share a multiprocessor hide each other's ends but for the last.
        return (waves * self.full + last) * k_tiles + self.ends * (waves / self.at_once + (rest > 0))
