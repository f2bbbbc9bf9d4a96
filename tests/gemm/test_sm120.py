"""The kernels of mma.sync and TMA, in the simulator of an sm_120a and as text for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright import Float8E5M2, Float16, Float32, sim
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.gemm import Bias, Chain, KernelEntry, LinearCombination, SplitK, gemm, kernels, matmul
from tilewright.gemm.config import Major, Operand
from tilewright.gemm.epilogue.functions import RowBias
from tilewright.gemm.family.compile import cross_compile
from tilewright.gemm.sm120_config import Sm120Config
from tilewright.ir.target import architecture

TYPES = {
    "sm120_f16": np.float16,
    "sm120_bf16": ml_dtypes.bfloat16,
    "sm120_e4m3": ml_dtypes.float8_e4m3fn,
    "sm120_e5m2": ml_dtypes.float8_e5m2,
    "sm120_i8": np.int8,
    "sm120_tf32": np.float32,
}
DECOMPOSITIONS: list[dict[str, Any]] = [
    {},
    {"decomposition": "dynamic"},
    {"decomposition": "stream_k"},
    {"decomposition": "stream_k", "reduction": "shared"},
    {"decomposition": SplitK(2)},
    {"decomposition": SplitK(3, mode="parallel")},
]


def small(name: str, turns: bool, transposed: bool) -> KernelEntry:
    """A kernel in its smallest size of a kind, which blocks have several tiles of."""
    entry = kernels()[name]
    sizes = [x for x in entry.sizes if x.pingpong is turns and x.transposed is transposed]
    return entry.only(min(sizes, key=lambda x: x.tile[0] * x.tile[1]))


@given(
    name=st.sampled_from(sorted(TYPES)),
    tiles=st.tuples(st.integers(1, 150), st.integers(1, 10), st.integers(1, 11), st.integers(1, 2)),
    how=st.sampled_from(DECOMPOSITIONS),
    turns=st.booleans(),
    transposed=st.booleans(),
    along_mn=st.booleans(),
    seed=st.integers(0, 9),
)
@settings(max_examples=8, deadline=None)
def test_products_of_integers(
    name: str, tiles: tuple[int, ...], how: dict[str, Any], turns: bool, transposed: bool, along_mn: bool, seed: int
) -> None:
    """All types, e4m3 by e5m2 too, majors, extents, kinds of sizes and ways to share tiles, with all checks."""
    dtype = np.dtype(TYPES[name])
    of_b = {"sm120_e5m2": np.dtype(ml_dtypes.float8_e4m3fn)}.get(name, dtype)
    step = 16 // dtype.itemsize
    kernel = small(name, turns and not how, transposed and not turns)
    least = 4 * kernel.config.tile[2] if "reduction" in how else 1  # of which blocks can share a tile
    m, n, k, batch = tiles[0], tiles[1] * 16, max(tiles[2] * step * 2, least), 1 if how else tiles[3]
    if "reduction" in how:
        m, n = min(m, 32), min(n, 32)
    rng = np.random.default_rng(seed)
    a = rng.integers(-2, 3, (batch, m, k)).astype(dtype)
    b = rng.integers(-2, 3, (batch, n, k)).astype(of_b).swapaxes(1, 2)
    if along_mn and dtype.itemsize == 2:
        b = np.ascontiguousarray(b)
    with sim.options(arch="sm_120a", check="all", sms=4, seed=seed):
        found = gemm(*((a, b) if batch > 1 else (a[0], b[0])), kernel=kernel, **how).d
    exact = a.astype(np.float64) @ b.astype(np.float64)
    wanted = exact.astype(found.dtype).astype(np.float64)
    np.testing.assert_array_equal(found.astype(np.float64), wanted if batch > 1 else wanted[0])


def test_the_usual_size_with_an_epilogue() -> None:
    """C, a bias along each mode, a second part of the epilogue, edges."""
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((136, 72), (72, 152), (136, 152)))
    rows, columns = np.arange(136, dtype=np.float32) % 5, np.arange(152, dtype=np.float32) % 7
    function = Chain(
        (LinearCombination(Float32(1), Float32(2)), Bias(from_dlpack(columns)), RowBias(from_dlpack(rows)))
    )
    entry = kernels()["sm120_f16"]
    with sim.options(arch="sm_120a", check="all", sms=3):
        report = gemm(a, b, c, kernel=entry.only(entry.config), epilogue=function)
    exact = a.astype(np.float32) @ b.astype(np.float32) + 2 * c.astype(np.float32) + rows[:, None] + columns
    np.testing.assert_array_equal(report.d, exact.astype(np.float16))


def test_it_is_chosen_for_sm_120() -> None:
    a, b = np.ones((64, 64), ml_dtypes.bfloat16), np.ones((64, 64), ml_dtypes.bfloat16)
    with sim.options(arch="sm_120a", sizes="gpu", sms=4):
        report = gemm(a, b)
        assert report.kernel == "sm120_bf16" and report.d.tolist() == np.full((64, 64), 64).tolist()
        assert matmul(a, b).tolist() == report.d.tolist()
        narrow = np.ones((64, 64), ml_dtypes.float8_e4m3fn)
        with pytest.raises(ArgumentError, match=r"ldmatrix with TMA"):  # which transposes 16-bit elements alone
            gemm(narrow, narrow, kernel="sm120_e4m3")


def test_all_sizes_have_room_for_results_of_four_bytes() -> None:
    """Those of parallel split-K, and of the user's."""
    smem = architecture("sm_120a").smem
    for name in TYPES:
        for config in kernels()[name].sizes:
            assert isinstance(config, Sm120Config)
            config.check()
            wide = config.with_operands(config.a, config.b, Operand(Float32, Major.K, 128), smem)
            wide.check()
            assert max(wide.smem_bytes, config.smem_bytes) <= smem


@pytest.mark.parametrize(
    ("name", "instructions"),
    [
        ("sm120_bf16", {"m16n8k16.row.col.f32.bf16.bf16.f32", "m8n8.x4.shared.b16", "m8n8.x4.trans.shared.b16"}),
        ("sm120_e4m3", {"m16n8k32.row.col.f32.e4m3.e5m2.f32", "m8n8.x4.shared.b16"}),
    ],
)
def test_the_text_is_assembled(name: str, instructions: set[str]) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    config = kernels()[name].config
    if name == "sm120_e4m3":
        config = replace(config, b=replace(config.b, dtype=Float8E5M2))
    made = cross_compile(config, "sm_120a")
    assert made.spills == 0 and not made.warnings
    bulk = {"bulk.tensor.3d.shared::cluster.global", "bulk.tensor.3d.global.shared::cta"}
    assert not [x for x in instructions | bulk if x not in made.ptx]


def test_other_gpus_and_sizes_are_refused() -> None:
    a, b = np.ones((64, 64), np.float16), np.ones((64, 64), np.float16)
    with pytest.raises(ArgumentError, match=r"it is for sm_120a, sm_121a, and this is sm_90"):
        gemm(a, b, kernel="sm120_f16")
    config = kernels()["sm120_f16"].config
    assert isinstance(config, Sm120Config)
    for changed, why in (
        ({"tile": (96, 128, 32)}, "a multiple of 32 rows a consumer, not 96"),
        ({"tile": (128, 48, 32)}, "columns in steps of 32 a consumer, not 48"),
        ({"tile": (128, 128, 16)}, "a K tile in steps of 16, two at least, not 16"),
        ({"tile": (128, 192, 32)}, "at most 80 sums a thread, not 64 x 192"),
        ({"cluster": (2, 1)}, "single blocks, not a cluster"),
        ({"promote": 1}, "promote=0"),
        ({"roles": "one"}, "a warpgroup that loads"),
        ({"acc_dtype": Float16}, "sums of 32 bits"),
        ({"epilogue_columns": 16}, "epilogue columns in steps of 32"),
    ):
        with pytest.raises(ConstraintError, match=why):
            replace(config, **changed).check()
