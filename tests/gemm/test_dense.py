"""The dense Hopper GEMM of one role against float64 NumPy on both machines, and what it compiles to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.gemm.test_gemm import MACHINES
from tests.gemm.test_hopper import F16, KERNELS, OUT, operands, product, sized
from tilewright import sim
from tilewright.errors import ConstraintError
from tilewright.gemm import KernelEntry, StreamK, cross_compile, gemm, kernels
from tilewright.sim.tracing import overlap


def one_role(tile: tuple[int, int], entry: KernelEntry = F16, **changes: Any) -> KernelEntry:
    return sized(tile, entry=entry, roles="one", **changes)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("k_tiles", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("stages", [2, 4])
def test_any_number_of_k_tiles(stages: int, k_tiles: int, machine: str) -> None:
    """Fewer k tiles than are loaded ahead, as many, and more; several output tiles for each block on the CPU."""
    a, b = operands("hopper_f16", 264, 200, 64 * k_tiles - 8)
    report = gemm(a, b, kernel=one_role((128, 64), stages=stages), machine=machine, decomposition="data_parallel")
    np.testing.assert_array_equal(report.d, product(a, b))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kernel", ["hopper_f16", "hopper_bf16", "hopper_e4m3", "hopper_i8"])
def test_every_kind_of_operand(kernel: str, machine: str) -> None:
    entry = kernels()[kernel]
    a, b = operands(kernel, 136, 272, 320)
    report = gemm(a, b, kernel=entry.only(replace(entry.config, roles="one")), machine=machine)
    assert report.kernel == kernel and KERNELS[kernel] is not None
    np.testing.assert_array_equal(report.d.astype(np.float64), product(a, b).astype(OUT[kernel]).astype(np.float64))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("cluster", [(2, 1), (1, 2), (2, 2)], ids=str)
def test_clusters_share_operands(cluster: tuple[int, int], machine: str) -> None:
    a, b = operands("hopper_f16", 520, 264, 264)
    entry = one_role((128, 64), cluster=cluster)
    report = gemm(a, b, kernel=entry, machine=machine, decomposition="data_parallel")
    np.testing.assert_array_equal(report.d, product(a, b))


@pytest.mark.parametrize("machine", MACHINES)
def test_blocks_that_share_tiles(machine: str) -> None:
    entry = one_role((128, 64))
    m, n, k = 136, 264, 456
    a, b = operands("hopper_f16", m, n, k)
    plan = StreamK.of((m, n, k), entry.config.tile, multiprocessors=5, occupancy=1, fragments=1, split=3)
    report = gemm(a, b, kernel=entry, machine=machine, decomposition=plan)
    assert report.decomposition == "stream_k"
    np.testing.assert_array_equal(report.d, product(a, b))


def test_one_warp_loads_while_all_multiply() -> None:
    a, b = operands("hopper_f16", 128, 64, 512)
    with sim.trace() as trace:
        gemm(a, b, kernel=one_role((128, 64), stages=4, consumers=(2, 1)))
    roles = {warp: role.split(", ")[:2] for (_, _, warp), role in trace.roles.items()}
    assert roles[0] == ["loads", "multiplies"] and len(roles) == trace.launches[0].block[0] // 32 == 8
    assert all("multiplies" in role for role in roles.values()) and sum("loads" in r for r in roles.values()) == 1
    assert overlap(trace.of("load"), trace.of("wgmma")) > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"roles": "two"}, "'specialized' or 'one', not 'two'"),
        ({"consumers": (3, 1), "tile": (192, 64, 64)}, "1 or 2"),
        ({"pingpong": True}, "1 or 2 warpgroups on the same tile"),
    ],
)
def test_configurations_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    a = np.zeros((64, 64), np.float16)
    with pytest.raises(ConstraintError, match=message):
        gemm(a, a.copy(), kernel=F16.only(replace(F16.config, **{"roles": "one", **changes})))


@pytest.mark.parametrize("tile", [(128, 256), (64, 64)], ids=str)
def test_compiled(tile: tuple[int, int]) -> None:
    artifact = cross_compile(one_role(tile).config, "sm_90a")
    assert artifact.spills == 0 and "serializ" not in artifact.log
    assert artifact.stack == 0
    for name in ("wgmma.mma_async.sync.aligned.m64n", "d.shared::cluster.global.mbarrier", "d.global.shared::cta"):
        assert name in artifact.ptx
