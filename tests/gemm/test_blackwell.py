"""The kernels of tcgen05, in the simulator of an sm_100a and as text for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tilewright import Float16, Float32, sim
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.gemm import Bias, Chain, KernelEntry, LinearCombination, SplitK, StreamK, gemm, kernels
from tilewright.gemm.blackwell_config import BlackwellConfig
from tilewright.gemm.epilogue.activations import Activation
from tilewright.gemm.family.compile import cross_compile

TYPES = {
    "blackwell_f16": np.float16,
    "blackwell_bf16": ml_dtypes.bfloat16,
    "blackwell_e4m3": ml_dtypes.float8_e4m3fn,
    "blackwell_i8": np.int8,
    "blackwell_tf32": np.float32,
}


def size(name: str, columns: int, ctas: int, cluster: tuple[int, int], transposed: bool = False) -> KernelEntry:
    """A kernel in one size, with three stages."""
    wanted = (columns, ctas, cluster, transposed)
    for config in kernels()[name].sizes:
        assert isinstance(config, BlackwellConfig)
        if (config.tile[1], config.ctas, config.cluster, config.transposed) == wanted:
            return kernels()[name].only(replace(config, stages=3))
    raise AssertionError(wanted)


def product(m: int, n: int, k: int, dtype: Any, b_along_n: bool = False) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (m, k)).astype(dtype)
    b = rng.integers(-2, 3, (k, n) if b_along_n else (n, k)).astype(dtype)
    return a, b if b_along_n else b.T


@pytest.mark.parametrize(
    ("name", "columns", "ctas", "cluster", "transposed", "shape"),
    [
        ("blackwell_f16", 64, 1, (1, 1), False, (300, 200, 136)),  # edges; several tiles of a block
        ("blackwell_bf16", 32, 2, (2, 1), False, (520, 72, 192)),  # a pair of blocks, of which one has no rows
        ("blackwell_f16", 64, 2, (2, 2), True, (40, 512, 128)),
        ("blackwell_e4m3", 48, 1, (1, 2), False, (128, 200, 256)),
        ("blackwell_i8", 64, 2, (4, 1), False, (512, 64, 256)),
        ("blackwell_tf32", 96, 1, (2, 1), False, (256, 96, 64)),
    ],
)
def test_products_of_integers(
    name: str, columns: int, ctas: int, cluster: Any, transposed: bool, shape: tuple[int, int, int]
) -> None:
    a, b = product(*shape, TYPES[name], b_along_n=name == "blackwell_bf16")
    with sim.options(arch="sm_100a", check="all", sms=4):
        report = gemm(a, b, kernel=size(name, columns, ctas, cluster, transposed))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(report.d.astype(np.float64), exact.astype(report.d.dtype).astype(np.float64))


def test_parts_of_a_wide_tile_in_a_loop() -> None:
    """256 columns leave in four parts, two in each turn of a loop: with C, a bias, edges, and two tiles of a block."""
    a, b = product(136, 264, 40, np.float16)
    c = np.random.default_rng(1).integers(-4, 5, (136, 264)).astype(np.float16)
    bias = np.arange(264, dtype=np.float32) % 7
    function = Chain((LinearCombination(Float32(1), Float32(2)), Bias(from_dlpack(bias))))
    with sim.options(arch="sm_100a", check="all", sms=3):
        report = gemm(a, b, c, kernel=size("blackwell_f16", 256, 1, (1, 1)), epilogue=function)
    exact = a.astype(np.float32) @ b.astype(np.float32) + 2 * c.astype(np.float32) + bias
    np.testing.assert_array_equal(report.d, exact.astype(np.float16))


@pytest.mark.parametrize(
    ("columns", "ctas", "cluster", "shape"),
    [(64, 1, (1, 1), (520, 200, 72)), (32, 2, (2, 1), (520, 96, 64)), (64, 2, (2, 2), (768, 384, 64))],
)
def test_tiles_of_clusters_that_have_not_begun(
    columns: int, ctas: int, cluster: tuple[int, int], shape: tuple[int, int, int]
) -> None:
    """Blocks take over the tiles of others by cluster launch control; which ones does not change the sums."""
    a, b = product(*shape, np.float16)
    with sim.options(arch="sm_100a", check="all", sms=6):
        report = gemm(a, b, kernel=size("blackwell_f16", columns, ctas, cluster), decomposition="dynamic")
    assert report.decomposition == "dynamic"
    np.testing.assert_array_equal(report.d, (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16))


SHARED: list[dict[str, Any]] = [
    {"reduction": "mixed"},
    {"reduction": "atomic"},
    {"reduction": "shared"},
    {"decomposition": SplitK(3)},
    {"decomposition": SplitK(2, mode="parallel")},
    {"decomposition": "stream_k"},
]


@given(
    how=st.sampled_from(SHARED),
    sized=st.sampled_from([(64, 1, (1, 1)), (128, 1, (1, 1)), (64, 2, (2, 1)), (32, 2, (2, 2))]),
    extents=st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(2, 8)),
    transposed=st.booleans(),
    seed=st.integers(0, 9),
)
@example(how=SHARED[0], sized=(64, 2, (2, 1)), extents=(4, 1, 5), transposed=False, seed=1)  # pairs share tiles
@example(how=SHARED[5], sized=(64, 2, (2, 1)), extents=(1, 2, 8), transposed=False, seed=1)
@settings(max_examples=3, deadline=None)
def test_shared_tiles(
    how: dict[str, Any], sized: tuple[int, int, Any], extents: tuple[int, int, int], transposed: bool, seed: int
) -> None:
    """Stream-K, whose sums pass through registers part by part, and split-K: with C, edges, all checks. Plans are for
    blocks or clusters."""
    transposed = transposed and sized[0] != 128  # where a tile is square there is no other
    kernel = size("blackwell_f16", *sized, transposed=transposed)
    (rows, columns, depth), (tm, tn, tk) = kernel.config.cluster_tile, extents
    m, n, k = rows * tm - 24, columns * tn - 8, depth * tk - 8
    if transposed:
        m, n = n, m
    a, b = product(m, n, k, np.float16)
    c = (np.arange(m * n) % 7).reshape(m, n).astype(np.float16)
    clusters = 6 // kernel.config.cluster_size
    if "reduction" in how:
        shape = (n, m, k) if transposed else (m, n, k)
        plan = StreamK.of(
            shape, kernel.config.cluster_tile, multiprocessors=clusters, occupancy=1, fragments=1, split=2 + seed % 2
        )
        assert plan.cuts_tiles
        assume(how["reduction"] != "shared" or plan.sk_blocks <= clusters)  # they wait for each other
        how = {"decomposition": replace(plan, reduction_blocks=0), **how}
    with sim.options(arch="sm_100a", check="all", sms=6, seed=seed):
        report = gemm(a, b, c, beta=1.0, kernel=kernel, **how)
    if how == SHARED[5] and tm * tn % clusters:
        assert report.decomposition == "stream_k"
    exact = a.astype(np.float32) @ b.astype(np.float32) + c.astype(np.float32)
    np.testing.assert_array_equal(report.d, exact.astype(np.float16))


def test_the_epilogue_is_that_of_the_other_kernels() -> None:
    a, b = product(128, 96, 64, np.float16)
    c = np.arange(128 * 96).reshape(128, 96).astype(np.float16) % 7
    with sim.options(arch="sm_100a"):
        report = gemm(a, b, c, alpha=2.0, beta=-1.0, kernel=size("blackwell_f16", 48, 1, (1, 1)))
        relu = gemm(a, b, kernel=size("blackwell_f16", 48, 1, (1, 1)), epilogue=Activation("relu"))
    sums = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(report.d, (2 * sums - c.astype(np.float32)).astype(np.float16))
    np.testing.assert_array_equal(relu.d, np.maximum(sums, 0).astype(np.float16))


def test_a_pair_is_chosen_for_large_products() -> None:
    entry = kernels()["blackwell_f16"]
    from tilewright.gemm.choice.choose import fastest

    chosen, _ = fastest(entry, "data_parallel", (8192, 8192, 4096, 1), (148, 227 * 1024))
    assert isinstance(chosen.config, BlackwellConfig) and chosen.config.ctas == 2
    few, _ = fastest(entry, "data_parallel", (128, 512, 4096, 1), (148, 227 * 1024))
    assert few.config.tile[0] * few.config.tile[1] < 128 * 128


@pytest.mark.parametrize(
    ("arch", "decomposition"), [("sm_100a", "dynamic"), ("sm_103a", "data_parallel"), ("sm_100a", "stream_k")]
)
def test_the_text_is_assembled(arch: str, decomposition: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    made = cross_compile(kernels()["blackwell_f16"].config, arch, decomposition)
    assert made.spills == 0 and not made.warnings
    names = set(made.mnemonics())
    # Two loads of 16 rows for each of the two parts that are written out; dynamic tiles are written out twice.
    # Sums that are shared pass through registers in loops.
    loads = {"data_parallel": 4, "dynamic": 8, "stream_k": 12}
    assert made.mnemonics()["LDTM.16"] == loads[decomposition] and ("STTM.16" in names) == (decomposition == "stream_k")
    assert (decomposition == "dynamic") == ("UGETNEXTWORKID.BROADCAST" in names), names
    assert {"UTCHMMA.2CTA", "UTMALDG.3D.2CTA", "UTMASTG.3D", "UTCBAR.2CTA.MULTICAST"} <= names, names


def test_blackwell_kernels_refuse_other_gpus_and_decompositions() -> None:
    a, b = product(128, 64, 64, np.float16)
    with pytest.raises(ArgumentError, match=r"needs tcgen05, which sm_100a, .*have and sm_90 does not; the sim"):
        gemm(a, b, kernel="blackwell_f16")
    with sim.options(arch="sm_100a"):
        with pytest.raises(ArgumentError, match="blocks do not share k tiles in clusters"):
            gemm(a, b, kernel="blackwell_f16", decomposition=SplitK(2, mode="cluster"))
    with sim.options(arch="sm_103a"), pytest.raises(ArgumentError, match="kind::i8 is not there on sm_103a"):
        gemm(*product(128, 64, 64, np.int8), kernel="blackwell_i8")
    config = kernels()["blackwell_f16"].config
    assert isinstance(config, BlackwellConfig)
    for changed, why in (
        ({"tile": (64, 256, 64)}, "128 rows a block"),
        ({"tile": (128, 272, 64)}, "32 to 256 columns in steps of 32"),
        ({"ctas": 2, "cluster": (1, 1)}, "whole MMAs along M"),
        ({"acc_dtype": Float16}, "sums of 32 bits"),
        ({"pingpong": True}, "without turns"),
    ):
        with pytest.raises(ConstraintError, match=why):
            replace(config, **changed).check()  # of several types
