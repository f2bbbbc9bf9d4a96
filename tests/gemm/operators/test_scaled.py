"""Products of scaled 8-bit floats: exact against float64 for small integers and powers of two, refusals, the cache of
launches, the operator of PyTorch."""

from __future__ import annotations

import importlib.util
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tilewright import Float32, sim
from tilewright.cuda import compile as cross_compile
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.gemm import gemm, kernels, scaled_matmul
from tilewright.gemm.epilogue.scales import BlockScales
from tilewright.gemm.family import compile as staged

E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
KINDS = ["all", "line", 1, 128]


def blocks(extent: int) -> int:
    return -(-extent // 128)


def operands(rng: np.random.Generator, m: int, n: int, k: int, dtype: Any = E4M3) -> tuple[Any, Any]:
    """Small integers: their sums are exact in float32, and in the 14 bits that the tensor cores keep."""
    return rng.integers(-2, 3, (m, k)).astype(dtype), rng.integers(-2, 3, (n, k)).astype(dtype).T


def scale(rng: np.random.Generator, kind: str | int, extent: int, k: int) -> np.ndarray:
    """Powers of two, (extent or blocks, K blocks) or as many lines as the kind has."""
    shape = {"all": (1, 1), "line": (extent, 1), 1: (extent, blocks(k)), 128: (blocks(extent), blocks(k))}[kind]
    return np.float32(2.0) ** rng.integers(-3, 4, shape).astype(np.float32)


def spread(scales: np.ndarray, extent: int, k: int) -> np.ndarray:
    """The scale of each element, (extent, k)."""
    rows, columns = (
        np.arange(e) * s // max(e, 1) if s in (1, e) else np.arange(e) // 128
        for e, s in zip((extent, k), scales.shape, strict=True)
    )
    return scales[np.ix_(rows, columns)].astype(np.float64)


def expected(a: Any, b: Any, scale_a: np.ndarray, scale_b: np.ndarray) -> np.ndarray:
    """``scale_b`` has the lines of B, its columns, first."""
    (m, k), n = a.shape, b.shape[1]
    left, right = a.astype(np.float64) * spread(scale_a, m, k), b.astype(np.float64).T * spread(scale_b, n, k)
    return left @ right.T


@pytest.mark.parametrize("kind_b", KINDS, ids=str)
@pytest.mark.parametrize("kind_a", KINDS, ids=str)
def test_scaled_matmul_with_each_kind_of_scale(kind_a: str | int, kind_b: str | int) -> None:
    if isinstance(kind_a, int) != isinstance(kind_b, int):
        pytest.skip("scales of blocks belong to both operands")
    rng = np.random.default_rng(1)
    m, n, k = 200, 272, 304
    a, b = operands(rng, m, n, k)
    scale_a, scale_b = scale(rng, kind_a, m, k), scale(rng, kind_b, n, k)
    result = scaled_matmul(a, b, scale_a, scale_b.T, out_dtype=Float32)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, expected(a, b, scale_a, scale_b))


@settings(max_examples=12)
@given(
    shape=st.tuples(st.integers(1, 300), st.integers(1, 300), st.integers(1, 25)),
    kind=st.sampled_from([("all", "line"), ("line", "all"), ("line", "line"), (1, 128), (1, 1), (128, 128)]),
    dtype=st.sampled_from([E4M3, E5M2]),
    fast=st.booleans(),
    bias=st.booleans(),
    arch=st.sampled_from(["sm_90a", "sm_100a", "sm_120a"]),
    seed=st.integers(0, 99),
)
@example((300, 264, 25), (1, 128), E4M3, False, True, "sm_100a", 0)
@example((140, 200, 17), (1, 1), E5M2, True, False, "sm_100a", 1)
@example((300, 264, 25), (1, 128), E4M3, False, True, "sm_120a", 0)
@example((140, 200, 17), (1, 1), E5M2, True, False, "sm_120a", 1)
def test_any_extents(shape: Any, kind: Any, dtype: Any, fast: bool, bias: bool, arch: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n, k = shape[0], shape[1], 16 * shape[2]  # rows begin at multiples of 16 bytes
    if isinstance(kind[0], int):
        n = 4 * -(-n // 4)
    a, b = operands(rng, m, n, k, dtype)
    scale_a, scale_b = scale(rng, kind[0], m, k), scale(rng, kind[1], n, k)
    vector = rng.integers(-9, 9, n).astype(np.float32) if bias else None
    with sim.options(arch=arch):
        result = scaled_matmul(a, b, scale_a, scale_b.T, vector, out_dtype=Float32, use_fast_accum=fast)
    exact = expected(a, b, scale_a, scale_b) + (0 if vector is None else vector)
    np.testing.assert_array_equal(result, exact)


@pytest.mark.parametrize("tile", [(128, 192), (64, 80)], ids=str)
def test_scales_of_blocks_in_tiles_across_blocks(tile: tuple[int, int]) -> None:
    """Tiles whose columns do not divide 128 begin at several places of a block, and end in the next one."""
    rng, (m, n, k) = np.random.default_rng(9), (136, 400, 272)
    entry = kernels()["hopper_e4m3_promoted"]
    size = next(x for x in entry.for_block_scales(1, 128).sizes if x.tile[:2] == tile and x.cluster_size == 1)
    a, b = operands(rng, m, n, k)
    scale_a, scale_b = scale(rng, 1, m, k), scale(rng, 128, n, k)
    result = scaled_matmul(a, b, scale_a, scale_b.T, out_dtype=Float32, kernel=entry.only(size))
    np.testing.assert_array_equal(result, expected(a, b, scale_a, scale_b))


@pytest.mark.parametrize(
    ("decomposition", "cluster", "slices"), [("dynamic", (2, 1), 1), ("stream_k", (1, 1), 1), ("auto", (1, 1), 2)]
)
def test_scales_of_blocks_where_the_warp_that_copies_them_walks(
    decomposition: str, cluster: tuple[int, int], slices: int
) -> None:
    """Tiles that are drawn, shared, or whose k tiles a cluster shares, with all checks."""
    rng, (m, n, k) = np.random.default_rng(3), (264, 144, 528)
    entry = kernels()["hopper_e4m3_promoted"].for_block_scales(1, 128)
    size = next(x for x in entry.sizes if (x.tile[:2], x.cluster, x.cluster_k) == ((64, 64), cluster, slices))
    a, b = operands(rng, m, n, k)
    scale_a, scale_b = scale(rng, 1, m, k), scale(rng, 128, n, k)
    scales = BlockScales(*(from_dlpack(x).mark_layout_dynamic() for x in (scale_a, scale_b)))
    out = np.zeros((m, n), np.float32)
    with sim.options(check="all", sms=4):
        gemm(a, b, kernel=entry.only(size), epilogue=scales, decomposition=decomposition, out=out)
    np.testing.assert_array_equal(out, expected(a, b, scale_a, scale_b))


def test_sizes_that_are_made_for_other_scales_are_refused() -> None:
    a, b = operands(np.random.default_rng(0), 16, 32, 256)
    scales = BlockScales(*(from_dlpack(np.ones((lines, 2), np.float32)).mark_layout_dynamic() for lines in (16, 1)))
    entry = kernels()["hopper_e4m3_promoted"]
    for other in (entry, entry.for_block_scales(1, 1)):
        with pytest.raises(ConstraintError, match=r"groups of \(rows, columns\) \(1, 128\) take one of"):
            gemm(a, b, kernel=other, epilogue=scales)
    with pytest.raises(ConstraintError, match=r"waits for scales of blocks of \(1, 128\)"):
        gemm(a, b, kernel=entry.for_block_scales(1, 128))


@pytest.mark.parametrize("ctas", [1, 2])
def test_scales_of_blocks_in_tensor_memory(ctas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Single blocks and pairs whose tiles are shared, with all checks; what ptxas makes of them."""
    rng, (m, n, k) = np.random.default_rng(7), (264, 144, 656)
    entry = kernels()["blackwell_e4m3"]
    size = next(x for x in entry.for_block_scales(1, 128).sizes if x.tile[1] == 128 and x.ctas == ctas)
    a, b = operands(rng, m, n, k, E4M3)
    scale_a, scale_b = scale(rng, 1, m, k), scale(rng, 128, n, k)
    with sim.options(arch="sm_100a", check="all", sms=4):
        result = scaled_matmul(a, b, scale_a, scale_b.T, out_dtype=Float32, kernel=entry.only(size))
    np.testing.assert_array_equal(result, expected(a, b, scale_a, scale_b))
    wide = next(x for x in entry.sizes if x.tile[1] == 256)
    with pytest.raises(ArgumentError, match="kernel blackwell_e4m3 cannot apply scales of blocks of 128 elements"):
        scaled_matmul(a, b, scale_a, scale_b.T, kernel=entry.only(wide))
    if importlib.util.find_spec("cuda") is None:
        return
    scales = BlockScales(*(from_dlpack(np.zeros((4, 2), np.float32)).mark_layout_dynamic() for _ in range(2)))
    monkeypatch.setattr(staged, "LinearCombination", lambda *numbers: scales)
    made = cross_compile(staged.stage(size), "sm_100a")
    assert made.spills == 0 and not made.warnings


@pytest.mark.parametrize("kinds", [(1, 128), (1, 1), (128, 1), (128, 128)])
def test_scales_of_blocks_by_mma_sync(kinds: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes of sm_120 with all checks, every second one where both kinds are the same; what ptxas makes of the one with
    most registers."""
    rng, (m, n, k) = np.random.default_rng(7), (136, 136, 400)
    entry = kernels()["sm120_e4m3"]
    sizes = entry.for_block_scales(*kinds).sizes
    assert all(size.tile[2] == 128 and 2 * size.apart <= {1: 128, 2: 80}[size.warpgroups] for size in sizes)
    a, b = operands(rng, m, n, k, E4M3)
    scale_a, scale_b = scale(rng, kinds[0], m, k), scale(rng, kinds[1], n, k)
    for size in sizes[:: 2 if kinds[0] == kinds[1] else 1]:
        with sim.options(arch="sm_120a", check="all", sms=4):
            result = scaled_matmul(a, b, scale_a, scale_b.T, out_dtype=Float32, kernel=entry.only(size))
        np.testing.assert_array_equal(result, expected(a, b, scale_a, scale_b))
    with pytest.raises(ArgumentError, match="kernel sm120_e4m3 cannot apply scales of blocks of 128 elements"):
        scaled_matmul(a, b, scale_a, scale_b.T, kernel=entry.only(entry.sizes[0]))
    if importlib.util.find_spec("cuda") is None:
        return
    arrays = (from_dlpack(np.zeros((4, 2), np.float32)).mark_layout_dynamic() for _ in range(2))
    scales = BlockScales(*arrays, *kinds)
    monkeypatch.setattr(staged, "LinearCombination", lambda *numbers: scales)
    made = cross_compile(staged.stage(max(sizes, key=lambda size: size.apart)), "sm_120a")
    assert made.spills == 0 and not made.warnings


@pytest.mark.parametrize("out", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_integers_with_scales_become_floats(out: Any) -> None:
    rng = np.random.default_rng(2)
    m, n, k = 72, 136, 208
    a, b = rng.integers(-128, 128, (m, k)).astype(np.int8), rng.integers(-128, 128, (n, k)).astype(np.int8).T
    scale_a, scale_b = (rng.uniform(1e-4, 2e-4, (extent, 1)).astype(np.float32) for extent in (m, n))
    result = scaled_matmul(a, b, scale_a, scale_b.T, activation="relu", out_dtype=out)
    exact = np.maximum(expected(a, b, scale_a, scale_b), 0)
    np.testing.assert_allclose(result.astype(np.float64), exact, rtol=float(ml_dtypes.finfo(out).eps), atol=1e-7)


@pytest.mark.parametrize("kernel", ["hopper_i8", "tensorop_i8"])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_integers_of_both_families_are_exact(kernel: str, device: str) -> None:
    """Any int8, and scales that are powers of two: float32 holds the results."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    m, n, k = 136, 72, 528
    a, b = (rng.integers(-128, 128, (extent, k)).astype(np.int8) for extent in (m, n))
    scale_a, scale_b = scale(rng, "line", m, k), scale(rng, "line", n, k)
    left, right, rows, columns = (torch.from_numpy(x).to(device) for x in (a, b, scale_a, scale_b))
    for out in (torch.float32, torch.float16, torch.bfloat16):
        result = scaled_matmul(left, right.T, rows, columns.T, out_dtype=out, kernel=kernel)
        exact = torch.from_numpy(expected(a, b.T, scale_a, scale_b)).to(out)
        assert torch.equal(result.cpu(), exact)


@pytest.mark.unchecked
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("kernel", ["hopper_e4m3", "hopper_e4m3_promoted", "tensorop_e4m3"])
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_results_of_eight_bits_have_a_scale(name: str, kernel: str, device: str) -> None:
    """Three times with other scales, some of which give results beyond the largest number."""
    torch = pytest.importorskip("torch")
    *given, exact = torch_operands(torch, device, 136, 272, 208, ("line", "line"), 4)
    for factor in (0.5, 8.0, 1 / 64):
        scale_result = torch.full((), factor, device=device)
        result = scaled_matmul(*given, out_dtype=getattr(torch, name), kernel=kernel, scale_result=scale_result)
        assert result.dtype == getattr(torch, name)
        dtype = E4M3 if name == "float8_e4m3fn" else E5M2
        largest = float(ml_dtypes.finfo(dtype).max)
        wanted = np.clip(exact * factor, -largest, largest)
        np.testing.assert_array_equal(
            result.float().cpu().numpy().astype(np.float64), wanted.astype(np.float32).astype(dtype).astype(np.float64)
        )
        how = {"kernel": kernel, "scale_result": scale_result, "saturate": False}
        result = scaled_matmul(*given, out_dtype=getattr(torch, name), **how)
        unlimited = (exact * factor).astype(np.float32).astype(dtype).astype(np.float64)  # as ml_dtypes converts
        np.testing.assert_array_equal(result.float().cpu().numpy().astype(np.float64), unlimited)


@pytest.mark.parametrize("dtype", [E4M3, E5M2], ids=["e4m3", "e5m2"])
def test_where_results_of_eight_bits_overflow(dtype: Any) -> None:
    """Around the number between the largest one and the next, from which on it depends; infinity and NaN."""
    middle = 464.0 if dtype == E4M3 else 61440.0
    around = [
        middle,
        np.nextafter(np.float32(middle), np.float32(0)),
        np.nextafter(np.float32(middle), np.float32(1e9)),
    ]
    factors = np.array([*around, 1e-9, 1e30, np.inf, np.nan, middle - 16], np.float32)
    rows = np.concatenate([factors, -factors])
    a, b = np.zeros((16, 128), E4M3), np.zeros((128, 16), E4M3).T
    a[:, 0], b = 1, np.eye(1, 128, dtype=np.float32).repeat(16, 0).astype(E4M3).T
    one = np.ones((), np.float32)
    result = scaled_matmul(a, b, rows, one, out_dtype=dtype, saturate=False)[:, 0]
    np.testing.assert_array_equal(result.astype(np.float64), rows.astype(dtype).astype(np.float64))
    largest = float(ml_dtypes.finfo(dtype).max)
    result = scaled_matmul(a, b, rows, one, out_dtype=dtype)[:, 0]
    wanted = np.clip(rows, -largest, largest).astype(dtype).astype(np.float64)
    np.testing.assert_array_equal(result.astype(np.float64), wanted)


@pytest.mark.parametrize("dtypes", [(E4M3, E5M2), (E5M2, E4M3)], ids=["e4m3 e5m2", "e5m2 e4m3"])
def test_both_kinds_of_floats_in_one_product(dtypes: tuple[Any, Any]) -> None:
    """Also of few rows, where the transposed product has the types in the other order."""
    rng = np.random.default_rng(3)
    for m, kinds in ((200, ("line", "line")), (8, ("all", "line")), (136, (1, 128))):
        a, b = operands(rng, m, 144, 272, dtypes[0])[0], operands(rng, m, 144, 272, dtypes[1])[1]
        scale_a, scale_b = scale(rng, kinds[0], m, 272), scale(rng, kinds[1], 144, 272)
        for fast in (False, True):
            result = scaled_matmul(a, b, scale_a, scale_b.T, out_dtype=Float32, use_fast_accum=fast)
            np.testing.assert_array_equal(result, expected(a, b, scale_a, scale_b))
    one, kernel = np.ones((), np.float32), f"tensorop_{'e4m3' if a.dtype == E4M3 else 'e5m2'}"
    with sim.options(arch="sm_89"):  # by mma.sync, also with rows of any length
        result = scaled_matmul(a, b[:, :33], one, one, out_dtype=Float32)
        assert (result == scaled_matmul(a, b[:, :33], one, one, out_dtype=Float32, kernel=kernel)).all()
    np.testing.assert_array_equal(result, a.astype(np.float64) @ b[:, :33].astype(np.float64))


@pytest.mark.parametrize(("kinds", "arch"), [((1, 1), "sm_90a"), ((128, 1), "sm_90a"), ((1, 128), "sm_100a")])
def test_scales_of_blocks_with_any_rows_and_majors(kinds: tuple[int, int], arch: str) -> None:
    """Kernels that store by TMA: rows that are no multiples of 16 bytes are copied, and operands that are not along
    K."""
    rng = np.random.default_rng(7)
    for m, n, columns in ((5, 33, False), (131, 1, False), (33, 125, True)):
        a, b = operands(rng, m, n, 272)
        scale_a, scale_b = scale(rng, kinds[0], m, 272), scale(rng, kinds[1], n, 272)
        bias, wide = np.arange(n, dtype=np.float32), np.full((m, n + 3), 7, ml_dtypes.bfloat16)
        exact = (expected(a, b, scale_a, scale_b) + bias).astype(ml_dtypes.bfloat16)
        if columns:
            a, b = np.asfortranarray(a), np.ascontiguousarray(b)
        with sim.options(arch=arch):
            found = scaled_matmul(a, b, scale_a, scale_b.T, bias)
            scaled_matmul(a, b, scale_a, scale_b.T, bias, out=wide[:, :n])
        np.testing.assert_array_equal(found, exact)
        np.testing.assert_array_equal(wide[:, :n], exact)
        assert (wide[:, n:].astype(float) == 7).all()


def test_amax_is_the_largest_result_before_its_scale() -> None:
    """Of the elements inside the matrix alone: what lies beyond has the sigmoid's 0.5."""
    rng = np.random.default_rng(4)
    a, b = operands(rng, 72, 80, 144)
    scale_a, scale_b = scale(rng, "line", 72, 144) / 1024, scale(rng, "line", 80, 144)
    exact = expected(a, b, scale_a, scale_b)
    for kernel in (None, "tensorop_e4m3"):
        amax = np.zeros((), np.float32)
        result = np.full(1, 2, np.float32)
        scaled_matmul(a, b, scale_a, scale_b.T, amax=amax, out_dtype=E4M3, scale_result=result, kernel=kernel)
        assert amax == np.abs(exact).max()
    low = np.full(80, -30, np.float32)
    for start, wanted in ((0, None), (7, 7)):
        amax = np.full(1, start, np.float32)
        result = scaled_matmul(
            a, b, scale_a, scale_b.T, low, amax=amax, activation="sigmoid", out_dtype=Float32, kernel=kernel
        )
        assert amax[0] == (result.max() if wanted is None else wanted)
    scale_a[5] = np.nan
    scaled_matmul(a, b, scale_a, scale_b.T, amax=amax)
    assert np.isnan(amax[0])


def test_a_bias_is_added_before_the_result_is_scaled() -> None:
    a, b = np.ones((16, 128), E4M3), np.ones((16, 128), E4M3).T
    one, bias = np.ones((), np.float32), np.full(16, -64, np.float32)
    scale = np.full(1, 0.25, np.float32)
    result = scaled_matmul(a, b, one, one, bias, out_dtype=E4M3, scale_result=scale)
    np.testing.assert_array_equal(result.astype(np.float64), 16)


def test_sums_are_promoted_where_fast_accumulation_is_not_asked_for() -> None:
    """A large product, then many small ones: the tensor cores drop these, float32 sums of each 128 elements do not."""
    k = 1024
    a, b = np.zeros((64, k), E4M3), np.zeros((64, k), E4M3)
    a[0], b[0] = 1, 1 / 64
    a[0, 0], b[0, 0] = 448, 448
    one = np.ones((), np.float32)
    exact = 448.0 * 448 + (k - 1) / 64
    slow = scaled_matmul(a, b.T, one, one, out_dtype=Float32)[0, 0]
    mma = scaled_matmul(a, b.T, one, one, out_dtype=Float32, kernel="tensorop_e4m3")[0, 0]
    assert abs(slow - exact) < 2.5 and abs(mma - exact) < 2.5  # the first 127 may be lost


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale_a": np.ones((64, 2, 1), np.float32)}, r"scale_a has the shape \(64, 2, 1\); for operands \(64, 25"),
        ({"scale_a": np.ones((63, 1), np.float32)}, r"it is one number, \(64, 1\), or \(64, 2\) or \(1, 2\) for"),
        ({"scale_b": np.ones((32, 1), np.float32)}, r"it is one number, \(1, 32\), or \(2, 32\) or \(2, 1\) for"),
        ({"scale_a": 0.5}, "scale_a is builtins.float, not an array of PyTorch, NumPy, CuPy or JAX"),
        ({"scale_a": np.ones((64, 2), np.float32)}, "belong to both operands or to none"),
        ({"scale_a": np.ones((64, 1), np.float16)}, "scale_a must be float32, got Float16"),
        ({"scale_b": np.ones((1, 32))}, "scale_b must be float32, got Float64"),
        ({"bias": np.ones(31, np.float32)}, "bias must be a vector of 32 elements"),
        ({"a": np.ones((64, 256), np.float16), "b": np.ones((256, 32), np.float16)}, "a is Float16; scaled_matmul"),
        ({"a": np.ones((2, 64, 256), E4M3)}, "scaled_matmul multiplies two matrices"),
        ({"b": np.ones((256, 32), E4M3), "kernel": "hopper_e4m3"}, "along K only, and b is not contiguous along K"),
        ({"out_dtype": np.int32}, "writes floats of 16 or 32 bits, e4m3 or e5m2, not Int32"),
        ({"out": np.ones((64, 32), np.float64)}, "writes floats of 16 or 32 bits, e4m3 or e5m2, not Float64"),
        ({"saturate": False}, "saturate=False is for results of 8 bits, not for BFloat16"),
        ({"saturate": 0, "out_dtype": E4M3}, "saturate is True or False, not 0"),
        ({"scale_result": np.ones((), np.float32)}, "scale_result is for results of 8 bits, not for BFloat16"),
        ({"scale_result": np.ones(2, np.float32), "out_dtype": E4M3}, r"scale_result is one number, not of shape \(2,"),
        ({"scale_result": np.ones(1), "out_dtype": E4M3}, "scale_result must be float32, got Float64"),
        ({"amax": np.zeros(2, np.float32)}, r"amax is one number, not of shape \(2,"),
        ({"amax": np.zeros(1)}, "amax must be float32, got Float64"),
        ({"activation": "swish"}, "there is no activation 'swish'"),
        (
            {
                "kernel": "tensorop_e4m3",
                "scale_a": np.ones((64, 2), np.float32),
                "scale_b": np.ones((2, 1), np.float32),
            },
            "kernel tensorop_e4m3 cannot apply scales of blocks of 128 elements of K: hopper_e4m3_promoted, blackw",
        ),
    ],
)
def test_refusals(change: dict[str, Any], message: str) -> None:
    one = np.ones((), np.float32)
    usual = {"a": np.ones((64, 256), E4M3), "b": np.ones((32, 256), E4M3).T, "scale_a": one, "scale_b": one}
    with pytest.raises(ArgumentError, match=message):
        scaled_matmul(**{**usual, **change})


def test_nan_and_infinite_scales_pass() -> None:
    a, b = np.ones((16, 128), E4M3), np.ones((16, 128), E4M3).T
    rows = np.array([1, np.nan, np.inf, -np.inf] + [0] * 12, np.float32)
    result = scaled_matmul(a, b, rows, np.ones((), np.float32), out_dtype=Float32)[:, 0]
    np.testing.assert_array_equal(result, 128 * rows)


def torch_operands(torch: Any, device: str, m: int, n: int, k: int, kind: Any, seed: int) -> tuple[Any, ...]:
    """Operands and scales of a drawn product on ``device``, and the exact result."""
    rng = np.random.default_rng(seed)
    a, b = operands(rng, m, n, k)
    scale_a, scale_b = scale(rng, kind[0], m, k), scale(rng, kind[1], n, k)
    bits = [torch.from_numpy(np.ascontiguousarray(x).view(np.uint8)).to(device) for x in (a, b.T)]
    left, right = (x.view(torch.float8_e4m3fn) for x in bits)
    first, second = (torch.from_numpy(x).to(device) for x in (scale_a, scale_b))
    return left, right.T, first, second.T, expected(a, b, scale_a, scale_b)


PAIRS = [("all", "all"), ("line", "line"), ("all", "line"), (1, 128), (1, 1), (128, 1)]


@pytest.mark.unchecked
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("kind", PAIRS, ids=str)
def test_repeated_launch_uses_the_new_scales(kind: Any, device: str) -> None:
    """The same geometry with other numbers: the launch is made once and repeated."""
    torch = pytest.importorskip("torch")
    for seed in range(3 if device == "cuda" else 2):
        *given, exact = torch_operands(torch, device, 136, 136, 144, kind, seed)  # two blocks each way
        result = scaled_matmul(*given, out_dtype=torch.float32)
        np.testing.assert_array_equal(result.cpu().numpy(), exact)
        # As cuBLASLt wants scales of blocks: those of A column by column.
        strided = given[2].T.contiguous().T
        again = scaled_matmul(given[0], given[1], strided, given[3], out_dtype=torch.float32)
        np.testing.assert_array_equal(again.cpu().numpy(), exact)


def test_scales_at_strides() -> None:
    torch = pytest.importorskip("torch")
    a, b, scale_a, scale_b, exact = torch_operands(torch, "cpu", 72, 40, 144, ("line", "line"), 5)
    wide = torch.full((72, 3), 7.0)
    wide[:, 1:2] = scale_a
    for _ in range(2):
        result = scaled_matmul(a, b, wide[:, 1:2], scale_b, out_dtype=torch.float32)
        np.testing.assert_array_equal(result.numpy(), exact)
        wide *= 2
        exact = 2 * exact


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_the_operator_of_pytorch(device: str) -> None:
    torch = pytest.importorskip("torch")
    *given, exact = torch_operands(torch, device, 40, 48, 256, (1, 128), 3)
    import tilewright.gemm.operators.torch_scaled  # noqa: F401  registers the operator

    operators = torch.ops.tilewright
    torch.library.opcheck(operators.scaled_matmul, tuple(given), test_utils="test_faketensor")
    assert not operators.scaled_matmul.default._schema.is_mutable
    amax = torch.zeros(1, device=device)
    torch.library.opcheck(operators.scaled_matmul_amax, (amax, *given), test_utils="test_faketensor")
    torch.compile(lambda *x: scaled_matmul(*x, amax=amax), backend="eager", fullgraph=True)(*given)
    assert amax.item() == np.abs(exact).max()
    compiled = torch.compile(lambda *x: scaled_matmul(*x, out_dtype=torch.float32) + 1, backend="eager", fullgraph=True)
    np.testing.assert_array_equal(compiled(*given).cpu().numpy(), exact + 1)
    out = torch.zeros(exact.shape, device=device)  # more bits than the default result has
    torch.compile(lambda *x: scaled_matmul(*x, out=out), backend="eager", fullgraph=True)(*given)
    np.testing.assert_array_equal(out.cpu().numpy(), exact)
    with pytest.raises(ArgumentError, match="scaled_matmul has no gradient"):
        scaled_matmul(given[0], given[1], given[2].requires_grad_(), given[3])


@pytest.mark.gpu
@pytest.mark.parametrize("kind", PAIRS, ids=str)
@pytest.mark.parametrize("shape", [(1, 16, 16), (64, 2112, 7168), (1000, 1096, 2064), (4096, 512, 640)], ids=str)
def test_scaled_matmul_on_a_gpu(shape: Any, kind: Any) -> None:
    """Exact: sums of small integers, scaled by powers of two that are close to each other."""
    import torch

    m, n, k = shape
    *given, exact = torch_operands(torch, "cuda", m, n, k, kind, 1)
    for fast in (False, True):
        out = torch.full((m, n), float("nan"), device="cuda")
        scaled_matmul(*given, out=out, use_fast_accum=fast)
        np.testing.assert_allclose(
            out.cpu().numpy(), exact, rtol=1e-3 if fast else 1e-5, atol=k / 100 if fast else 1e-2
        )


@pytest.mark.parametrize("shapes", [((2, 16, 32), (32, 16)), ((16, 32), (2, 32, 16)), ((16, 32), (16, 16))])
def test_a_compiled_call_refuses_what_an_eager_one_does(shapes: Any) -> None:
    torch = pytest.importorskip("torch")
    from tilewright.gemm.operators import torch_scaled

    with torch._subclasses.FakeTensorMode():
        a, b = (torch.empty(shape, dtype=torch.float8_e4m3fn) for shape in shapes)
        with pytest.raises(ArgumentError, match="scaled_matmul multiplies two matrices"):
            torch_scaled.operation(a, b, torch.empty(()), torch.empty(()))


def moved(x: Any, by: int) -> Any:
    """A contiguous copy that begins ``by`` elements after the beginning of its memory."""
    torch = pytest.importorskip("torch")
    memory = torch.zeros((x.numel() + by) * x.element_size(), dtype=torch.uint8).view(x.dtype)
    found = memory[by:].view(x.shape)
    found.copy_(x)
    return found


@pytest.mark.parametrize("columns", [1, 128])
@pytest.mark.parametrize("where", ["a", "b", "out", "rows of a"])
def test_scales_of_blocks_at_odd_addresses(where: str, columns: int) -> None:
    """What TMA cannot access is copied, also where the only kernel that there is reads by TMA."""
    torch = pytest.importorskip("torch")
    rng, (m, n, k) = np.random.default_rng(0), (40, 64, 272)
    left, right = (rng.integers(-2, 3, shape).astype(np.float32) for shape in ((m, k), (n, k)))
    scale_a = np.exp2(rng.integers(-3, 4, (m, 3))).astype(np.float32)
    scale_b = np.exp2(rng.integers(-3, 4, (-(-n // columns), 3))).astype(np.float32)
    deep = np.arange(k) // 128
    exact = (left * scale_a[:, deep]) @ (right * scale_b[np.arange(n) // columns][:, deep]).T
    a, b = (torch.from_numpy(x).to(torch.float8_e4m3fn) for x in (left, right))
    out = torch.full((m, n), float("nan"))
    if where == "rows of a":
        wide = torch.zeros(m * (k + 5), dtype=torch.uint8).view(a.dtype).view(m, k + 5)
        wide[:, :k] = a
        a = wide[:, :k]
    a, b, out = (moved(x, 1) if where == name else x for name, x in (("a", a), ("b", b), ("out", out)))
    for _ in range(2):
        out.fill_(float("nan"))
        scaled_matmul(a, b.T, torch.from_numpy(scale_a), torch.from_numpy(scale_b).T, out=out)
        np.testing.assert_array_equal(out.numpy(), exact)


def test_nothing_is_read_beyond_the_scales() -> None:
    """Rows of 59 columns, which a copy for TMA would make 64: for these the scales have no numbers, and amax none."""
    a, b = np.ones((64, 16384), E4M3), np.ones((59, 16384), E4M3)
    scales, amax = np.full(64, np.nan, np.float32), np.zeros(1, np.float32)
    scales[:59] = 1
    with sim.options(sizes="gpu"):
        for of_columns in (scales[None, :59], np.ones((), np.float32)):
            found = scaled_matmul(a, b.T, np.ones((64, 1), np.float32), of_columns, use_fast_accum=True, amax=amax)
            assert (found == 16384).all() and amax[0] == 16384


def test_results_of_8_bits_in_columns_of_few() -> None:
    """A tile of 8 columns is 8 bytes of such a result, which TMA does not store: another size does."""
    rng, (m, n, k) = np.random.default_rng(0), (23, 74, 364)
    a, b = rng.integers(-2, 3, (m, k)).astype(np.int8), rng.integers(-2, 3, (n, k)).astype(np.int8)
    out, one = np.zeros((n, 128), ml_dtypes.float8_e5m2).T[:m], np.full((), 2.0**-6, np.float32)
    with sim.options(sizes="gpu"):
        scaled_matmul(a, b.T, one, one, out=out)
    exact = (a.astype(np.float64) @ b.T.astype(np.float64) * 2.0**-12).astype(np.float32)
    np.testing.assert_array_equal(out.astype(np.float32), exact.astype(out.dtype).astype(np.float32))
    wide = np.zeros((m, 3), np.float32), np.zeros((3, n), np.float32)
    eight = (x.astype(E4M3) for x in (a, b))
    with pytest.raises(ArgumentError, match=r"but for a result \(23, 74\) whose rows are no multiple of 16 bytes"):
        scaled_matmul(next(eight), next(eight).T, *wide, amax=np.zeros(1, np.float32))


@pytest.mark.parametrize("scales", ["one", "lines", "blocks"])
@pytest.mark.parametrize("types", [("e4m3fn", "e4m3fn"), ("e4m3fn", "e5m2"), ("e5m2", "e4m3fn")], ids="-".join)
def test_without_k_the_sums_are_zero(types: tuple[str, str], scales: str) -> None:
    a, b = (np.zeros((rows, 0), getattr(ml_dtypes, f"float8_{x}")) for x, rows in zip(types, (5, 17), strict=True))
    shapes = {"one": ((), ()), "lines": ((5, 1), (1, 17)), "blocks": ((5, 0), (0, 1))}[scales]
    result = scaled_matmul(a, b.T, *(np.ones(x, np.float32) for x in shapes), np.arange(17, dtype=np.float32))
    np.testing.assert_array_equal(result.astype(float), np.tile(np.arange(17.0), (5, 1)))
