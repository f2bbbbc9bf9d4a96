"""The start and the end of a Hopper kernel: first loads ahead of the roles, buffers for the parts of the epilogue."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.gemm.test_hopper import sized
from tilewright import sim
from tilewright.gemm import gemm, kernels
from tilewright.gemm.config import HopperConfig
from tilewright.gemm.family.base import family_of

SMEM = 232448


@pytest.mark.parametrize("name", ["hopper_f16", "hopper_e4m3", "blackwell_f16", "sm120_f16"])
def test_buffers_take_the_memory_that_is_left(name: str) -> None:
    """One for each part where warpgroups do not take turns, or what memory has room for, for one stage of at least
    five; a size that has them is left as it is."""
    for size in kernels()[name].sizes:
        assert isinstance(size, HopperConfig)
        found = family_of(size).buffered(size, SMEM)
        found.check()
        assert found.smem_bytes <= SMEM and family_of(found).buffered(found, SMEM) == found
        assert found == replace(size, stages=found.stages, epilogue_buffers=found.epilogue_buffers)
        if not name.startswith("hopper") or size.pingpong or size.cluster_k > 1 or size.parts <= 2:
            assert found == size
        elif found.stages < size.stages:
            assert size.stages - 1 == found.stages >= 4 and found.epilogue_buffers == size.parts
        elif found.epilogue_buffers < size.parts:
            more = replace(found, epilogue_buffers=found.epilogue_buffers + 1)
            assert more.smem_bytes > SMEM, "there is room for another"


@pytest.mark.parametrize("k_tiles", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("cluster_k", [1, 2])
def test_first_loads_and_the_rest_are_all_k_tiles(k_tiles: int, cluster_k: int) -> None:
    """Three stages: fewer k tiles, as many, and more; two tiles for each block, or slices of K in a cluster."""
    size = sized((64, 32), stages=3, epilogue_columns=8, cluster_k=cluster_k)
    rng = np.random.default_rng(k_tiles)
    k = 64 * max(k_tiles, cluster_k)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((200, k), (k, 40)))
    with sim.options(sms=4, check="all"):
        d = gemm(a, b, kernel=size, decomposition="data_parallel").d
    np.testing.assert_array_equal(d, a.astype(np.float64) @ b)
