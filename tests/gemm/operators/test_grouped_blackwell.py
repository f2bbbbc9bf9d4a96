"""Groups of products by the kernels of sm_100 and sm_120: exact wherever groups begin; their texts; refusals."""

from __future__ import annotations

import importlib.util
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.gemm.operators.test_offsets import expected
from tests.gemm.operators.test_scaled_offsets import drawn
from tilewright import Float32, cute, sim
from tilewright.cuda import compile as cross_compile
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.gemm import LinearCombination, gemm_grouped, grouped_matmul, kernels, scaled_grouped_matmul
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.operators import group_launch, offsets
from tilewright.gemm.operators.group_launch import Launch
from tilewright.ir.target import architecture

BULK = (".shared::cluster.global.", "bulk.tensor.3d.global.shared::cta")
ARCHS = {"sm_100a": "blackwell", "sm_120a": "sm120"}


@settings(max_examples=3, deadline=None)
@given(
    arch=st.sampled_from(sorted(ARCHS)),
    mode=st.sampled_from([0, 1, 2]),
    extents=st.tuples(st.integers(1, 300), st.integers(1, 20), st.integers(1, 12)),
    parts=st.lists(st.floats(0, 1), min_size=1, max_size=5),
    dtype=st.sampled_from([np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]),
    seed=st.integers(0, 9),
)
@example("sm_100a", 0, (300, 9, 9), [0.3, 0.3, 0.9], np.float16, 0)  # rows of no group, an empty one
@example("sm_100a", 2, (40, 9, 9), [0.2, 0.2, 0.9], np.float16, 0)
def test_any_groups(arch: str, mode: int, extents: Any, parts: list[float], dtype: Any, seed: int) -> None:
    """In all three forms, with all checks; one- and two-byte types."""
    m, n, k = extents[0], 8 * extents[1], 16 * extents[2]
    ends = [int(x * (m, n, k)[mode]) // (8 if mode else 1) * (8 if mode else 1) for x in sorted(parts)]
    (a, b, *_, cut), _ = drawn(mode, m, n, k, ends, dtype, seed)
    exact = expected(a, b, ends)
    with sim.options(arch=arch, check="all", sms=4, seed=seed):
        found = grouped_matmul(a, b, cut, out_dtype=np.float32)
    np.testing.assert_array_equal(found, exact)


@settings(max_examples=3, deadline=None)
@given(
    size=st.integers(0, 14),
    mode=st.sampled_from([0, 2]),
    extents=st.tuples(st.integers(1, 36), st.integers(1, 20), st.integers(1, 6)),
    parts=st.lists(st.floats(0, 1), min_size=1, max_size=5),
    dtype=st.sampled_from([np.float16, ml_dtypes.float8_e4m3fn]),
    seed=st.integers(0, 9),
)
@example(6, 0, (33, 9, 5), [0.25, 0.25, 0.8, 0.9], np.float16, 0)  # the second block of a pair without rows
@example(13, 0, (18, 33, 5), [0.1, 0.6, 0.6], np.float16, 0)  # transposed
@example(7, 2, (33, 9, 5), [0.3, 0.3, 0.9], np.float16, 0)
def test_pairs(size: int, mode: int, extents: Any, parts: list[float], dtype: Any, seed: int) -> None:
    """Groups that cut M or, of 16 bits, K anywhere, by pairs of blocks, with all checks."""
    assume(mode == 0 or dtype is np.float16)
    m, n, k = 8 * extents[0], 8 * extents[1], 16 * extents[2]
    ends = [int(x * (m, n, k)[mode]) for x in sorted(parts)]
    (a, b, *_, cut), _ = drawn(mode, m, n, k, ends, dtype, seed)
    if mode == 2:
        a, b = np.asfortranarray(a), np.ascontiguousarray(b)
    entry = kernels()["blackwell_f16" if dtype is np.float16 else "blackwell_e4m3"]
    pairs = [config for config in entry.sizes if entry.family.grouped.fits(config) and config.cluster_size == 2]
    with sim.options(arch="sm_100a", check="all", sms=5, seed=seed):
        given = {"out_dtype": np.float32, "kernel": entry.only(pairs[size])}
        found = grouped_matmul(a, b, cut, decomposition="data_parallel", **given)
        np.testing.assert_array_equal(found, expected(a, b, ends))


def test_pairs_with_scales_of_blocks_and_of_known_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scales of 128 elements of K, and problems that the host knows, whose pairs of blocks have one tile together; what
    pairs do not."""
    counts, table = [], Launch.table

    def counted(launch: Launch) -> Any:
        made = table(launch)
        counts.append((launch.config, made[1]))
        return made

    monkeypatch.setattr(Launch, "table", counted)
    rng, ends = np.random.default_rng(0), [130, 130, 440]
    a, b = (rng.integers(-2, 3, shape).astype(ml_dtypes.float8_e4m3fn) for shape in ((443, 272), (3, 144, 272)))
    of_a, of_b = (np.exp2(rng.integers(-2, 3, shape)).astype(np.float32) for shape in ((443, 3), (3, 2, 3)))
    scaled_a = a.astype(np.float32) * of_a.repeat(128, 1)[:, :272]
    scaled_b = b.astype(np.float32) * of_b.repeat(128, 1).repeat(128, 2)[:, :144, :272]
    scaled, dense = kernels()["blackwell_e4m3"], kernels()["blackwell_f16"]
    of_blocks, pair = (
        entry.only(next(size for size in sizes if size.ctas == size.cluster_size == 2 and size.tile[1] <= 128))
        for entry, sizes in ((scaled, scaled.for_block_scales(1, 128).sizes), (dense, dense.sizes))
    )
    problems = [
        tuple(rng.integers(-2, 3, s).astype(np.float16) for s in ((m, k), (k, n)))
        for m, n, k in ((300, 136, 72), (8, 264, 200), (520, 8, 16))
    ]
    with sim.options(arch="sm_100a", check="all", sms=4):
        scales, cut = (of_a, of_b.swapaxes(1, 2)), np.array(ends, np.int32)
        how: Any = {"out_dtype": np.float32, "kernel": of_blocks}
        found = scaled_grouped_matmul(a, b.swapaxes(1, 2), *scales, cut, **how)
        known = gemm_grouped(problems, kernel=pair)
        half, weights = a.astype(np.float16), b.astype(np.float16).swapaxes(1, 2)
        with pytest.raises(ConstraintError, match="pairs of blocks do not share tiles of groups"):
            grouped_matmul(half, weights, cut, kernel=pair, decomposition="stream_k")
        with pytest.raises(ConstraintError, match="rows of A are gathered by single blocks, not by pairs"):
            grouped_matmul(half, weights, cut, kernel=pair, rows=np.arange(443, dtype=np.int32))
    ((config, tiles),), (bM, bN, _) = counts, counts[0][0].tile
    shapes = [(x.shape[0], y.shape[1])[:: -1 if config.transposed else 1] for x, y in problems]
    assert tiles == sum(-(-m // (2 * bM)) * -(-n // bN) for m, n in shapes)
    np.testing.assert_array_equal(found[:440], expected(scaled_a, scaled_b.swapaxes(1, 2), ends)[:440])
    for (x, y), result in zip(problems, known, strict=True):
        np.testing.assert_array_equal(result, x @ y)


@pytest.mark.parametrize("arch", ARCHS)
def test_scales_biases_and_shared_tiles(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[str] = []
    run = group_launch.TableLaunch.run
    monkeypatch.setattr(group_launch.TableLaunch, "run", lambda x, *to: launches.append(x.config.math) or run(x, *to))
    operands, exact = drawn(0, 70, 48, 64, [8, 8, 60], ml_dtypes.float8_e4m3fn, 0)
    rng, shapes = np.random.default_rng(0), ((40, 48, 512), (130, 24, 64), (8, 8, 72))
    problems = [tuple(rng.integers(-2, 3, s).astype(np.float16) for s in ((m, k), (k, n))) for m, n, k in shapes]
    bias = [np.arange(n, dtype=np.float32) for _, n, _ in shapes]
    with sim.options(arch=arch, check="all", sms=4):
        scaled = scaled_grouped_matmul(*operands, out_dtype=Float32)
        shared = gemm_grouped(problems, bias=bias, decomposition="stream_k")
    np.testing.assert_array_equal(scaled, exact)
    for (a, b), found, vector in zip(problems, shared, bias, strict=True):
        np.testing.assert_array_equal(found, (a.astype(np.float32) @ b.astype(np.float32) + vector).astype(np.float16))
    assert launches == [{"blackwell": "tcgen05"}.get(ARCHS[arch], "sm120")] * 2


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.float8_e4m3fn])
def test_rows_by_index(arch: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four rows by an instruction of TMA: in any order, of groups that end anywhere, of no group; some are not there,
    which is refused where it can be seen, and else counts as zeros."""
    ends, rng = [130, 130, 145, 290], np.random.default_rng(4)
    a, b = (rng.integers(-2, 3, shape).astype(dtype) for shape in ((70, 80), (4, 48, 80)))
    rows = rng.integers(0, 70, 300).astype(np.int32)
    rows[[0, 131, 289]] = -1, 70, 1 << 30
    there = (rows >= 0) & (rows < 70)
    exact = expected(np.where(there[:, None], a[rows.clip(0, 69)].astype(np.float32), 0), b.swapaxes(1, 2), ends)
    kernel = f"{ARCHS[arch]}_{'f16' if dtype is np.float16 else 'e4m3'}"
    given = a, b.swapaxes(1, 2), np.array(ends, np.int32)
    with sim.options(arch=arch, check="all", sms=4):
        with pytest.raises(ArgumentError, match="rows has numbers of -1 to 1073741824, and a has 70 rows"):
            grouped_matmul(*given, rows=rows, kernel=kernel)
        monkeypatch.setattr(offsets, "check_rows", lambda rows, problem: None)
        found = grouped_matmul(*given, rows=rows, kernel=kernel, out_dtype=np.float32)
    np.testing.assert_array_equal(found, exact)
    if importlib.util.find_spec("cuda") is None:
        return
    launches: list[Any] = []
    monkeypatch.setattr(group_launch.TableLaunch, "run", lambda launch, *stream: launches.append(launch))
    with sim.options(arch=arch):
        grouped_matmul(*given, rows=rows, kernel=kernel, out_dtype=np.float32)
        (launch,) = launches
        made = cross_compile(cute.compile(launch.kernel(), *launch.arguments()).kernels[1], arch)
    assert made.spills == 0 and not made.warnings and "tile::gather4" in made.ptx


@pytest.mark.parametrize(
    ("arch", "names"),
    [
        ("sm_100a", {"tcgen05.mma.", "tcgen05.ld.sync", *BULK}),
        ("sm_120a", {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", *BULK}),
    ],
)
def test_the_text_is_assembled(arch: str, names: set[str]) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    entry = kernels()[f"{ARCHS[arch]}_bf16"]
    sizes = [size for size in entry.sizes if entry.family.grouped.fits(size)]
    single, pair = (next((size for size in sizes if size.cluster_size == blocks), None) for blocks in (1, 2))
    a, b = np.zeros((64, 64), ml_dtypes.bfloat16), np.zeros((64, 256), ml_dtypes.bfloat16)
    A, B, D = (Matrix.of("x", x) for x in (a, b, a @ b))
    function = LinearCombination(Float32(1), Float32(0))
    for fitting, sharing in ((single, False), (single, True), (pair, False)):
        if fitting is None:
            continue
        with sim.options(arch=arch):
            limits = 4, architecture(arch).smem
            launch = Launch([Problem(A, B, D, D, False)], entry.only(fitting), lambda _: function, [0], limits, sharing)
            made = cross_compile(cute.compile(launch.kernel(), *launch.arguments()).kernels[1], arch)
        assert made.spills == 0 and not made.warnings
        assert not [name for name in names if name not in made.ptx], made.ptx
        assert ("tcgen05.mma.cta_group::2" in made.ptx) == (fitting is pair)


def test_what_is_refused() -> None:
    a, b, ends = np.ones((16, 64), np.float16), np.ones((2, 64, 64), np.float16), np.array([8, 16], np.int32)
    with pytest.raises(ArgumentError, match="it needs tcgen05"):
        grouped_matmul(a, b, ends, kernel="blackwell_f16")
