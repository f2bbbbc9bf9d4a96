"""How long a Hopper kernel will take on a problem, compared with its other sizes.

A wave is one tile on each multiprocessor. Its time is the main loop's, the greater of the tensor cores' and the
loads', plus the ends of a tile; the whole takes at least as long as its bytes from memory. Times are in microseconds
for 16-bit operands on an H200 and for 8-bit ones at twice the rate; only ratios matter for the choice.
"""

from __future__ import annotations

from tilewright.gemm.config import HopperConfig
from tilewright.gemm.schedule.streamk import StreamK

FLOPS_PER_US = 5.6e6  # of one multiprocessor on 16-bit operands, under the power that it has
INSTRUCTION = 12.0  # columns that one wgmma of 64 rows costs beside its own
BYTES_PER_US = 4.6e4  # from L2 to one multiprocessor when all of them load
MEMORY_PER_US = 4.0e6  # bytes from memory
START = 3.5  # launch, the first loads and the last stores
TILE = 1.2  # beginning a tile
STORE = 1.6e-5  # each element of a tile in the epilogue, of the 128 x 256 tile 0.5
SHARING = 2.0  # what the exchange of sums costs once
MEMORY_LATENCY = 0.9  # from the issue of a load to its data


def hopper_estimate(
    config: HopperConfig, plan: StreamK | None, problem: tuple[int, int, int, int], room: tuple[int, int]
) -> float:
    """Microseconds for an (M, N, K, L) problem, as the kernel sees it, on a GPU of ``room``."""
    (bM, bN, bK), (cM, cN) = config.tile, config.cluster
    m, n, k, batch = problem
    workers = room[0] // config.cluster_size
    tiles = -(-m // (bM * cM)) * -(-n // (bN * cN)) * batch
    k_tiles = -(-k // bK)
    k_tile, ends = times_of(config)
    width = config.a.dtype.width / 8
    least = (batch * (m + n) * k * width + m * n * batch * config.c.dtype.width / 8) / MEMORY_PER_US
    if plan is None:
        whole = -(-tiles // workers) * (k_tiles * k_tile + ends)
        return max(whole, least) + START
    share, peers = plan.sk_tiles / plan.sk_blocks, max(1.0, plan.sk_blocks / plan.sk_tiles)
    per_peer = 0.5 + 0.7 * bM * bN / (128 * 256)
    shared = share * k_tiles * k_tile + ends * max(1.0, share) + SHARING + per_peer * peers
    rest = -(-(tiles - plan.sk_tiles) // workers) * (k_tiles * k_tile + ends)
    return max(shared + rest, least) + START


def times_of(config: HopperConfig) -> tuple[float, float]:
    """(a k tile, the ends of a tile) in microseconds."""
    bM, bN, bK = config.tile
    (_, columns), (cM, cN) = config.part, config.cluster
    rate = FLOPS_PER_US * 16 / config.a.dtype.width
    flops = 2 * bM * bN * bK / rate * (columns + INSTRUCTION) / columns
    loads = (bM / cN + bN / cM) * bK * config.a.dtype.width / 8 / BYTES_PER_US
    # One warpgroup alone waits between its groups of wgmma; too few stages do not cover the memory's latency.
    flops *= 1.25 if config.warpgroups == 1 and not config.pingpong else 1.0
    return max(flops, loads, MEMORY_LATENCY / (config.stages - 1)), TILE + STORE * bM * bN
