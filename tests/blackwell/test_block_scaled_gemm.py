"""``block_scaled_matmul`` in the simulator of an sm_100a, and its kernels as text for it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright import BFloat16, Float4E2M1FN, Float8E4M3FN, Float8E5M2, Float8E8M0FNU, Float16, Float32, cute, sim
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.gemm import block_scaled_matmul, blocked_scales
from tilewright.gemm.blackwell_config import BlockScaledConfig
from tilewright.gemm.config import Major, Operand
from tilewright.gemm.epilogue.functions import LinearCombination
from tilewright.gemm.kernel.block_scaled import BlockScaledGemm
from tilewright.gemm.operators.block_scaled import FORMATS, config_of
from tilewright.gemm.schedule.decomposition import PersistentTiles

E4M3, E5M2, E8M0 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu
E2M1 = ml_dtypes.float4_e2m1fn


def pairs(x: Any) -> Any:
    """Two numbers of 4 bits in a byte."""
    bits = x.astype(E2M1).view(np.uint8)
    return bits[:, ::2] | bits[:, 1::2] << 4


def product(m: int, n: int, k: int, types: tuple[Any, Any], factor: Any) -> tuple[list[Any], Any]:
    """a, b, scale_a and scale_b of a product, and the product."""
    rng, vector = np.random.default_rng(0), 16 if factor is E4M3 else 32
    numbers = [rng.integers(-2, 3, (rows, k)).astype(np.float32) for rows in (m, n)]
    factors = [2.0 ** rng.integers(-1, 2, (rows, -(-k // vector))) for rows in (m, n)]
    if factor is E4M3:
        factors[0] = 1.5 * factors[0]
    wide = [x * np.repeat(s, vector, 1)[:, :k] for x, s in zip(numbers, factors, strict=True)]
    a, b = (pairs(x) if t is E2M1 else x.astype(t) for x, t in zip(numbers, types, strict=True))
    scale_a, scale_b = (s.astype(factor) for s in factors)
    return [a, b.T, scale_a, scale_b.T], wide[0] @ wide[1].T


@pytest.mark.parametrize(
    ("types", "factor", "shape"),
    [
        ((E4M3, E4M3), E8M0, (300, 264, 336)),  # pairs of blocks, of which one has no rows; edges along N and K
        ((E4M3, E5M2), E8M0, (72, 40, 144)),
        ((E2M1, E2M1), E8M0, (128, 136, 544)),
        ((E2M1, E2M1), E4M3, (200, 128, 352)),
    ],
)
def test_products_of_integers(types: tuple[Any, Any], factor: Any, shape: tuple[int, int, int]) -> None:
    given, exact = product(*shape, types, factor)
    with sim.options(arch="sm_100a", check="all", sms=4):
        found = block_scaled_matmul(*given, out_dtype=np.float32)
    np.testing.assert_array_equal(found, exact)


def test_epilogue_and_prepared_factors_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    given, exact = product(64, 64, 128, (E2M1, E2M1), E4M3)
    a, b = torch.from_numpy(given[0]), torch.from_numpy(np.ascontiguousarray(given[1].T)).T
    if hasattr(torch, "float4_e2m1fn_x2"):
        a = a.view(torch.float4_e2m1fn_x2)
    scale_a = torch.from_numpy(given[2].view(np.uint8)).view(torch.float8_e4m3fn)
    scale_b = torch.from_numpy(given[3].T.view(np.uint8)).view(torch.float8_e4m3fn)
    bias, out = torch.arange(64, dtype=torch.bfloat16), torch.empty(64, 64, dtype=torch.bfloat16)
    with sim.options(arch="sm_100a"):
        found = block_scaled_matmul(
            a, b, scale_a, blocked_scales(scale_b), bias, alpha=0.25, activation="relu", out=out
        )
    assert found is out
    wanted = torch.from_numpy(np.maximum(exact / 4 + np.arange(64), 0)).to(torch.bfloat16)
    assert torch.equal(out, wanted)


def test_factors_in_the_order_of_the_tensor_cores() -> None:
    scale = (np.arange(130)[:, None] % 16 + np.zeros(5)).astype(E4M3)
    found = blocked_scales(scale).astype(int).reshape(2, 2, 32, 4, 4)  # blocks, row % 32, row // 32, factor
    row = 32 * np.arange(4)[:, None] + np.arange(32)
    np.testing.assert_array_equal(found[0, 0, :, :, 0].T, row % 16)
    assert found[0, 1, 5, 1].tolist() == [5, 0, 0, 0] and found[1, 0, 1, 0].tolist() == [1] * 4
    assert not found[1, 0, 2:].any()


@pytest.mark.parametrize(
    ("types", "rows"),
    [
        ((Float8E4M3FN, Float8E4M3FN, Float8E8M0FNU), 128),
        ((Float8E4M3FN, Float8E5M2, Float8E8M0FNU), 256),
        ((Float4E2M1FN, Float4E2M1FN, Float8E8M0FNU), 256),
        ((Float4E2M1FN, Float4E2M1FN, Float8E4M3FN), 128),
    ],
)
def test_the_text_is_assembled(types: tuple[Any, ...], rows: int) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilewright.cuda import compile as build
    from tilewright.cute.runtime import make_fake_compact_tensor
    from tilewright.cute.typing import Int64, Uint8

    a, b, factor = types
    config = config_of(a, b, BFloat16, FORMATS[a.width, factor], rows, 227 * 1024)

    def fake(dtype: Any, columns: int) -> Any:
        return make_fake_compact_tensor(
            dtype, (cute.sym_int(), cute.sym_int(divisibility=columns), 1), stride_order=(1, 0, 2), assumed_align=16
        )

    stored = [Uint8 if x.width == 4 else x for x in (a, b)]
    tensors = [fake(x, 16) for x in stored] + [fake(Int64, 2)] * 2 + [fake(BFloat16, 8)] * 2
    staged = cute.compile(
        BlockScaledGemm(config), *tensors, LinearCombination(Float32(1)), PersistentTiles(cute.Int32(1))
    ).kernels[0]
    made = build(staged, "sm_100a")
    assert made.spills == 0 and not made.warnings
    names = {name.partition(".")[0] for name in made.mnemonics()}
    assert {"UTCCP", "UTCQMMA" if a.width == 8 else "UTCOMMA"} <= names, names


def test_operands_that_do_not_go_together() -> None:
    given, _ = product(64, 64, 128, (E4M3, E4M3), E8M0)
    a, b, scale_a, scale_b = given
    with pytest.raises(ArgumentError, match="needs tcgen05, which sm_100a, sm_103a, sm_110a have and sm_90 does not"):
        block_scaled_matmul(*given)
    with sim.options(arch="sm_100a"):
        with pytest.raises(ArgumentError, match="scale_a is Float8E4M3FN, .* both are Float8E8M0FNU for elements of 8"):
            block_scaled_matmul(a, b, scale_a.astype(np.float32).astype(E4M3), scale_b)
        with pytest.raises(
            ArgumentError, match="64 rows of 128 elements have 4 factors each, 512 numbers in the order"
        ):
            block_scaled_matmul(a, b, scale_a[:, :3], scale_b)
        with pytest.raises(ArgumentError, match="a has 128 elements of 8 bits along K, b 64 of 8"):
            block_scaled_matmul(a, b[:64], scale_a, scale_b)
        with pytest.raises(ArgumentError, match="a is a matrix of Float8E4M3FN, .* not Float16"):
            block_scaled_matmul(a.astype(np.float16), b, scale_a, scale_b)
        with pytest.raises(ArgumentError, match="b has 128 contiguous bytes along K"):
            block_scaled_matmul(a, np.ascontiguousarray(b), scale_a, scale_b)
        with pytest.raises(ArgumentError, match="writes BFloat16, Float16, Float32 in rows that are multiples of 16"):
            block_scaled_matmul(a, b, scale_a, scale_b, out=np.zeros((64, 64), E4M3))
        with pytest.raises(ArgumentError, match="bias is a vector of 64 elements on cpu"):
            block_scaled_matmul(*given, np.zeros(3, np.float32))


def test_sizes_that_factors_do_not_allow() -> None:
    operand = Operand(Float16, Major.K, 128)
    config = BlockScaledConfig(operand, operand, operand, Float32, (128, 64, 128), stages=2, factor=Float8E8M0FNU)
    with pytest.raises(ConstraintError, match="128 columns, a K tile in steps of 128 .4 factors. and a cluster of the"):
        config.check()
