"""Many rows by a prepared weight on sm_90: numbers converted in registers, exact in all types and sizes; 4-bit floats
on all paths; what the kernel does not take; its programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright import BFloat16, Float4E2M1FN, Float8E4M3FN, Float16, Float32, Int4, Int8, sim
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.gemm import Major, gemm, mixed_matmul, prepare_weight
from tilewright.gemm.choice.registry import mixed_entry
from tilewright.gemm.family.compile import cross_compile
from tilewright.gemm.operators.mixed import MixedProduct
from tilewright.gemm.operators.mixed_hopper import entry_of, sized
from tilewright.gemm.operators.repeated_call import CALLS
from tilewright.ir.target import architecture

F16, BF16, F32, E4M3 = np.float16, ml_dtypes.bfloat16, np.float32, ml_dtypes.float8_e4m3fn
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def drawn(kind: str, shape: tuple[int, int, int], group: int, dtype: Any) -> tuple[Any, dict[str, Any], np.ndarray]:
    """Small integers, the arguments of ``prepare_weight`` with powers of two as scales, and the exact product."""
    (m, n, k), rng = shape, np.random.default_rng(0)
    a, scales = rng.integers(-2, 3, (m, k)).astype(dtype), np.exp2(rng.integers(-2, 3, (n, k // group)))
    given: dict[str, Any] = {"scales": scales.astype(F32)}
    if kind == "e2m1":
        codes = rng.integers(0, 16, (n, k))
        given["weight"], values = (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8), E2M1[codes]
    elif kind == "e4m3":
        values = rng.integers(-15, 16, (n, k)).astype(ml_dtypes.float8_e4m3fn)
        given["weight"] = values
    else:
        bits = 8 if kind == "int8" else 4
        values = rng.integers(-(1 << bits - 1), 1 << bits - 1, (n, k)).astype(np.int8)
        given |= {"weight": values, "bits": bits}
        if kind == "zeros":
            given["weight"], given["zeros"] = values + 8, rng.integers(0, 16, scales.shape).astype(np.uint8)
            values = given["weight"] - np.repeat(given["zeros"].astype(np.int64), group, 1)
    return a, given, a.astype(np.float64) @ (values.astype(np.float64) * np.repeat(scales, group, 1)).T


def on(device: str, given: dict[str, Any], scale_dtype: str) -> dict[str, Any]:
    """The arguments as tensors of PyTorch."""
    torch = pytest.importorskip("torch")

    def moved(x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return x
        if x.dtype == ml_dtypes.float8_e4m3fn:
            return torch.from_numpy(x.view(np.uint8)).to(device).view(torch.float8_e4m3fn)
        return torch.from_numpy(x).to(device)

    found = {name: moved(x) for name, x in given.items()}
    return found | {"scales": found["scales"].to(getattr(torch, scale_dtype))}


CASES = [
    ("int4", "bfloat16", "bfloat16", 128, (128, 128, 1, 1)),
    ("int4", "float16", "float32", 32, (128, 64, 1, 2)),
    ("int4", "float16", "float16", 64, (256, 128, 2, 1)),
    ("zeros", "bfloat16", "bfloat16", 32, (64, 128, 1, 1)),
    ("zeros", "float16", "float16", 128, (256, 64, 1, 1)),
    ("int8", "bfloat16", "bfloat16", 64, (128, 64, 1, 1)),
    ("int8", "float16", "float16", 128, (256, 96, 1, 1)),
    ("int8", "bfloat16", "float32", 128, (192, 128, 1, 1)),
    ("zeros", "bfloat16", "bfloat16", 32, (192, 64, 1, 2)),
    ("e4m3", "bfloat16", "bfloat16", 128, (64, 64, 2, 1)),
    ("e4m3", "float16", "float16", 32, (128, 128, 1, 1)),
    ("e2m1", "bfloat16", "bfloat16", 32, (128, 96, 1, 1)),
    ("e2m1", "float16", "float32", 128, (256, 128, 1, 1)),
    ("int4", "float8_e4m3fn", "float16", 128, (128, 192, 1, 1)),
    ("int4", "float8_e5m2", "bfloat16", 32, (64, 64, 1, 2)),
    ("zeros", "float8_e4m3fn", "float32", 64, (192, 80, 1, 1)),
    ("e4m3", "float8_e5m2", "float32", 128, (128, 64, 2, 1)),
    ("e4m3", "float8_e4m3fn", "bfloat16", 32, (128, 128, 1, 1)),
    ("e2m1", "float8_e4m3fn", "bfloat16", 64, (128, 96, 1, 1)),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("kind", "name", "scale_dtype", "group", "size"), CASES, ids=str)
def test_exact_in_all_types(
    kind: str, name: str, scale_dtype: str, group: int, size: tuple[int, ...], device: str
) -> None:
    """Ragged rows and columns, several k tiles: more of them than stages, of which there are two on the CPU, where two
    blocks have several tiles each, and all checks are made."""
    torch = pytest.importorskip("torch")
    m, n, k = (70, 208, 384) if device == "cpu" else (1000, 2064, 2048)
    a, given, exact = drawn(kind, (m, n, k), group, np.float32)
    prepared = prepare_weight(**on(device, given, scale_dtype))
    out = torch.full((m, n), float("nan"), device=device)
    call = MixedProduct.of(torch.from_numpy(a).to(device, getattr(torch, name)), prepared, None, out, None)
    entry = entry_of(prepared, call.problem.A.dtype, Float32)
    found = [one for one in entry.sizes if (*one.tile[:2], one.cluster[0], one.cluster_k) == size]
    with sim.options(check="all", sms=2):
        assert call.by_wgmma(entry.only(replace(found[0], stages=2) if device == "cpu" else found[0]))
    np.testing.assert_array_equal(out.cpu().numpy(), exact)


@pytest.mark.parametrize("device", DEVICES)
def test_zero_points_of_columns_that_are_no_multiple_of_16(device: str) -> None:
    """One group: TMA reads one row of 136 bytes, whose length no stride has to keep."""
    torch = pytest.importorskip("torch")
    a, given, exact = drawn("zeros", (24, 136, 128), 128, np.float32)
    prepared = prepare_weight(**on(device, given, "bfloat16"))
    call = MixedProduct.of(
        torch.from_numpy(a).to(device, torch.bfloat16), prepared, None, out := torch.zeros(24, 136, device=device), None
    )
    assert call.by_wgmma()
    np.testing.assert_array_equal(out.cpu().numpy(), exact)


@pytest.mark.parametrize("device", DEVICES)
def test_one_launch_serves_other_weights(device: str) -> None:
    """With a bias and an activation, in rows that are part of a larger matrix; blocks may share tiles there."""
    torch = pytest.importorskip("torch")
    CALLS.clear()
    for i in range(7 if device == "cuda" else 3):
        a, given, exact = drawn("zeros", (66, 128, 256), 128, np.float32)
        parts = on(device, given, "bfloat16")
        parts["scales"] = parts["scales"] * 2.0**i
        bias = torch.arange(128, device=device).bfloat16() - i
        out = torch.full((66, 192), float("nan"), device=device)
        mixed_matmul(
            torch.from_numpy(a).to(device).bfloat16(),
            prepare_weight(**parts),
            bias,
            out=out[:, :128],
            activation="relu",
        )
        wanted = np.maximum(exact * 2.0**i + bias.float().cpu().numpy(), 0)
        np.testing.assert_array_equal(out[:, :128].cpu().numpy(), wanted)
        assert out[:, 128:].isnan().all()
    assert len(CALLS) == 1


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("m", [3, 70])
def test_all_floats_of_4_bits(m: int, device: str) -> None:
    """One of each in a row of the weight; rows of A pick one. Also on a GPU without wgmma, and as PyTorch has them."""
    torch = pytest.importorskip("torch")
    codes = np.stack([np.roll(np.arange(128) % 16, i) for i in range(16)])
    pairs = torch.from_numpy((codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)).to(device)
    a = np.zeros((m, 128))
    a[np.arange(m), np.arange(m) * 37 % 128] = -2
    exact = a @ E2M1[codes].T * 2.0**-9
    for dtype in (torch.float16, torch.bfloat16):
        given, scales = torch.from_numpy(a).to(device, dtype), torch.full((16, 1), 2.0**-9, device=device)
        prepared = prepare_weight(pairs.view(torch.float4_e2m1fn_x2), scales.to(dtype))
        assert prepared.dtype is Float4E2M1FN
        np.testing.assert_array_equal(mixed_matmul(given, prepared, out_dtype=torch.float32).cpu().numpy(), exact)
        if m == 3 and dtype is torch.float16:
            compiled = torch.compile(lambda x, w=prepared: mixed_matmul(x, w, out_dtype=torch.float32), backend="eager")
            np.testing.assert_array_equal(compiled(given).cpu().numpy(), exact)
        if m > 3 and device == "cpu":
            with sim.options(arch="sm_80"):
                result = mixed_matmul(given, prepare_weight(pairs, scales), out_dtype=torch.float32)
                np.testing.assert_array_equal(result.numpy(), exact)


def test_scales_that_rows_do_not_hold() -> None:
    """Scales of Float32 that are no Float16: their products with the numbers are what is rounded."""
    weight, a = np.full((16, 128), 8, np.int8), np.ones((70, 128), F16)
    weight[:, ::2] = -8
    a[:, ::2] = 2
    for scale, bits in ((2.0**14, 8), (2.0**-27, 8), (2.0**12, 4)):
        numbers = weight if bits == 8 else weight.clip(-8, 7)
        exact = a.astype(np.float64) @ (numbers * scale).T
        result = mixed_matmul(a, prepare_weight(numbers, np.full((16, 1), scale, F32), bits=bits), out_dtype=Float32)
        np.testing.assert_array_equal(result, np.where(np.abs(numbers * scale).max() > 65504, np.nan, exact))


def test_what_the_kernel_does_not_take() -> None:
    """Zero points whose rows TMA cannot read, GPUs without wgmma: the weight is written out. A dense B is refused."""
    for kind, n in (("zeros", 40), ("int4", 40)):
        a, given, exact = drawn(kind, (66, n, 256), 128, F16)
        prepared, out = prepare_weight(**given), np.empty((66, n), F32)
        assert MixedProduct.of(a, prepared, None, out, None).by_wgmma() == (kind == "int4")
        with sim.options(arch="sm_80"):
            assert not MixedProduct.of(a, prepared, None, out, None).by_wgmma()
            np.testing.assert_array_equal(mixed_matmul(a, prepared, out_dtype=Float32), exact)
    with pytest.raises(ArgumentError, match="kernel hopper_int4_float16 takes Float16 operands; supported: Int4"):
        gemm(np.ones((8, 128), F16), np.ones((128, 8), F16), kernel=mixed_entry(Int4, Float16))


def test_bad_input() -> None:
    a, given, _ = drawn("zeros", (66, 16, 256), 128, F16)
    prepared = prepare_weight(**given)
    assert prepared.zeros is not None
    for zeros in (prepared.zeros.astype(np.int32), prepared.zeros[:1], np.ones((2, 32), np.uint8)[:, ::2]):
        with pytest.raises(ArgumentError, match="zero points of a prepared weight are"):
            mixed_matmul(a, replace(prepared, zeros=zeros))
    with pytest.raises(ArgumentError, match="scales of a prepared weight are Float16, BFloat16 or Float32"):
        mixed_matmul(a, replace(prepared, scales=prepared.scales.astype(np.int32)))
    pairs, scales = np.zeros((16, 128), np.uint8), np.ones((16, 2), F16)
    for more, message in (
        ({"bits": 8}, "bits is 4, or 8 without zeros, not 8 of pairs of 4-bit floats"),
        (
            {"weight": np.zeros((16, 256), E4M3), "zeros": np.zeros((16, 2), np.uint8)},
            "zeros are for integers of 4 bits",
        ),
        ({"scales": np.ones((16, 3), F16)}, r"for a weight \(16, 256\) it is"),
    ):
        with pytest.raises(ArgumentError, match=message):
            prepare_weight(**{"weight": pairs, "scales": scales} | more)
    with pytest.raises(ArgumentError, match=r"pairs of 4-bit floats \(float4_e2m1fn_x2, uint8\) of \(N, K / 2\)"):
        prepare_weight(np.zeros((16, 96), np.uint8), scales)


def test_sizes_that_the_kernel_does_not_have() -> None:
    config = mixed_entry(Int4, Float16).config
    config.check()
    for change, message in (
        ({"tile": (128, 128, 64)}, "a K tile of 128, not 64"),
        ({"scale_k": 16}, "a scale of Float16, BFloat16 or Float32 for 32, 64 or 128 elements, not Float16 for 16"),
        ({"transposed": False}, "a transposed product"),
        ({"cluster": (1, 2)}, "clusters along these"),
        ({"a": replace(config.a, dtype=Float16)}, "numbers of Int4, Int8, Float8E4M3FN, Float4E2M1FN, not Float16"),
        (
            {"b": replace(config.b, dtype=Float32)},
            "rows of Float16 or BFloat16 or, of numbers of Int4, .*; not Float32",
        ),
        ({"promote": 1}, "for 8-bit rows alone, of 64 rows a warpgroup; not promote=1 for Float16"),
        ({"tile": (96, 128, 128)}, "a multiple of 64 rows a consumer"),
    ):
        with pytest.raises(ConstraintError, match=message):
            replace(config, **change).check()
    narrow = mixed_entry(Int4, Float8E4M3FN).config
    narrow.check()
    for change, message in (
        ({"promote": 0}, "not promote=0 for Float8E4M3FN"),
        ({"tile": (256, 64, 128)}, "64 rows a warpgroup; not promote=1 for Float8E4M3FN and 128 rows"),
        ({"a": replace(narrow.a, dtype=Int8)}, "of numbers of Int4, Float8E4M3FN, Float4E2M1FN, of Float8E4M3FN or"),
    ):
        with pytest.raises(ConstraintError, match=message):
            replace(narrow, **change).check()


@pytest.mark.parametrize(
    ("kind", "shape", "size"),
    [
        (Int4, (16, 8192, 28672), (128, 16, 1, 2)),
        (Int4, (64, 11008, 4096), (192, 64, 1, 2)),
        (Int4, (256, 4096, 4096), (64, 128, 2, 1)),
        (Int4, (256, 11008, 4096), (192, 128, 1, 1)),
        (Int8, (256, 4096, 4096), (64, 128, 2, 1)),
        (Int8, (256, 11008, 4096), (192, 128, 1, 1)),
        (Float8E4M3FN, (256, 4096, 4096), (64, 128, 2, 1)),
    ],
    ids=str,
)
def test_the_model_takes_what_was_fastest(kind: Any, shape: tuple[int, int, int], size: tuple[int, ...]) -> None:
    """Of the sizes that were timed on an H200 (bench/notes): how long the conversion of a k tile takes decides."""
    chosen, shares = sized(mixed_entry(kind, BFloat16), (*shape, 1), (132, architecture("sm_90a").smem), False)
    config = chosen.config
    assert (*config.tile[:2], config.cluster[0], config.cluster_k) == size and shares is None


@pytest.mark.parametrize(
    ("kind", "zeros", "scale_k", "size"),
    [
        (Int4, False, 128, (128, 128)),
        (Int4, True, 32, (256, 128)),
        (Int8, False, 32, (128, 192)),
        (Int8, False, 32, (192, 128)),
        (Float8E4M3FN, False, 128, (256, 128)),
        (Float4E2M1FN, False, 128, (128, 256)),
    ],
    ids=str,
)
def test_programs_have_no_spills(kind: Any, zeros: bool, scale_k: int, size: tuple[int, int]) -> None:
    """And nothing that makes ptxas serialise wgmma; of a pair of 4-bit integers there are a lop3, a subtraction and a
    product, and for three pairs of four a shift."""
    pytest.importorskip("tilewright.cuda")
    entry = mixed_entry(kind, BFloat16, None, None, scale_k, zeros)
    config = next(one for one in entry.sizes if one.tile[:2] == size and one.cluster_size == 1)
    assert config.c.major is Major.MN
    artifact = cross_compile(config, "sm_90a")
    assert artifact.spills == 0 and not artifact.warnings
    groups, blocks = 2 * 8, config.part[0] // 64  # of the first stage of a tile, and of the others
    products = artifact.ptx.count(f"wgmma.mma_async.sync.aligned.m64n{size[1]}k16.f32.bf16.bf16")
    assert products == groups * blocks
    if (kind, zeros) == (Int4, False):
        pairs = 4 * groups * blocks
        assert artifact.sass.count("LOP3.LUT") < 1.5 * pairs and artifact.sass.count("0xf000f") <= 2
        assert (artifact.sass.count("HMUL2.BF16"), artifact.sass.count("HFMA2.BF16")) == (pairs, pairs)


@pytest.mark.parametrize(
    ("kind", "zeros", "scale_k", "columns"),
    [(Int4, False, 128, 192), (Int4, True, 64, 128), (Float8E4M3FN, False, 128, 192), (Float4E2M1FN, False, 32, 128)],
    ids=str,
)
def test_programs_of_8_bit_rows_are_not_serialised(kind: Any, zeros: bool, scale_k: int, columns: int) -> None:
    """The largest tiles: few words are spilled, outside of the loop over K; a multiply-add for each sum of a group."""
    pytest.importorskip("tilewright.cuda")
    entry = mixed_entry(kind, Float8E4M3FN, None, None, scale_k, zeros)
    config = next(one for one in entry.sizes if one.tile[:2] == (128, columns) and one.cluster_size == 1)
    assert max(one.tile[0] * one.tile[1] for one in entry.sizes) == 128 * columns
    artifact = cross_compile(config, "sm_90a")
    assert artifact.spills <= 64 and not artifact.warnings
    products = artifact.ptx.count(f"wgmma.mma_async.sync.aligned.m64n{columns}k32.f32.e4m3.e4m3")
    assert products == 2 * 4  # of the first stage, and the others
    assert artifact.ptx.count("fma.rn.f32") <= columns // 2 * (2 * 128 // scale_k + 1)
