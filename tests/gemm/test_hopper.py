"""The warp-specialised Hopper GEMM against float64 NumPy on both machines, and what it compiles to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.covering import covering
from tests.gemm.test_epilogue import vector
from tests.gemm.test_gemm import MACHINES, integers
from tilewright import Float32, cute, sim
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.gemm import Bias, Chain, KernelEntry, LinearCombination, SplitK, StreamK, cross_compile, gemm, kernels
from tilewright.gemm.config import HopperConfig

F16 = kernels()["hopper_f16"]
KERNELS = {
    name: np.float32 if name == "hopper_tf32" else entry.config.a.dtype.dtype.type
    for name, entry in kernels().items()
    if name.startswith("hopper")
}
OUT = {name: kernels()[name].config.c.dtype.dtype.type for name in KERNELS}
SIXTEEN = ("hopper_f16", "hopper_bf16")


def sized(tile: tuple[int, int], transposed: bool = False, entry: KernelEntry = F16, **changes: Any) -> KernelEntry:
    """The kernel in the size with this tile."""
    for config in (entry.config, *entry.small):
        if config.tile[:2] == tile and config.transposed == transposed:
            return entry.only(replace(config, **changes))
    raise LookupError(tile)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


def operands(kernel: str, m: int, n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Small integers, K-major both: what every type of wgmma reads."""
    rng = np.random.default_rng(seed)
    return integers(rng, (m, k), KERNELS[kernel]), integers(rng, (k, n), KERNELS[kernel], column_major=True)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("size", [(136, 272, 160), (8, 16, 32)], ids=str)
@pytest.mark.parametrize("kernel", KERNELS)
def test_exact_for_integers(kernel: str, size: tuple[int, int, int], machine: str) -> None:
    a, b = operands(kernel, *size)
    report = gemm(a, b, kernel=kernel, machine=machine)
    assert report.kernel == kernel
    np.testing.assert_array_equal(report.d.astype(np.float64), product(a, b).astype(OUT[kernel]).astype(np.float64))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("kernel", *"abc"), covering(SIXTEEN, *3 * [(False, True)], strength=3))
def test_hopper_gemm_of_all_majors_with_alpha_and_beta(kernel: str, a: bool, b: bool, c: bool, machine: str) -> None:
    m, n, k = 136, 136, 72
    rng = np.random.default_rng(1)
    shapes = ((m, k), (k, n), (m, n))
    x, y, z = (integers(rng, s, KERNELS[kernel], t) for s, t in zip(shapes, (a, b, c), strict=True))
    out = np.full((n, m), 99, OUT[kernel]).T if c else np.full((m, n), 99, OUT[kernel])
    gemm(x, y, z, alpha=2.0, beta=-3.0, kernel=sized((128, 64), entry=kernels()[kernel]), machine=machine, out=out)
    expected = (2.0 * product(x, y) - 3.0 * z.astype(np.float64)).astype(OUT[kernel])
    np.testing.assert_array_equal(out.astype(np.float64), expected.astype(np.float64))


SIZES = [(config.tile[:2], config.transposed) for config in (F16.config, *F16.small)]
ON_THE_CPU = [
    ((256, 128), False),
    ((128, 320), False),
    ((256, 192), False),
    ((192, 192), False),
    ((256, 160), False),
    ((64, 32), False),
    ((64, 8), True),
    ((128, 64), True),
]


@pytest.mark.parametrize(
    ("size", "machine"),
    [(s, "cpu") for s in ON_THE_CPU] + [pytest.param(s, "gpu", marks=pytest.mark.gpu) for s in SIZES],
    ids=str,
)
def test_every_size(size: tuple[tuple[int, int], bool], machine: str) -> None:
    tile, transposed = size
    m, n = tile[::-1] if transposed else tile
    a, b = operands("hopper_f16", m + 24, n + 8, 200)
    report = gemm(a, b, kernel=sized(*size), machine=machine, decomposition="data_parallel")
    assert report.tile[:2] == tile
    np.testing.assert_array_equal(report.d, product(a, b))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("cluster", [(2, 1), (1, 2), (2, 2), (4, 1)], ids=str)
def test_clusters_share_operands(cluster: tuple[int, int], machine: str) -> None:
    a, b = operands("hopper_f16", 520, 264, 264)
    report = gemm(a, b, kernel=sized((128, 64), cluster=cluster), machine=machine, decomposition="data_parallel")
    np.testing.assert_array_equal(report.d, product(a, b))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("size", "split"), [(((128, 256), False), 2), (((64, 32), True), 3), (((128, 320), False), 3)], ids=str
)
def test_shared_tiles(size: tuple[tuple[int, int], bool], split: int, machine: str) -> None:
    entry = sized(*size)
    m, n, k = 136, 264, 456
    a, b = operands("hopper_f16", m, n, k, seed=split)
    seen = (n, m, k) if size[1] else (m, n, k)
    plan = StreamK.of(seen, entry.config.tile, multiprocessors=5, occupancy=1, fragments=1, split=split)
    report = gemm(a, b, kernel=entry, machine=machine, decomposition=plan)
    assert report.decomposition == "stream_k" and report.grid[0] == max(plan.avail_sms, plan.sk_blocks)
    np.testing.assert_array_equal(report.d, product(a, b))


@pytest.mark.parametrize("machine", MACHINES)
def test_shares_first_and_then_whole_tiles(machine: str) -> None:
    """Persistent blocks: each works on shared tiles, then takes several of the others."""
    entry = sized((64, 64))
    a, b = operands("hopper_f16", 320, 320, 512)
    plan = StreamK.of((320, 320, 512), entry.config.tile, multiprocessors=6, occupancy=1, fragments=1)
    assert 0 < plan.sk_tiles < 25 - 6
    report = gemm(a, b, kernel=entry, machine=machine, decomposition=plan)
    assert report.grid[0] == 6
    np.testing.assert_array_equal(report.d, product(a, b))


@pytest.mark.parametrize("machine", MACHINES)
def test_batches_and_c_in_place(machine: str) -> None:
    rng = np.random.default_rng(3)
    a, b, c = (integers(rng, s, np.float16) for s in ((3, 72, 64), (3, 64, 136), (3, 72, 136)))
    expected = a.astype(np.float64) @ b.astype(np.float64) + c
    report = gemm(a, b, c, beta=1.0, out=c, machine=machine, kernel="hopper_f16")
    assert report.kernel == "hopper_f16"
    np.testing.assert_array_equal(c, expected.astype(np.float16))


@dataclass(frozen=True)
class ScaleRowsAndAdd:
    scale: cute.Tensor

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: Any) -> None:
        acc.store(acc.load() * tile.column(self.scale) + tile.source().to(acc.element_type))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("size", [((128, 64), False), ((64, 32), True)], ids=str)
def test_epilogue_functions(size: tuple[tuple[int, int], bool], machine: str) -> None:
    m, n, k = 136, 72, 64
    a, b = operands("hopper_f16", m, n, k)
    rng = np.random.default_rng(2)
    c, bias, scale = (rng.integers(-5, 6, s) for s in ((m, n), n, m))
    bias_of, scale_of = (vector(x.astype(np.float32), machine) for x in (bias, scale))
    function = Chain((LinearCombination(Float32(2), Float32(0)), Bias(bias_of), ScaleRowsAndAdd(scale_of)))
    d = gemm(a, b, c.astype(np.float16), kernel=sized(*size), epilogue=function, machine=machine).d
    np.testing.assert_array_equal(d, (2 * product(a, b) + bias) * scale[:, None] + c)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("out", [np.float32, ml_dtypes.bfloat16])
def test_output_of_another_type(out: type, machine: str) -> None:
    a, b = operands("hopper_f16", 136, 264, 64)
    d = np.zeros((136, 264), out)
    report = gemm(a, b, out=d, machine=machine, kernel="hopper_f16")
    assert report.kernel == "hopper_f16"
    np.testing.assert_array_equal(d.astype(np.float64), product(a, b).astype(out).astype(np.float64))


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", SIXTEEN)
def test_normal_inputs_to_rounding(kernel: str) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    dtype = torch.float16 if kernel == "hopper_f16" else torch.bfloat16
    a, b = torch.randn(1024, 2048, device="cuda").to(dtype), torch.randn(1536, 2048, device="cuda").to(dtype).t()
    report = gemm(a, b, kernel=kernel)
    exact = a.double() @ b.double()
    assert (report.d.double() - exact).norm() / exact.norm() < 8 * torch.finfo(dtype).eps


def test_clusters_that_share_k_tiles_share_no_others() -> None:
    entry = sized((128, 64), cluster_k=2, epilogue_columns=32)
    a, b = operands("hopper_f16", 256, 64, 256)
    plan = StreamK.of((256, 64, 256), entry.config.tile, multiprocessors=8, occupancy=1, fragments=1, split=2)
    with pytest.raises(ArgumentError, match="take cluster_k=1"):
        gemm(a, b, kernel=entry, decomposition=plan)


def test_slices_of_the_largest_size() -> None:
    """Sums have more bytes than results: parts of the epilogue are narrower, as shared memory has no room for more."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (128, 128)).astype(np.float16) for _ in range(2))
    entry = kernels()["hopper_f16"]
    report = gemm(a, b, kernel=entry.only(entry.config), decomposition=SplitK(2, mode="parallel"))
    np.testing.assert_array_equal(report.d, a.astype(np.float32) @ b.astype(np.float32))


def test_slices_of_clusters_add_themselves_to_d_block_by_block() -> None:
    """Each block of a cluster waits for the one at its place in the cluster before."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((200, 192), (192, 72)))
    entry = kernels()["hopper_f16"]
    pair = next(x for x in entry.sizes if x.tile[:2] == (64, 64) and x.cluster == (2, 1))
    with sim.options(check="all", sms=4):
        report = gemm(a, b, kernel=entry.only(pair), decomposition=SplitK(3))
    np.testing.assert_array_equal(report.d, a.astype(np.float32) @ b.astype(np.float32))


def test_operands_that_tma_cannot_take_go_to_the_ampere_kernel() -> None:
    a, b = np.ones((39, 33), np.float16), np.ones((33, 55), np.float16)  # copies of three matrices take longer
    with sim.options(sizes="gpu"):
        report = gemm(a, b)
    assert report.kernel == "tensorop_f16"
    assert "multiples of 16 bytes; a has strides (33, 1)" in report.passed_over["hopper_f16"]
    with pytest.raises(ArgumentError, match="hopper_f16: TMA wants rows that begin at multiples of 16 bytes; a has"):
        gemm(a, b, kernel="hopper_f16")
    with pytest.raises(ArgumentError, match="reads Int8 along K only, and b is not contiguous along K"):
        gemm(np.ones((16, 32), np.int8), np.ones((32, 16), np.int8), kernel="hopper_i8")
    with pytest.raises(ArgumentError, match="K is 0"):
        gemm(np.ones((16, 0), np.float16), np.ones((0, 16), np.float16), kernel="hopper_f16")


def test_rows_that_go_backwards_or_stand_still() -> None:
    a, b = operands("hopper_f16", 64, 64, 64)
    for seen in (a[::-1], np.broadcast_to(a[:1], a.shape)):
        with sim.options(sizes="gpu"):
            report = gemm(seen, b)
        assert "rows one after the other in memory; a has strides" in report.passed_over["hopper_f16"]
        np.testing.assert_array_equal(report.d, product(seen, b))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tile": (96, 128, 64)}, "a multiple of 64 rows a consumer, not 96"),
        ({"tile": (128, 260, 64)}, "8 to 256 columns a consumer in steps of 8, not 260"),
        ({"tile": (256, 256, 64)}, "accumulators that fit a warpgroup's registers, not 128 x 256"),
        ({"tile": (128, 128, 24)}, "a K tile in steps of 16"),
        ({"stages": 1}, "at least 2 stages"),
        ({"consumers": (4, 1)}, "1 to 3 consumer warpgroups"),
        ({"consumers": (0, 1)}, "1 to 3 consumer warpgroups"),
        ({"cluster": (4, 4)}, "a cluster of 1 to 8 blocks"),
        ({"epilogue_columns": 48}, "epilogue columns that divide"),
        ({"epilogue_columns": 0}, "epilogue columns that divide"),
        ({"epilogue_buffers": 1}, "at least 2 epilogue buffers"),
    ],
)
def test_configurations_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    a = np.zeros((64, 64), np.float16)
    with pytest.raises(ConstraintError, match=message):
        gemm(a, a.copy(), kernel=F16.only(replace(F16.config, **changes)))


COMPILED = [F16, *(F16.only(c) for c in F16.small[:4]), *(kernels()[name] for name in KERNELS if name not in SIXTEEN)]


@pytest.mark.parametrize("entry", COMPILED, ids=lambda e: f"{e.name}-{e.config.tile}")
def test_compiled(entry: KernelEntry) -> None:
    """No spills, and accumulators that stay where they are: one run of HGMMA for each stage, its end awaited once."""
    assert isinstance(entry.config, HopperConfig)
    artifact = cross_compile(entry.config, "sm_90a")
    assert artifact.spills == artifact.stack == 0
    assert "serializ" not in artifact.log
    text = artifact.ptx
    assert "d.shared::cluster.global" in text and "d.global.shared::cta" in text
    loop = text[: text.rindex("wgmma.mma_async")]
    groups = loop.rindex("wgmma.fence")
    assert "wgmma.wait_group" not in loop[groups:], "nothing waits inside a stage"
