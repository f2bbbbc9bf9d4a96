"""``block_scaled_matmul`` in the simulator of an sm_100a, and its kernels as text for it."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tilewright import BFloat16, Float4E2M1FN, Float8E4M3FN, Float8E5M2, Float8E8M0FNU, Float32, cute, sim
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.gemm import block_scaled_matmul, blocked_scales
from tilewright.gemm.block_scaled_config import BlockScaledConfig
from tilewright.gemm.choice.choose import fastest
from tilewright.gemm.epilogue.functions import LinearCombination
from tilewright.gemm.family.block_scaled import CLUSTERS, COLUMNS, FORMATS, block_scaled_entry, block_scaled_kernel
from tilewright.gemm.operators import block_scaled
from tilewright.gemm.schedule.decomposition import PersistentTiles

E4M3, E5M2, E8M0 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu
E2M1 = ml_dtypes.float4_e2m1fn


def pairs(x: Any) -> Any:
    """Two numbers of 4 bits in a byte."""
    bits = x.astype(E2M1).view(np.uint8)
    return bits[..., ::2] | bits[..., 1::2] << 4


def product(m: int, n: int, k: int, types: tuple[Any, Any], factor: Any, stack: tuple[int, ...] = ()) -> Any:
    """a, b, scale_a and scale_b of a product, and the product; of a ``stack`` of as many."""
    rng, vector = np.random.default_rng(0), 16 if factor is E4M3 else 32
    numbers = [rng.integers(-2, 3, (*stack, rows, k)).astype(np.float32) for rows in (m, n)]
    factors = [2.0 ** rng.integers(-1, 2, (*stack, rows, -(-k // vector))) for rows in (m, n)]
    if factor is E4M3:
        factors[0] = 1.5 * factors[0]
    wide = [x * np.repeat(s, vector, -1)[..., :k] for x, s in zip(numbers, factors, strict=True)]
    a, b = (pairs(x) if t is E2M1 else x.astype(t) for x, t in zip(numbers, types, strict=True))
    scale_a, scale_b = (s.astype(factor) for s in factors)
    return [a, b.swapaxes(-1, -2), scale_a, scale_b.swapaxes(-1, -2)], wide[0] @ wide[1].swapaxes(-1, -2)


FORMS = (((E4M3, E4M3), E8M0), ((E4M3, E5M2), E8M0), ((E2M1, E2M1), E8M0), ((E2M1, E2M1), E4M3))
TYPES = {E4M3: Float8E4M3FN, E5M2: Float8E5M2, E2M1: Float4E2M1FN, E8M0: Float8E8M0FNU}
SIZES = [
    *[
        (100, columns, ctas, cluster)
        for ctas, of_each in CLUSTERS.items()
        for columns in COLUMNS
        for cluster in of_each
    ],
    (120, 128, 1, (1, 1)),
]


@given(
    size=st.sampled_from(SIZES),
    form=st.sampled_from(FORMS),
    extents=st.tuples(st.integers(1, 270), st.integers(1, 34), st.integers(1, 9)),
    batch=st.integers(1, 2),
    seed=st.integers(0, 9),
)
@example(size=(100, 192, 2, (2, 2)), form=FORMS[3], extents=(256, 52, 17), batch=1, seed=0)  # halves of blocks
@settings(max_examples=4, deadline=None)
def test_products_of_integers(size: Any, form: Any, extents: tuple[int, int, int], batch: int, seed: int) -> None:
    """Every size and format: edges along all modes, several tiles of a block, stacks, with all checks."""
    (version, columns, ctas, cluster), (types, factor), (m, n, k) = size, form, extents
    stack, k = (() if batch == 1 else (batch,)), k * (32 if types[0] is E2M1 else 16)
    operands, exact = product(m, 8 * n, k, types, factor, stack)
    a, b = (TYPES[x] for x in types)
    entry = block_scaled_entry(a, b, Float32, FORMATS[a.width, TYPES[factor]], version)
    found = [x for x in entry.sizes if (x.tile[1], getattr(x, "ctas", 1), x.cluster) == (columns, ctas, cluster)]
    with (
        mock.patch.object(block_scaled, "block_scaled_entry", lambda *_: entry.only(found[0])),
        sim.options(arch=f"sm_{version}a", check="all", sms=4, seed=seed),
    ):
        result = block_scaled_matmul(*operands, out_dtype=np.float32)
    np.testing.assert_array_equal(result, exact)


def test_the_choice_of_sizes() -> None:
    """The model's size, with blocked scales of a stack: few columns take a narrow tile, many rows a pair of blocks."""
    entry = block_scaled_entry(Float8E4M3FN, Float8E4M3FN, BFloat16, FORMATS[8, Float8E8M0FNU], 100)
    narrow, large = (fastest(entry, "data_parallel", x, (148, 227 * 1024))[0].config for x in SHAPES)
    assert narrow.tile[1] == 64 and isinstance(large, BlockScaledConfig) and (large.ctas, large.tile[1]) == (2, 256)
    (a, b, scale_a, scale_b), exact = product(72, 40, 144, (E4M3, E5M2), E8M0, (3,))
    blocked = blocked_scales(scale_a), blocked_scales(scale_b.swapaxes(1, 2))
    assert blocked[0].shape == (3, 1024)
    with sim.options(arch="sm_103a"):
        found = block_scaled_matmul(a, b, *blocked, out_dtype=np.float32)
    np.testing.assert_array_equal(found, exact)


SHAPES = ((256, 64, 4096, 1), (8192, 8192, 8192, 1))


def test_an_operator_of_pytorch() -> None:
    """torch.compile keeps it as one node; gradients, and shapes that do not fit, are refused there as elsewhere."""
    torch = pytest.importorskip("torch")
    operands, exact = product(64, 64, 128, (E4M3, E4M3), E8M0)

    def of(x: Any, dtype: Any) -> Any:
        return torch.from_numpy(np.ascontiguousarray(x).view(np.uint8)).view(dtype)

    a, scale_a = of(operands[0], torch.float8_e4m3fn), of(operands[2], torch.float8_e8m0fnu)
    b, scale_b = of(operands[1].T, torch.float8_e4m3fn).T, of(operands[3].T, torch.float8_e8m0fnu).T
    bias = torch.arange(64, dtype=torch.float32)
    module = import_module("tilewright.gemm.operators.torch_block_scaled")  # registers it
    compiled = torch.compile(
        lambda *x: block_scaled_matmul(*x, alpha=0.5, activation="relu", out_dtype=torch.float32) + 1,
        backend="eager",
        fullgraph=True,
    )
    with sim.options(arch="sm_100a"):
        given = a, b, scale_a, scale_b, bias, 0.5
        torch.library.opcheck(torch.ops.tilewright.block_scaled_matmul, given, test_utils="test_faketensor")
        found = compiled(a, b, scale_a, scale_b, bias)
    np.testing.assert_array_equal(found.numpy(), np.maximum(exact / 2 + np.arange(64), 0) + 1)
    with pytest.raises(ArgumentError, match="block_scaled_matmul has no gradient"):
        block_scaled_matmul(a, b, scale_a, scale_b, bias.requires_grad_())
    with pytest.raises(ArgumentError, match="matrices or stacks of them"):
        module.fake(a, b[:64], scale_a, scale_b)


def test_epilogue_and_prepared_factors_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    operands, exact = product(64, 64, 128, (E2M1, E2M1), E4M3)
    a, b = torch.from_numpy(operands[0]), torch.from_numpy(np.ascontiguousarray(operands[1].T)).T
    if hasattr(torch, "float4_e2m1fn_x2"):
        a = a.view(torch.float4_e2m1fn_x2)
    scale_a = torch.from_numpy(operands[2].view(np.uint8)).view(torch.float8_e4m3fn)
    scale_b = torch.from_numpy(operands[3].T.view(np.uint8)).view(torch.float8_e4m3fn)
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
    ("types", "arch", "names"),
    [
        ((Float8E4M3FN, Float8E5M2, Float8E8M0FNU), "sm_100a", {"tcgen05.cp.", ".kind::mxf8f6f4."}),
        ((Float4E2M1FN, Float4E2M1FN, Float8E8M0FNU), "sm_103a", {"tcgen05.cp.", ".kind::mxf4"}),
        ((Float8E4M3FN, Float8E4M3FN, Float8E8M0FNU), "sm_120a", {"ldmatrix.", "mma.sync.aligned.kind::mxf8f6f4"}),
        ((Float4E2M1FN, Float4E2M1FN, Float8E4M3FN), "sm_120a", {"ldmatrix.", "mma.sync.aligned.kind::mxf4nvf4"}),
    ],
)
def test_the_text_is_assembled(types: tuple[Any, ...], arch: str, names: set[str]) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilewright.cuda import compile as build
    from tilewright.cute.runtime import make_fake_compact_tensor
    from tilewright.cute.typing import Int64, Uint8

    a, b, factor = types
    config = block_scaled_entry(a, b, BFloat16, FORMATS[a.width, factor], int(arch[3:6])).config

    def fake(dtype: Any, columns: int) -> Any:
        return make_fake_compact_tensor(
            dtype, (cute.sym_int(), cute.sym_int(divisibility=columns), 1), stride_order=(1, 0, 2), assumed_align=16
        )

    stored = [Uint8 if x.width == 4 else x for x in (a, b)]
    tensors = [fake(x, 16) for x in stored] + [fake(Int64, 2)] * 2 + [fake(BFloat16, 8)] * 2
    staged = cute.compile(
        block_scaled_kernel(config), *tensors, LinearCombination(Float32(1)), PersistentTiles(cute.Int32(1))
    ).kernels[0]
    made = build(staged, arch)
    assert made.spills == 0 and not made.warnings
    assert all(name in made.ptx for name in {*names, "cp.async.bulk.tensor.2d."}), made.ptx


def test_operands_that_do_not_go_together() -> None:
    operands, _ = product(64, 64, 128, (E4M3, E4M3), E8M0)
    a, b, scale_a, scale_b = operands
    with pytest.raises(ArgumentError, match=r"which sm_100a, .*, sm_121a have and sm_90 does not; the simulator"):
        block_scaled_matmul(*operands)
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
        with pytest.raises(ArgumentError, match="b has contiguous bytes along K"):
            block_scaled_matmul(a, np.ascontiguousarray(b), scale_a, scale_b)
        with pytest.raises(ArgumentError, match="write BFloat16, Float16, Float32 in rows that are multiples of 16"):
            block_scaled_matmul(a, b, scale_a, scale_b, out=np.zeros((64, 64), E4M3))
        with pytest.raises(ArgumentError, match="bias is a vector of 64 elements on cpu"):
            block_scaled_matmul(*operands, np.zeros(3, np.float32))


def test_sizes_that_factors_do_not_allow() -> None:
    entries = (
        block_scaled_entry(Float8E4M3FN, Float8E4M3FN, BFloat16, FORMATS[8, Float8E8M0FNU], x) for x in (100, 120)
    )
    for entry, changed, why in zip(
        entries,
        ({"tile": (128, 96, 128)}, {"tile": (128, 64, 128)}),
        ("64, 128, 192 or 256 columns, not 96", "tiles of 128 x 128, whole blocks of factors"),
        strict=True,
    ):
        with pytest.raises(ConstraintError, match=why):
            replace(entry.config, **changed).check()  # of several types
        with pytest.raises(ConstraintError, match=r"a K tile in steps of 128 .4 factors., not 64"):
            replace(entry.config, tile=(128, 128, 64)).check()


@pytest.mark.parametrize("arch", ["sm_100a", "sm_120a"])
def test_memory_that_begins_anywhere(arch: str) -> None:
    """Views at odd addresses and rows at odd strides are copied, ``out`` too; without rows there are no factors."""
    operands, exact = product(24, 40, 128, (E4M3, E4M3), E8M0)
    a, b, scale_a, scale_b = operands

    def moved(x: np.ndarray, after: int) -> np.ndarray:
        memory = np.zeros((x.shape[0], (x.shape[1] + 3) * x.itemsize + after), np.uint8)
        found = memory[:, after : after + x.shape[1] * x.itemsize].view(x.dtype)
        found[...] = x
        return found

    out = moved(np.full((24, 40), 7, np.float32), 4)
    with sim.options(arch=arch):
        found = block_scaled_matmul(moved(a, 3), moved(b.T, 1).T, scale_a, scale_b, out=out)
        none = block_scaled_matmul(a[:0], b, scale_a[:0], scale_b)
    assert found is out and none.shape == (0, 40)
    np.testing.assert_array_equal(out, exact)
