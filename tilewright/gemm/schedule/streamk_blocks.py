"""How many tiles Stream-K takes, and over how many blocks it spreads them: the cost model of CUTLASS 2.x.

A *wave* is as many blocks as there are multiprocessors. Tiles that fill whole waves cost nothing extra when each block
computes one of them (data-parallel); the last, partial wave leaves multiprocessors idle. Stream-K takes the tiles of
that wave (and, where the machine is full already, of the one before it), lays their k-iterations in one line and cuts
the line into equal pieces, a piece a block. The price is that a tile may be computed by several blocks, whose partial
sums must be brought together (*fixup*). The model weighs iterations saved against fixup, both in units of one
k-iteration of one block.

Its numbers are float32, as upstream: sums are truncated to whole iterations, so another precision would sometimes
choose another split.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from tilewright.errors import ArgumentError

MIN_ITERS_PER_SK_BLOCK = 2
"""A block that would do fewer k-iterations than this is not worth its start."""

WAVE_COST, PEER_COST, SKEW_COST = 2.0, 2.0, 0.02
"""Iterations that fixup costs: per wave, per block that shares a tile, and per sharing block and iteration where the
blocks do not begin and end with tiles."""

COHORT_M, COHORT_N = 8, 4
"""Tiles of a cohort along M and N."""

MIN_COHORT_EFFICIENCY = 0.85
"""Cohorts overhang the matrix; more than this part of the blocks of whole cohorts must have a data-parallel tile."""

_FLOAT32 = struct.Struct("f")


class Candidate(NamedTuple):
    """A possible Stream-K part: its tiles, in at most ``waves`` waves of blocks, possibly fewer than one wave."""

    tiles: int
    waves: int
    partial_wave: bool


def get_blocks(output_tiles: int, iters_per_tile: int, avail_sms: int, sm_occupancy: int) -> tuple[int, int]:
    """(data-parallel tiles, Stream-K blocks) for ``output_tiles`` tiles of ``iters_per_tile`` k-iterations each on
    ``avail_sms`` multiprocessors that hold ``sm_occupancy`` blocks each.

    Nine tiles on eight multiprocessors would take two waves; as Stream-K they cost 5/8 of that, fixup included:

    >>> get_blocks(9, 64, 8, 1)
    (0, 8)
    >>> get_blocks(16, 64, 8, 1)  # two whole waves: nothing to win
    (16, 0)
    """
    for candidate in candidates(output_tiles, avail_sms, sm_occupancy):
        savings, sk_blocks = get_sk_blocks(candidate, iters_per_tile, avail_sms)
        if savings >= 0:
            return output_tiles - candidate.tiles, sk_blocks
    return output_tiles, 0


def candidates(output_tiles: int, avail_sms: int, sm_occupancy: int) -> Iterator[Candidate]:
    """The possible Stream-K parts, in the order of trial.

    >>> list(candidates(9, 8, 1))
    [Candidate(tiles=9, waves=1, partial_wave=False)]
    """
    full_waves, partial = divmod(output_tiles, avail_sms)
    if not partial:
        return
    if full_waves < sm_occupancy:  # a multiprocessor takes one more block next to the full waves
        yield Candidate(partial, sm_occupancy - full_waves, True)
        return
    if sm_occupancy > 1 and full_waves % sm_occupancy == sm_occupancy - 1:  # one place a multiprocessor is left
        yield Candidate(partial, 1, True)
    yield Candidate(partial + avail_sms, sm_occupancy - (full_waves - 1) % sm_occupancy, False)


def get_sk_blocks(candidate: Candidate, iters_per_tile: int, avail_sms: int) -> tuple[int, int]:
    """(iterations saved, blocks) of the best number of blocks; of equally good numbers the largest. The savings are
    negative if Stream-K is not worth it, or if there are too few iterations for any number of blocks.

    >>> get_sk_blocks(Candidate(tiles=9, waves=1, partial_wave=False), iters_per_tile=64, avail_sms=8)
    (48, 8)
    """
    results = trials(candidate, iters_per_tile, avail_sms)
    return max(((trial.data_parallel - trial.stream_k, trial.blocks) for trial in results), default=(-1, 0))


class Trial(NamedTuple):
    """A number of blocks for a candidate's tiles, and what these tiles cost: iterations one after the other."""

    blocks: int
    data_parallel: int
    stream_k: int


def trials(candidate: Candidate, iters_per_tile: int, avail_sms: int) -> Iterator[Trial]:
    """The numbers of blocks between which :func:`get_sk_blocks` chooses.

    >>> list(trials(Candidate(tiles=9, waves=1, partial_wave=False), iters_per_tile=64, avail_sms=8))
    [Trial(blocks=8, data_parallel=128, stream_k=80)]
    """
    iters = candidate.tiles * iters_per_tile
    least = min(avail_sms, candidate.tiles + 1) if candidate.partial_wave else avail_sms
    most = min(avail_sms * candidate.waves, iters // MIN_ITERS_PER_SK_BLOCK)
    data_parallel = iters_per_tile * ceil_div(candidate.tiles, avail_sms)
    for blocks in range(least, most + 1):
        yield Trial(blocks, data_parallel, _cost(blocks, candidate.tiles, iters, avail_sms))


def _cost(blocks: int, tiles: int, iters: int, avail_sms: int) -> int:
    """Iterations one after the other, fixup included, when ``blocks`` blocks share the ``iters`` of ``tiles`` tiles."""
    waves = ceil_div(blocks, avail_sms)
    longest = ceil_div(iters, blocks) * waves
    if blocks % tiles == 0:  # each block stays inside one tile
        peers, skew = blocks // tiles, 0.0
    else:  # one more block may reach into a tile from its neighbour
        peers = ceil_div(blocks, tiles) + 1
        skew = float32(float32(float32(SKEW_COST) * float32(peers)) * float32(longest))
    fixup = float32(float32(float32(WAVE_COST * waves) + skew) + float32(PEER_COST * peers))
    return longest + int(fixup)


def shares(sk_tiles: int, sk_blocks: int, iters_per_tile: int) -> dict[str, Any]:
    """How the iterations of the SK tiles are dealt out."""
    iters = sk_tiles * iters_per_tile
    blocks = min(sk_blocks, iters)
    if not blocks:
        return {
            "sk_regions": 1,
            "sk_blocks_per_region": 1,
            "sk_big_blocks_per_region": 0,
            "sk_iters_per_normal_block": 1,
            "sk_iters_per_region": 0,
        }
    normal, big = divmod(iters, blocks)
    regions = sk_tiles if blocks > sk_tiles and blocks % sk_tiles == 0 else 1
    return {
        "sk_regions": regions,
        "sk_blocks_per_region": blocks // regions,
        "sk_big_blocks_per_region": big // regions,
        "sk_iters_per_normal_block": normal,
        "sk_iters_per_region": iters // regions,
    }


def data_parallel(
    tiled_shape: tuple[int, int, int],
    dp_tiles: int,
    sk_tiles: int,
    sk_waves: int,
    avail_sms: int,
    multiprocessors: int,
    occupancy: int,
) -> dict[str, Any]:
    """The DP blocks, and whether tiles are numbered by cohorts."""
    if dp_tiles >= 2 * multiprocessors * occupancy:
        tiles_m, tiles_n, _ = tiled_shape
        cohorts_m, cohorts_n = ceil_div(tiles_m, COHORT_M), ceil_div(tiles_n, COHORT_N)
        cohort_blocks = cohorts_m * cohorts_n * COHORT_M * COHORT_N
        # SK tiles are not asked whether they exist: all of theirs must be cohorts inside the matrix.
        last = (sk_tiles - 1) // (COHORT_M * COHORT_N)
        row, column = divmod(last, cohorts_n)
        reach_n = cohorts_n if row > 0 else column + 1
        inside = sk_tiles == 0 or ((row + 1) * COHORT_M < tiles_m and reach_n * COHORT_N < tiles_n)
        if inside and float32(float32(dp_tiles) / float32(cohort_blocks)) > float32(MIN_COHORT_EFFICIENCY):
            return {"dp_blocks": cohort_blocks, "dp_first_wave_tiles": 1, "cohort_raster": True}
    excess = (sk_waves + ceil_div(dp_tiles, avail_sms)) % occupancy if sk_waves else 0
    if 1 + excess > dp_tiles // avail_sms:
        excess = 0
    return {
        "dp_blocks": dp_tiles - excess * avail_sms,
        "dp_first_wave_tiles": 1 + excess,
        "cohort_raster": False,
    }


def float32(x: float) -> float:
    """The nearest float32. Sums, products and quotients of two float32 numbers, rounded by this, are float32's own."""
    rounded: float = _FLOAT32.unpack(_FLOAT32.pack(x))[0]
    return rounded


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def positive(name: str, value: Any, hint: str = "") -> int:
    """``value`` as an int; ArgumentError unless it is a positive integer."""
    if type(value) is int and value > 0:
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__") or operator.index(value) < 1:
        raise ArgumentError(f"{name} must be a positive integer, got {value!r}{': ' if hint else ''}{hint}")
    return operator.index(value)


def triple(name: str, value: Any, meaning: str) -> tuple[int, int, int]:
    """Three positive integers."""
    if not isinstance(value, (tuple, list)) or len(value) != 3:
        raise ArgumentError(f"{name} must be three integers {meaning}, got {value!r}")
    a, b, c = value
    if type(a) is type(b) is type(c) is int and min(a, b, c) > 0:
        return a, b, c
    return positive(f"{name}[0]", a), positive(f"{name}[1]", b), positive(f"{name}[2]", c)
