"""The models of time against the same formulas for one option at a time, written as one reads them, in float64."""

from __future__ import annotations

import random
from math import ceil, floor

import pytest

from tilewright.gemm import kernels
from tilewright.gemm.choice import cost, hopper_cost
from tilewright.gemm.choice.choose import Options
from tilewright.gemm.choice.ways import EVEN, NEVER, Problem, Way, along
from tilewright.gemm.config import GemmConfig, HopperConfig
from tilewright.lang.tools.hardware import clusters_at_once

SMS, SMEM = 132, 232448
KERNELS = {"hopper_f16": 40, "hopper_e4m3": 15, "tensorop_f16": 300, "tensorop_i8": 50, "small_m_f16": 50}
TIE = 1e-5  # how near the time of another option may be that is chosen instead: the vectors are float32


def problems(count: int) -> list[Problem]:
    """Small and large, whole tiles and waves and any number, a few batches."""
    rng = random.Random(count)
    found: list[Problem] = [(4096, 4096, 4096, 1), (128, 128 * 132, 512, 1), (256, 256 * 66, 64, 1), (8, 8, 65536, 1)]
    while len(found) < count:
        m, n, k = (rng.choice((rng.randint(1, 8192), 64 * rng.randint(1, 128), round(2 ** rng.uniform(0, 15))))
                   for _ in range(3))  # fmt: skip
        found.append((m, n, k, rng.choice((1, 1, 1, 1, 1, 1, 1, 3, 40))))
    return found


def hopper_us(way: Way, problem: Problem) -> float:
    c, (m, n, k, batch) = way.config, problem
    assert isinstance(c, HopperConfig)
    parts, bytes_in = max(1, way.parts), c.a.dtype.width / 8
    partial = n * c.c.dtype.width // 8 % hopper_cost.SECTOR != 0
    m, n = along(c, (m, n))
    (bM, bN, bK), (cM, cN) = c.tile, c.cluster
    k_tiles = ceil(k / (bK * c.cluster_k * parts))
    waves = ceil(m / (bM * cM)) * ceil(n / (bN * cN)) * parts * batch / clusters_at_once(SMS, c.cluster_size)
    crowd = 1.0 if way.parts == EVEN else (1 + (hopper_cost.CROWD - 1) * min(waves, 1.0)) / hopper_cost.CROWD
    loads = hopper_cost.loads_us(c) * crowd * (hopper_cost.MISALIGNED if k * bytes_in % 128 else 1.0)
    loop, peer = hopper_cost.loop_us(c), hopper_cost.PEER_ELEMENT * bM * bN
    tile = k_tiles * max(loads, loop)
    ends, begin = hopper_cost.ends_us(c, partial), hopper_cost.begin_us(c)
    if way.parts == 1:
        whole = tile + ends
        if c.pingpong:
            whole = max(whole, (tile + hopper_cost.TURN_STORE * hopper_cost.store_us(c, partial)) / 2)
        lost = hopper_cost.SOME_FREE * (1 - min(waves, 1.0)) if waves > 0.5 else -hopper_cost.HALF_FREE
        return ceil(waves) * whole + begin + lost
    if way.together:
        parts = floor(1 / waves * (1 + 1e-9))
        joining = hopper_cost.JOINING + hopper_cost.JOIN_ELEMENT * bM * bN
        read = (m + n) * k * bytes_in / hopper_cost.MEMORY_PER_US
        return NEVER if parts < 2 else max(tile / k_tiles * ceil(k_tiles / parts), read) + begin + joining
    begin += hopper_cost.SHARING
    if way.parts != EVEN:
        return ceil(waves) * (tile + ends) + begin + peer * parts
    in_shares = waves - max(floor(waves) - 1, 0)
    slower = waves + in_shares * (hopper_cost.SHARED - 1)
    time = tile * slower + ends * max(slower, 1.0)
    anew = sum(size for size, extent in ((bM, m), (bN, n)) if extent * k * bytes_in > hopper_cost.L2_BYTES)
    memory = anew * k * bytes_in * SMS / hopper_cost.MEMORY_PER_US * in_shares
    return max(time, memory) + begin + peer / min(waves, 1.0)


def ampere_us(way: Way, problem: Problem) -> float:
    c, (m, n, k, batch) = way.config, problem
    assert isinstance(c, GemmConfig)
    parts, (bM, bN, bK) = max(1, way.parts), c.tile
    k_tiles, blocks = ceil(k / (bK * parts)), ceil(m / bM) * ceil(n / bN) * parts * batch
    at_once = min(2, c.blocks_at_once(SMEM))
    turns, rest = divmod(blocks, at_once * SMS)
    full, alone = cost.k_tile_us(c, SMEM)
    area = bM * bN / cost.LARGEST
    ends, peer = 2.0 + 2.5 * area, 0.5 + 0.7 * area
    sharing = 0.0 if way.parts == 1 else cost.SHARING + peer * parts
    if way.parts == EVEN:
        before = max(blocks // SMS - 1, 0)
        share = blocks / SMS - before
        time = before * (full / at_once * k_tiles + ends) + share * alone * k_tiles + ends * (share + 1)
        return time + sharing + peer * (1 + ceil(1 / min(share, 1.0) * (1 - 1e-9)))
    part = full if rest > SMS else alone if rest else 0.0
    return (turns * full + part) * k_tiles + ends * (turns / at_once + (rest > 0)) + sharing


@pytest.mark.parametrize("name", KERNELS)
def test_times_and_choices(name: str) -> None:
    options = Options.of(kernels()[name], (SMS, SMEM))
    us = hopper_us if isinstance(kernels()[name].config, HopperConfig) else ampere_us
    others = 0
    for problem in problems(KERNELS[name]):
        expected = [us(way, problem) for way in options.ways]
        last = None if problem[3] == 1 else options.model.single
        assert options.model.times(problem).tolist() == pytest.approx(expected[:last], rel=3e-6)
        for first, sharing in ((0, True), (0, False), (options.model.single, True)):
            first = first if first < len(options.ways) and last is None else 0
            offered = expected[first : last if sharing else options.model.single]
            chosen = options.model.least(problem, sharing, first) - first
            others += chosen != offered.index(min(offered))
            assert offered[chosen] <= min(offered) * (1 + TIE)
    assert others <= KERNELS[name] / 50, "options that the models take for equal"
