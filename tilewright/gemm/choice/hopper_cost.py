"""How long a Hopper kernel will take on a problem, compared with its other sizes.

A wave is one tile on each multiprocessor. Its time is the main loop's, the greatest of the tensor cores', the loads'
and the latency that the stages leave uncovered, plus the ends of a tile. The whole takes at least as long as its bytes
from memory and its energy. Times are in microseconds for 16-bit operands on an H200, where the constants were fitted to
the sizes of the library on 35 products from 3 to 6000 microseconds (the choice is within 3 % of the best of them,
geometric mean); 8-bit operands count at twice the rate. Only ratios matter for the choice.
"""

from __future__ import annotations

from tilewright.gemm.config import HopperConfig
from tilewright.gemm.schedule.streamk import StreamK

FLOPS_PER_US = 7.9e6  # of one multiprocessor at its full clock, 16-bit operands
SUSTAINED_PER_US = 7.4e8  # of the whole GPU under its power limit
INSTRUCTION = 47.0  # columns that one wgmma costs beside its own
ALONE = 1.07  # one warpgroup does not keep the tensor cores busy between its groups of wgmma
BYTES_PER_US = 1.1e5  # from L2 to one multiprocessor alone
CROWD = 2.6  # how much slower when all of them load
MISALIGNED = 1.5  # how much slower rows are that do not begin at multiples of 128 bytes
MEMORY_PER_US = 4.0e6  # bytes from memory
L2_BYTES = 2.4e7  # of an operand that stays in L2 beside the other
LATENCY = 0.56  # of a load
START = 3.0  # launch, first loads, last stores
PART, STORE = 0.066, 4.1e-5  # the end of a tile: for each part and for each element of it
SHARED = 1.08  # how much slower the shared loop is
SHARING, PEER_ELEMENT = 1.3, 1.9e-4  # exchanging sums: once, and for each element of each block of a tile
WASTE = 0.13  # of the time that a schedule would take, where memory or power decide: waiting is not free


def hopper_estimate(
    config: HopperConfig, plan: StreamK | None, problem: tuple[int, int, int, int], limits: tuple[int, int]
) -> float:
    """Microseconds for an (M, N, K, L) problem, as the kernel sees it, on a GPU of ``limits``."""
    (bM, bN, bK), (cM, cN) = config.tile, config.cluster
    m, n, k, batch = problem
    workers = limits[0] // config.cluster_size
    tiles = -(-m // (bM * cM)) * -(-n // (bN * cN)) * batch
    k_tiles = -(-k // bK)
    width = config.a.dtype.width / 8
    bytes_ = batch * ((m + n) * k * width + m * n * config.c.dtype.width / 8)
    if plan is not None and plan.sk_regions == 1:
        # Shares that begin anywhere in K do not read the same slices of an operand at the same time: what L2 does not
        # hold comes from memory for each tile anew.
        apart = (bM if m * k * width > L2_BYTES else 0) + (bN if n * k * width > L2_BYTES else 0)
        bytes_ = max(bytes_, plan.sk_tiles * apart * k * width)
    least = max(bytes_ / MEMORY_PER_US, 2.0 * m * n * k * batch * width / 2 / SUSTAINED_PER_US)
    ends = STORE * bM * bN + PART * (config.part[1] // config.epilogue_columns)
    if plan is None:
        tile = k_tiles * k_tile(config, k, min(1.0, tiles / workers)) + ends
        return bounded(-(-tiles // workers) * tile, least)
    loop = k_tiles * k_tile(config, k, 1.0)
    share, peers = plan.sk_tiles / plan.sk_blocks, max(1.0, plan.sk_blocks / plan.sk_tiles)
    shared = SHARED * share * loop + ends * max(1.0, share) + SHARING + PEER_ELEMENT * bM * bN * peers
    rest = -(-(tiles - plan.sk_tiles) // workers) * (loop + ends)
    return bounded(shared + rest, least)


def bounded(schedule: float, least: float) -> float:
    """The time of a schedule that memory and power do not let end before ``least``."""
    return max(schedule, least) + WASTE * min(schedule, least) + START


def k_tile(config: HopperConfig, k: int, busy: float) -> float:
    """Microseconds of a k tile where the part ``busy`` of the multiprocessors works."""
    (bM, bN, bK), (cM, cN) = config.tile, config.cluster
    columns, width = config.part[1], config.a.dtype.width
    flops = 2 * bM * bN * bK / FLOPS_PER_US * width / 16 * (columns + INSTRUCTION) / columns
    flops *= ALONE if config.warpgroups == 1 else 1.0
    loads = (bM / cN + bN / cM) * bK * width / 8 / BYTES_PER_US * (1 + (CROWD - 1) * busy) / CROWD
    loads *= 1.0 if k * width % 1024 == 0 else MISALIGNED
    return max(flops, loads, LATENCY / (config.stages - 1))
