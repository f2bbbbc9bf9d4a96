"""Products with a weight of 8-bit integers or floats: exact for every number and size, on both paths; refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright import BFloat16, Float16, Float32, cute
from tilewright.errors import ArgumentError
from tilewright.gemm import Major, Operand, mixed_matmul, prepare_weight
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.epilogue.functions import Chain
from tilewright.gemm.kernel.mixed_small_m import MixedSmallMGemm
from tilewright.gemm.mainloop.prepared_weight import prepared_layout
from tilewright.gemm.operators.mixed import MOST_ROWS, MixedProduct, few_rows_config, prepared_operand

F16, BF16 = np.float16, ml_dtypes.bfloat16
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def drawn(seed: int, m: int, n: int, k: int, group: int, dtype: Any) -> tuple[Any, Any, Any, np.ndarray]:
    """Small integers, a weight that has all numbers of 8 bits, scales that are powers of two, and the exact product."""
    rng = np.random.default_rng(seed)
    numbers = rng.permutation(np.resize(np.arange(-128, 128), n * k)).reshape(n, k)
    a, scales = rng.integers(-3, 4, (m, k)).astype(dtype), np.exp2(rng.integers(-2, 3, (n, k // group))).astype(dtype)
    exact = a.astype(np.float64) @ (numbers * np.repeat(scales.astype(np.float64), group, 1)).T
    return a, numbers.astype(np.int8), scales, exact


@settings(max_examples=6, deadline=None)
@given(
    st.integers(1, 70),
    st.integers(1, 12),
    st.integers(1, 13),
    st.sampled_from([32, 64, 128]),
    st.sampled_from([F16, BF16]),
    st.integers(0, 99),
)
def test_exact_for_any_extents(m: int, n: int, k: int, group: int, dtype: Any, seed: int) -> None:
    a, weight, scales, exact = drawn(seed, m, 8 * n, 128 * k, group, dtype)
    result = mixed_matmul(a, prepare_weight(weight, scales, bits=8), out_dtype=Float32)
    np.testing.assert_array_equal(result, exact)


def few_rows_or_many(a: Any, prepared: Any, out: Any) -> None:
    """Up to 64 rows by the kernel for few rows, for which mixed_matmul takes another one on sm_90."""
    if len(a) <= MOST_ROWS:
        MixedProduct.of(a, prepared, None, out, None).few_rows()
    else:
        mixed_matmul(a, prepared, out=out)


@pytest.mark.unchecked
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(8, 136, 2176), (13, 1000, 512), (31, 6344, 256), (63, 6344, 256), (65, 520, 256)])
def test_tensors_of_pytorch(shape: tuple[int, int, int], name: str, device: str) -> None:
    """Also of a weight whose columns are contiguous."""
    torch = pytest.importorskip("torch")
    m, n, k = shape
    a, weight, scales, exact = drawn(1, m, n, k, 128, np.float32)
    numbers = torch.from_numpy(np.asfortranarray(weight)).to(device)
    prepared = prepare_weight(numbers, torch.from_numpy(scales).to(device), bits=8)
    given = torch.from_numpy(a).to(device, getattr(torch, name))
    out = torch.full((m, n), float("nan"), device=device)
    few_rows_or_many(given, prepared, out)
    np.testing.assert_array_equal(out.cpu().numpy(), exact)


def test_the_operator_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    a, weight, scales, exact = drawn(5, 4, 32, 256, 128, F16)
    x, prepared = torch.from_numpy(a), prepare_weight(torch.from_numpy(weight), torch.from_numpy(scales), bits=8)
    compiled = torch.compile(
        lambda x: mixed_matmul(x, prepared, out_dtype=torch.float32) + 1, backend="eager", fullgraph=True
    )
    np.testing.assert_array_equal(compiled(x).numpy(), exact + 1)


def test_the_layout_is_where_the_numbers_are() -> None:
    _, weight, scales, _ = drawn(2, 1, 16, 256, 128, F16)
    kept = np.asarray(prepare_weight(weight, scales, bits=8).words).view(np.uint8).ravel()
    layout = prepared_layout(16, 256, 8)
    assert sorted(layout(i) for i in range(cute.size(layout))) == list(range(16 * 256))
    assert all(int(kept[layout((n, k))]) == int(weight[n, k]) + 128 for n in (0, 7, 13) for k in range(256))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("m", [8, 13, 31, 63, 65])
def test_all_floats_of_8_bits(m: int, name: str, device: str) -> None:
    """One of each finite Float8E4M3FN in a row of the weight, subnormal ones among them; rows of A pick one."""
    torch = pytest.importorskip("torch")
    values = np.arange(256).astype(np.uint8).view(ml_dtypes.float8_e4m3fn)
    values[np.isnan(values.astype(np.float32))] = 0
    weight = np.stack([np.roll(values, i) for i in range(16)])
    scales = np.exp2(np.random.default_rng(0).integers(-2, 3, (16, 2)))
    a = np.zeros((m, 256))
    a[np.arange(m), np.arange(m) * 37 % 256] = -2
    exact = a @ (weight.astype(np.float64) * np.repeat(scales, 128, 1)).T
    bits = torch.from_numpy(weight.view(np.uint8)).to(device).view(torch.float8_e4m3fn)
    prepared = prepare_weight(bits, torch.from_numpy(scales).float().to(device))
    given = torch.from_numpy(a).to(device, getattr(torch, name))
    out = torch.full((m, 16), float("nan"), device=device)
    few_rows_or_many(given, prepared, out)
    np.testing.assert_array_equal(out.cpu().numpy(), exact)
    compiled = torch.compile(lambda x: mixed_matmul(x, prepared, out_dtype=torch.float32), backend="eager")
    np.testing.assert_array_equal(compiled(given).cpu().numpy(), exact)


@pytest.mark.parametrize("m", [3, 66])
def test_nan_weights_give_nan_columns(m: int) -> None:
    weight = np.ones((16, 128), ml_dtypes.float8_e4m3fn)
    weight[3, 5], weight[9, 70] = np.nan, -np.float32("nan")
    result = mixed_matmul(np.ones((m, 128), F16), prepare_weight(weight, np.ones((16, 1), F16)))
    assert np.flatnonzero(np.isnan(result).all(0)).tolist() == [3, 9]
    assert (np.delete(result, [3, 9], 1) == 128).all()


@pytest.mark.parametrize("rows", [16, 32, 64])
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_floats_of_8_bits_compile_without_spills(rows: int, name: str) -> None:
    cuda = pytest.importorskip("tilewright.cuda")
    dtype = {"float16": F16, "bfloat16": BF16}[name]
    kind = {"float16": Float16, "bfloat16": BFloat16}[name]
    a, c = Operand(kind, Major.K, 128), Operand(kind, Major.K, 16)
    prepared = prepare_weight(np.zeros((16, 256), ml_dtypes.float8_e4m3fn), np.ones((16, 2), F16))
    x, d = Matrix.of("a", np.zeros((16, 256), dtype)), Matrix.of("d", np.zeros((16, 16), dtype))
    operands = x.tensor(a), prepared_operand(prepared), d.tensor(c), d.tensor(c), Chain(())
    kernel = cute.compile(MixedSmallMGemm(few_rows_config(rows, a, c, prepared, 132)), *operands).kernels[0]
    found = cuda.compile(kernel, "sm_90a")
    assert found.spills == 0 and "cvt.rn.f16x2.e4m3x2" in found.ptx


def test_bad_input() -> None:
    a, weight, scales, _ = drawn(3, 2, 16, 256, 128, F16)
    zeros, prepared = np.zeros((16, 2), np.uint8), prepare_weight(weight, scales, bits=8)
    for more, message in (
        ({"bits": 2}, "bits is 4, or 8 without zeros, not 2"),
        ({"bits": 8, "zeros": zeros}, "bits is 4, or 8 without zeros, not 8 with zeros"),
        ({}, "weight has numbers of -128 to 127, not of -8 to 7"),
    ):
        with pytest.raises(ArgumentError, match=message):
            prepare_weight(weight, scales, **more)
    with pytest.raises(
        ArgumentError, match="words are for Int8 without zero points, groups of 128, and it has zero po"
    ):
        mixed_matmul(a, replace(prepared, zeros=zeros.T))
