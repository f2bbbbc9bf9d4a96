"""The models of time against times that were worked out by hand from their constants."""

from __future__ import annotations

import pytest

from tilewright.gemm import kernels
from tilewright.gemm.choice.choose import KernelOptions
from tilewright.gemm.config import GemmConfig, HopperConfig
from tilewright.gemm.family import ampere_cost, hopper_cost
from tilewright.gemm.family.plan_options import EVEN_SHARES, INFEASIBLE_US, Problem

SMS, SMEM = 132, 232448


def times_of(name: str, problem: Problem, parts: int, together: bool = False, **fields: object) -> float:
    """The model's microseconds of the option whose configuration has these fields."""
    options = KernelOptions.of(kernels()[name], (SMS, SMEM))
    fields = {"transposed": False, **fields}
    (index,) = (
        i
        for i, way in enumerate(options.plan_options)
        if (way.parts, way.shared_reduction) == (parts, together)
        and all(getattr(way.config, field) == value for field, value in fields.items())
    )
    return float(options.model.times(problem)[index])


def hopper(rows: int, columns: int, **others: object) -> HopperConfig:
    config = next(c for c in sizes("hopper_f16") if c.tile[:2] == (rows, columns) and not c.transposed)
    assert isinstance(config, HopperConfig) and config.cluster_size == 1 and not config.pingpong
    return config


def sizes(name: str) -> list[GemmConfig | HopperConfig]:
    entry = kernels()[name]
    return [c for c in (entry.config, entry.large, *entry.small) if c is not None]


ALONE = {"tile": (128, 256, 64), "cluster": (1, 1), "cluster_k": 1, "pingpong": False}


def again(*elements: int) -> float:
    """Microseconds that it costs that several clusters read operands of so many elements of 2 bytes apart."""
    return 0.2 * 2 * sum(elements) / 4.46e6


def test_full_waves_of_whole_tiles() -> None:
    """8192^3 has 64 x 32 tiles of 128 x 256: 16 waves on 132 multiprocessors. A k tile is 64 elements of K; its loads
    take longer than the tensor cores, which need 36.5 columns more for each instruction of 256. Of so large a product
    half of the ends of tiles is won back by the clock."""
    config = hopper(128, 256)
    loads = (128 + 256) * 64 * 2 / 6.84e4
    assert loads > 2 * 128 * 256 * 64 / 7.73e6 * (256 + 36.5) / 256
    end = 8.62e-5 * 128 * 256 + 0.0526 * config.parts
    expected = 16 * (128 * loads + end / 2) + again(8192 * 8192, 8192 * 8192)
    assert times_of("hopper_f16", (8192, 8192, 8192, 1), 1, **ALONE) == pytest.approx(expected)


def test_power_holds_large_products_up() -> None:
    """Of 1e11 FLOPs and more: 4096 x 14336 are 2,624 tiles of 128 x 176 in turns, 20 waves whose k tiles take
    longer than their loads; the end of the last tile takes 0.1 us a part there."""
    turns = ALONE | {"tile": (128, 176, 64), "cluster": (2, 1), "pingpong": True}
    config = next(c for c in sizes("hopper_f16") if all(getattr(c, name) == value for name, value in turns.items()))
    assert isinstance(config, HopperConfig)
    k_tile = 2 * 128 * 176 * 64 / 6.2e6
    assert k_tile > hopper_cost.loads_us(config)
    expected = 20 * (64 * k_tile + 0.2) + 0.0805 + 0.1 * config.parts + again(4096 * 4096, 14336 * 4096)
    assert times_of("hopper_f16", (4096, 14336, 4096, 1), 1, **turns) == pytest.approx(expected)
    one = times_of("hopper_f16", (4096, 14336, 832, 1), 1, **turns)  # of 9.8e10 FLOPs
    one -= times_of("hopper_f16", (4096, 14336, 768, 1), 1, **turns)
    assert one == pytest.approx(20 * hopper_cost.loads_us(config) + again(14336 * 64), rel=1e-3)


def test_sectors_are_merged_at_their_own_pace() -> None:
    """256 x 176 is written in 22 parts of 8 columns, whose rows are half sectors: 8 waves of 64 k tiles, of whose ends
    the clock wins half back, but for the merging."""
    narrow = ALONE | {"tile": (256, 176, 64)}
    config = next(c for c in sizes("hopper_f16") if all(getattr(c, name) == value for name, value in narrow.items()))
    assert isinstance(config, HopperConfig) and config.parts == 22
    k_tile = max(hopper_cost.loads_us(config), hopper_cost.powered_us(config), hopper_cost.loop_us(config))
    end = (8.62e-5 * 256 * 176 + 0.0526 * 22) / 2 + 1.27e-3 * 256 * 22
    expected = 8 * (64 * k_tile + end) + again(8448 * 4096, 5632 * 4096)
    assert times_of("hopper_f16", (8448, 5632, 4096, 1), 1, **narrow) == pytest.approx(expected)


def test_large_operands_that_clusters_read_apart() -> None:
    """64 rows are one tile: B is read once; 72 rows are two tiles. A, of half a megabyte, comes from L2."""
    way: dict[str, object] = {**ALONE, "tile": (64, 128, 64)}
    once, twice = (times_of("hopper_f16", (rows, 4096, 4096, 1), 1, **way) for rows in (64, 72))
    wider = times_of("hopper_f16", (64, 8192, 4096, 1), 1, **way)
    assert twice == pytest.approx(wider + again(4096 * 4096))
    assert once < wider, "half of the multiprocessors load alone"


def test_part_of_a_wave() -> None:
    """100 tiles on 132 multiprocessors: loads are the faster the fewer load, and what stays free is lost."""
    m, n, k = 1280, 2560, 6400
    working = 100 / SMS
    load = (128 + 256) * 64 * 2 / 6.84e4 * (1 + 0.96 * working) / 1.96
    k_tile = max(load, hopper_cost.loop_us(hopper(128, 256)))
    expected = 100 * k_tile + hopper_cost.ends_us(hopper(128, 256), False) + 0.716 * (1 - working)
    expected += again(m * k, n * k)
    assert times_of("hopper_f16", (m, n, k, 1), 1, **ALONE) == pytest.approx(expected)
    one = times_of("hopper_f16", (128, 256, 64, 1), 1, **ALONE)
    load = (128 + 256) * 64 * 2 / 6.84e4 * (1 + 0.96 / SMS) / 1.96
    end = hopper_cost.ends_us(hopper(128, 256), False)
    assert one == pytest.approx(max(load, hopper_cost.loop_us(hopper(128, 256))) + end - 0.132), "less than half"


def test_stream_k_deals_out_the_last_two_waves() -> None:
    """198 tiles are a wave and a half: all of them are shared, each multiprocessor has 1.5."""
    problem, config = (128 * 198, 256, 640, 1), hopper(128, 256)
    k_tile = max(hopper_cost.loop_us(config), hopper_cost.loads_us(config))
    expected = (10 * k_tile + hopper_cost.ends_us(config, False)) * 1.5 * 1.16 + 3.96 + 6.95e-5 * 128 * 256
    anew = (128 * 198 * 640 * 2 > 2.4e7) * 128 * 640 * 2 * SMS / 4.46e6 * 1.5
    assert anew < expected
    assert times_of("hopper_f16", problem, EVEN_SHARES, **ALONE) == pytest.approx(expected)


def test_blocks_that_add_up_together() -> None:
    """4 tiles have 33 multiprocessors each, which share 330 k tiles: 10 for each."""
    problem = (256, 512, 330 * 64, 1)
    options = KernelOptions.of(kernels()["hopper_f16"], (SMS, SMEM))
    way = next(way for way in options.plan_options if way.shared_reduction and way.config.tile == (128, 256, 64))
    config = way.config
    assert isinstance(config, HopperConfig) and config.cluster_size == 1
    k_tile = max(hopper_cost.loop_us(config), hopper_cost.loads_us(config))
    memory = (256 + 512) * 330 * 64 * 2 / 4.46e6
    expected = max(10 * k_tile, memory) + 2.27 + 4.58e-4 * 128 * 256
    expected += again(256 * 330 * 64, 512 * 330 * 64)
    index = options.plan_options.index(way)
    assert float(options.model.times(problem)[index]) == pytest.approx(expected)
    assert float(options.model.times((4096, 4096, 4096, 1))[index]) > INFEASIBLE_US / 2, (
        "no tile has two multiprocessors"
    )


def test_rows_that_begin_anywhere_are_read_and_written_slower() -> None:
    aligned, config = (8192, 8192, 8192, 1), hopper(128, 256)
    loads = 1.27 * hopper_cost.loads_us(config)
    k_tile = max(loads, hopper_cost.loop_us(config))
    read = times_of("hopper_f16", (8192, 8192, 8184, 1), 1, **ALONE)
    expected = 16 * (128 * k_tile + hopper_cost.ends_us(config, False) / 2) + again(8192 * 8184, 8192 * 8184)
    assert read == pytest.approx(expected)
    written = times_of("hopper_f16", (8192, 8184, 8192, 1), 1, **ALONE)
    assert written > times_of("hopper_f16", aligned, 1, **ALONE), "sectors are written twice"


def test_turns_of_two_blocks_on_a_multiprocessor() -> None:
    """tensorop_f16 with four warps has two blocks on a multiprocessor: 300 tiles are a turn of 264 and one of 36, whose
    blocks are alone."""
    config = kernels()["tensorop_f16"].config
    assert isinstance(config, GemmConfig) and config.tile == (128, 128, 32)
    assert ampere_cost.blocks_at_once(config, SMEM) == 2
    full, alone = ampere_cost.k_tile_us(config, SMEM)
    flops, loads = 2 * 128 * 128 * 32 / 4.2e6, 256 * 32 * 2 / 6e4
    assert (full, alone) == pytest.approx((2 * loads, flops / 0.74))
    expected = 10 * (full + alone) + (2.0 + 2.5 / 2) * 1.5
    assert times_of("tensorop_f16", (128 * 300, 128, 320, 1), 1, tile=(128, 128, 32)) == pytest.approx(expected)
