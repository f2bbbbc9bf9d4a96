"""How long a kernel will take on a problem, compared with others of its library: the choice of tile and decomposition.

Times are in microseconds for 16-bit tensor-core kernels on an H200, where the constants were fitted (products from
64 x 4096 x 4096 to 8192^3, mostly within a tenth). Only their ratios matter, and these hold about as well elsewhere.
"""

from __future__ import annotations

from tilewright.gemm.config import GemmConfig
from tilewright.gemm.streamk import StreamK

FLOPS_PER_US = 4.2e6  # of one multiprocessor with its tensor pipes full
ALONE = 0.6  # time of a block that has a multiprocessor to itself where two fit, in times of the two together
PER_TILE = 4.5  # filling the pipeline, the epilogue
SHARING = 2.0  # what the shared loop costs once
PER_PEER = 1.2  # handing a tile's sums over
SMALL = 1.1  # a tile of 128 x 128 or less alone on a multiprocessor, against one twice as large
CROWDED = 1.06  # two blocks on a multiprocessor, against one with a tile twice as large
NARROW = {64: 1.45, 32: 2.1, 16: 4.4, 8: 8.0}  # a k tile whose operands come in accesses of so many bits, not of 128
UNEVEN = 1.1  # tiles of their own beside shared ones where several blocks live on a multiprocessor


def estimate(
    config: GemmConfig, plan: StreamK | None, problem: tuple[int, int, int, int], room: tuple[int, int]
) -> float:
    """Microseconds for an (M, N, K, L) problem on a GPU of ``room`` (multiprocessors, shared memory of each).

    ``plan`` None means data-parallel.
    """
    bM, bN, bK = config.tile
    m, n, k, batch = problem
    multiprocessors, smem = room
    at_once = min(2, config.blocks_at_once(smem))
    tiles = -(-m // bM) * -(-n // bN) * batch
    slower = 2 * CROWDED if at_once > 1 else SMALL if bM * bN <= 128 * 128 else 1.0
    slower *= NARROW.get(min(config.a.copy_bits, config.b.copy_bits), 1.0)
    tile = -(-k // bK) * 2 * bM * bN * bK / FLOPS_PER_US * slower
    if plan is None:
        return _waves(tiles, multiprocessors, at_once, tile)
    blocks = plan.sk_blocks
    share = plan.sk_tiles / blocks
    peers = max(1, blocks / plan.sk_tiles)
    # A share of more than a tile mostly has a tile cut at either end, and starts the pipeline for each of its tiles.
    shared = _waves(blocks, multiprocessors, at_once, share * tile) + PER_TILE * (share if share > 1 else 0)
    shared += SHARING + PER_PEER * (1 + peers)
    rest = _waves(tiles - plan.sk_tiles, multiprocessors, at_once, tile)
    return shared + rest * (UNEVEN if at_once > 1 else 1.0)


def _waves(blocks: int, multiprocessors: int, at_once: int, block: float) -> float:
    """Time of ``blocks`` equal blocks; ``block`` is the time of one where the multiprocessor is full."""
    full, rest = divmod(blocks, multiprocessors * at_once)
    alone = ALONE if at_once > 1 and rest <= multiprocessors else 1.0
    # Blocks that share a multiprocessor hide each other's fill and epilogue but for the last.
    ends = PER_TILE * (full / at_once + (rest > 0)) if at_once > 1 else PER_TILE * (full + (rest > 0))
    return full * block + (rest > 0) * alone * block + ends
