"""The times of groups in all sizes at once against the rule for one size, and what the kept sizes depend on."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from tilewright.errors import ArgumentError
from tilewright.gemm import kernels
from tilewright.gemm.family.group_times import LARGE_FLOPS, NEAR, GroupTimes, skewed, usable
from tilewright.gemm.family.hopper_cost import CROWD
from tilewright.gemm.family.plan_options import MIN_K_TILES
from tilewright.gemm.kernel.group_table import blocks_of_tile, whole_tile
from tilewright.gemm.operators.group_launch import usable_sizes
from tilewright.gemm.tuning.stand_in import stand_in

LIMITS = (132, 232448)
Products = list[tuple[int, int, int]]


def times_of(name: str, dtype: str = "float16", sharing: bool = False) -> GroupTimes:
    return usable_sizes([stand_in((264, 512, 1024), dtype, None, "k", "k")], kernels()[name], LIMITS, sharing)


def plain_us(times: GroupTimes, number: int, products: Products, sharing: bool, least: float = 0.0) -> float:
    """The rule for one size, product by product."""
    size, sms = times.sizes[number], LIMITS[0]
    loop, loads, ends = times.family.rates_us(size, LIMITS)
    bM, bN, bK = size.tile if sharing else whole_tile(size)
    workers = sms if sharing else sms / blocks_of_tile(size)
    work = []
    for m, n, k in products:
        m, n = (n, m) if size.transposed else (m, n)
        work.append((ceil(m / bM) * ceil(n / bN), ceil(k / bK)))
    tiles = sum(count for count, _ in work)
    k_tiles = sum(count * max(deep, 1) for count, deep in work)
    busy = min(1.0, k_tiles / MIN_K_TILES / sms if sharing else tiles / workers)
    k_tile = max(loop, loads * (1 + (CROWD - 1) * busy) / CROWD)
    if sharing:
        return max(least, max(k_tiles / sms, MIN_K_TILES) * k_tile + (tiles / sms + 2) * ends)
    if 2 * sum(m * n * k for m, n, k in products) >= LARGE_FLOPS:
        k_tile = max(k_tile, times.family.powered_us(size))
    each = [(count, deep * k_tile + ends) for count, deep in work]
    whole = sum(count * us for count, us in each)
    return max(max(least, whole / workers) + whole / tiles / 2, max(us for _, us in each))


@pytest.mark.parametrize("sharing", [False, True])
@pytest.mark.parametrize("name", ["hopper_f16", "blackwell_f16", "sm120_f16", "tensorop_f16"])
def test_times_of_all_sizes_are_those_of_each(name: str, sharing: bool) -> None:
    times = times_of(name, sharing=sharing)
    for products in (
        [(256, 512, 1024)],
        [(7, 40, 4096), (3000, 40, 64), (1, 1, 1)],
        [(64, 4096, 7168)] * 64,
        [(1024, 2048, 4096)] * 8,
    ):
        found = (times.shared_us if sharing else times.us)(np.array(products, float))
        wanted = [plain_us(times, number, products, sharing) for number in range(len(times.sizes))]
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
        assert times.fastest(np.array(products, float), sharing) is times.sizes[int(np.argmin(found))]


@pytest.mark.parametrize(("read", "written"), [(1, 1 << 20), (1 << 20, 1)])
def test_a_cut_takes_the_first_or_the_longest_rows_of_those_that_are_near(read: int, written: int) -> None:
    times, extents, groups = times_of("hopper_f16"), (2000, 1024, 512), 8
    even = [(250, 1024, 512)] * groups
    uneven = [(int(m), 1024, 512) for m in skewed(2000, groups)]
    least = times.family.memory_us(read + written)
    us = [
        sum(plain_us(times, number, products, False, least) for products in (even, uneven))
        for number in range(len(times.sizes))
    ]
    near = [size for size, time in zip(times.sizes, us, strict=True) if time <= NEAR * min(us)]
    wanted = max(near, key=times.family.run_bytes) if written > read else near[0]
    assert times.fastest_cut(extents, 0, groups, read, written) is wanted


def test_what_changes_the_sizes_makes_another_entry_and_rows_do_not() -> None:
    entry = kernels()["hopper_f16"]
    family, problem = entry.family.grouped, stand_in((264, 512, 1024), "float16", None, "k", "k")
    kept = usable_sizes([problem], entry, LIMITS)
    assert usable_sizes([stand_in((1304, 512, 1024), "float16", None, "k", "k")], entry, LIMITS) is kept
    others = {
        "layouts": usable_sizes([stand_in((264, 512, 1024), "float16", None, "m", "k")], entry, LIMITS),
        "alignment": usable_sizes([stand_in((264, 516, 1024), "float16", None, "k", "k")], entry, LIMITS),
        "entry": usable_sizes([problem], replace(entry, small=entry.small[:3]), LIMITS),
        "shared memory": usable_sizes([problem], entry, (132, 166912)),
        "multiprocessors": usable_sizes([problem], entry, (114, 232448)),
        "sharing": usable_sizes([problem], entry, LIMITS, True),
    }
    assert len({id(times) for times in (kept, *others.values())}) == 1 + len(others)
    assert others["layouts"].sizes[0].a.major is not kept.sizes[0].a.major
    assert others["alignment"].sizes[0].c.copy_bits < kept.sizes[0].c.copy_bits
    assert len(others["shared memory"].sizes) < len(kept.sizes)
    with pytest.raises(ArgumentError, match="no size of it has room"):
        usable(family, entry, family.layouts(entry, [problem]), (132, 1024), False)
