"""Rows of 8-bit floats with scales times weights of 4 and 8 bits: exact for small integers, all numbers, refusals."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright import Float16, Float32, cute, sim
from tilewright.errors import ArgumentError
from tilewright.gemm import Major, Operand, mixed_matmul, prepare_weight
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.epilogue.functions import Chain
from tilewright.gemm.kernel.mixed_small_m import MixedSmallMGemm
from tilewright.gemm.operators.mixed import few_rows_config, prepared_operand

F16, F32, BF16 = np.float16, np.float32, ml_dtypes.bfloat16
E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def drawn(seed: int, shape: tuple[int, int, int], group: int, kind: str, scale_dtype: Any) -> tuple[Any, Any, Any]:
    """Small integers as rows, a prepared weight with powers of two as scales, and the exact product."""
    (m, n, k), rng = shape, np.random.default_rng(seed)
    a, scales = rng.integers(-3, 4, (m, k)), np.exp2(rng.integers(-2, 3, (n, k // group)))
    zeros, bits = None, 8 if kind == "int8" else 4
    if kind == "e4m3":
        weight: Any = rng.integers(-15, 16, (n, k)).astype(E4M3)
        numbers = weight.astype(np.float64)
    else:
        least = 0 if kind == "zeros" else -(1 << bits - 1)
        weight = rng.integers(least, least + (1 << bits), (n, k)).astype(np.int8)
        numbers = weight.astype(np.float64)
    if kind == "zeros":
        zeros = rng.integers(0, 16, scales.shape).astype(np.uint8)
        numbers = numbers - np.repeat(zeros.astype(np.float64), group, 1)
    prepared = prepare_weight(weight, scales.astype(scale_dtype), zeros, bits=bits)
    return a, prepared, a.astype(np.float64) @ (numbers * np.repeat(scales, group, 1)).T


@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from([1, 7, 16, 17, 40, 65, 70]),
    st.integers(1, 12),
    st.integers(1, 5),
    st.sampled_from([32, 64, 128]),
    st.sampled_from(["int4", "zeros", "int8", "e4m3"]),
    st.sampled_from([F16, BF16, F32]),
    st.sampled_from([E4M3, E5M2]),
    st.sampled_from(["", "sm_80"]),
    st.sampled_from(["none", "number", "rows", "column"]),
    st.integers(0, 99),
)
def test_exact_for_any_extents(
    m: int, n: int, k: int, group: int, kind: str, scale_dtype: Any, dtype: Any, arch: str, scaled: str, seed: int
) -> None:
    """By mma.sync, wgmma and the weight written out; the scale comes before the bias and the activation."""
    a, prepared, exact = drawn(seed, (m, 8 * n, 128 * k), group, kind, scale_dtype)
    rng = np.random.default_rng(seed)
    shape = {"none": None, "number": (), "rows": (m,), "column": (m, 1)}[scaled]
    scale_a = None if shape is None else np.asarray(np.exp2(rng.integers(-2, 3, shape)), F32)
    bias = rng.integers(-9, 10, 8 * n).astype(F32)
    factor = 1.0 if scale_a is None else scale_a.reshape(-1, 1).astype(np.float64)
    with sim.options(arch=arch):
        found = mixed_matmul(a.astype(dtype), prepared, bias, scale_a=scale_a, activation="relu", out_dtype=Float32)
    np.testing.assert_array_equal(found, np.maximum(exact * factor + bias, 0))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("m", [3, 70])
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_all_numbers(name: str, m: int, device: str) -> None:
    """Each number of the type by a weight of one 1 in each row: as it is, also NaN and infinity."""
    torch = pytest.importorskip("torch")
    values = torch.arange(256, dtype=torch.uint8).view(getattr(torch, name))
    a = torch.zeros(m, 256, dtype=torch.uint8).view(values.dtype)
    for row in range(m):  # one number a row: others would meet a NaN
        a.view(torch.uint8)[row, row * 37 % 256] = row * 83 % 256
    weight = torch.eye(256, dtype=torch.int8, device=device)
    prepared = prepare_weight(weight, torch.ones(256, 2, device=device, dtype=torch.bfloat16))
    found = mixed_matmul(a.to(device), prepared, out_dtype=torch.float32).cpu()
    exact = a.float() @ torch.eye(256)
    for row in range(m):
        torch.testing.assert_close(found[row], exact[row], rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("m", [4, 70])
def test_tensors_of_pytorch(m: int, device: str) -> None:
    """Stacks of rows at odd addresses, the default type of results, and the operator under torch.compile."""
    torch = pytest.importorskip("torch")
    a, of_numpy, exact = drawn(3, (2 * m, 48, 256), 128, "int4", F16)
    prepared = type(of_numpy)(*(None if x is None else torch.from_numpy(x).to(device) for x in vars(of_numpy).values()))
    memory = torch.zeros(a.size + 3, dtype=torch.uint8, device=device).view(torch.float8_e4m3fn)
    rows = memory[3:].view(2, m, 256)
    rows.copy_(torch.from_numpy(a).float().view(2, m, 256))
    scale = torch.full((2, m, 1), 0.5, device=device)
    found = mixed_matmul(rows, prepared, scale_a=scale)
    assert found.dtype is torch.bfloat16
    torch.testing.assert_close(found.cpu(), torch.from_numpy(exact / 2).view(2, m, 48).bfloat16(), rtol=0, atol=0)
    import tilewright.gemm.operators.torch_mixed  # noqa: F401  registers the operator

    given = rows, prepared.words, prepared.scales, None, None, None, None, scale
    torch.library.opcheck(torch.ops.tilewright.mixed_matmul, given, test_utils="test_faketensor")
    compiled = torch.compile(lambda x: mixed_matmul(x, prepared, scale_a=scale) + 1, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(rows), found + 1, rtol=0, atol=0)


def test_normal_numbers_are_rounded_as_stated() -> None:
    """Few rows: once. Many: the numbers times their scales, to the type of the scales."""
    rng = np.random.default_rng(0)
    weight, scales = rng.integers(-8, 8, (64, 512)).astype(np.int8), rng.uniform(0.5, 1, (64, 4)).astype(F32)
    for m, scale_dtype, bound in ((16, F32, 1e-6), (80, F32, 2.0**-8), (80, F16, 2.0**-11)):
        a, of_weight = rng.standard_normal((m, 512)).astype(E4M3), scales.astype(scale_dtype)
        exact = a.astype(np.float64) @ (weight * np.repeat(of_weight.astype(np.float64), 128, 1)).T
        result = mixed_matmul(a, prepare_weight(weight, of_weight), out_dtype=Float32)
        assert np.linalg.norm(result - exact) / np.linalg.norm(exact) < bound


def test_scales_beyond_float16() -> None:
    """Of many rows, too: they and the rows become BFloat16."""
    a, weight = np.ones((70, 128), E4M3), np.full((16, 128), 4, np.int8)
    found = mixed_matmul(a, prepare_weight(weight, np.full((16, 1), 2.0**20, F32)), out_dtype=Float32)
    assert (found == 2.0**29).all()


@pytest.mark.parametrize("rows", [2, 70])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale_a": np.ones(3, F32)}, r"scale_a is one number, or of shape \(\d+,\) or \(\d+, 1\), not \(3,\)"),
        ({"scale_a": np.ones(1, F16)}, "scale_a is float32 on cpu, not Float16"),
        ({"scale_a": 1.0}, "scale_a is builtins.float, not an array"),
        ({"out_dtype": E4M3}, "writes floats of 16 or 32 bits, not Float8E4M3FN"),
        ({"a": np.ones((2, 256), np.int8)}, "a is Int8; mixed_matmul multiplies Float16, BFloat16, Float8E4M3FN, "),
    ],
)
def test_refusals(change: dict[str, Any], message: str, rows: int) -> None:
    usual = {
        "a": np.ones((rows, 256), E4M3),
        "weight": prepare_weight(np.ones((16, 256), np.int8), np.ones((16, 2), F16)),
    }
    with pytest.raises(ArgumentError, match=message):
        mixed_matmul(**{**usual, **change})
    scale = np.ones((rows, 16), F32)
    with pytest.raises(ArgumentError, match="out overlaps scale_a"):
        mixed_matmul(**usual, scale_a=scale[:, :1], out=scale)


@pytest.mark.parametrize(("rows", "arch"), [(8, "sm_90a"), (16, "sm_80"), (32, "sm_80"), (64, "sm_90a")])
def test_few_rows_compile_without_spills(rows: int, arch: str) -> None:
    cuda = pytest.importorskip("tilewright.cuda")
    from tilewright import Float8E4M3FN

    prepared = prepare_weight(np.ones((16, 256), np.int8), np.ones((16, 2), F16))
    a, c = Operand(Float8E4M3FN, Major.K, 64), Operand(Float16, Major.K, 16)
    x, d = Matrix.of("a", np.zeros((16, 256), E4M3)), Matrix.of("d", np.zeros((16, 16), F16))
    config = few_rows_config(rows, a, c, prepared, 132)
    operands = x.tensor(a), prepared_operand(prepared), d.tensor(c), d.tensor(c), Chain(())
    kernel = cute.compile(MixedSmallMGemm(config), *operands).kernels[0]
    found = cuda.compile(kernel, arch)
    assert found.spills <= (64 if rows in (16, 32) else 0)
    assert ("cvt.rn.f16x2.e4m3x2" in found.ptx) == (arch == "sm_90a")
