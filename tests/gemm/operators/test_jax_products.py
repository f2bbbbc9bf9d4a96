"""Products with scales, weights of few bits and sparse matrices as operations of JAX."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright.errors import ArgumentError
from tilewright.gemm import (
    CompressedMatrix,
    PermutedOperand,
    PreparedWeight,
    compress_2_4,
    matmul,
    mixed_matmul,
    prepare_weight,
    scaled_matmul,
    sparse_matmul,
)

jax = pytest.importorskip("jax")

pytestmark = pytest.mark.unchecked
jnp = jax.numpy
E4M3 = ml_dtypes.float8_e4m3fn


def integers(seed: int, *shape: int, least: int = -3, most: int = 3, dtype: Any = np.float16) -> np.ndarray:
    return np.random.default_rng(seed).integers(least, most + 1, shape).astype(dtype)


@pytest.mark.parametrize("rows", [(3,), (2, 40), (70,), ()])
@pytest.mark.parametrize("kind", ["int4", "zeros", "int8"])
def test_weights_of_few_bits(kind: str, rows: tuple[int, ...]) -> None:
    """By both kernels; a weight as an argument of the program, and as a part of it."""
    a, scales = integers(0, *rows, 256), np.exp2(integers(1, 24, 2)).astype(np.float16)
    least = {"int4": -8, "zeros": 0, "int8": -128}[kind]
    weight, zeros = integers(2, 24, 256, least=least, most=least + (255 if kind == "int8" else 15), dtype=np.int8), None
    numbers = weight.astype(np.float64)
    if kind == "zeros":
        zeros = integers(3, 24, 2, least=0, most=15, dtype=np.uint8)
        numbers -= np.repeat(zeros.astype(np.float64), 128, 1)
    bias = integers(4, 24)
    exact = np.maximum(a.astype(np.float64) @ (numbers * np.repeat(scales.astype(np.float64), 128, 1)).T + bias, 0)
    given = (None if x is None else jnp.asarray(x) for x in (weight, scales, zeros))
    prepared = prepare_weight(*given, bits=8 if kind == "int8" else 4)
    assert isinstance(prepared.words, jax.Array)

    def product(a: Any, weight: PreparedWeight) -> Any:
        return mixed_matmul(a, weight, jnp.asarray(bias), activation="relu", out_dtype=np.float32) + 1

    for found in (
        product(jnp.asarray(a), prepared),
        jax.jit(product)(jnp.asarray(a), prepared),
        jax.jit(lambda a: product(a, prepared))(jnp.asarray(a)),
    ):
        np.testing.assert_array_equal(found, exact + 1)


@pytest.mark.parametrize("m", [3, 70])
def test_rows_of_8_bits(m: int) -> None:
    a, weight, scales = (
        integers(0, m, 256, dtype=E4M3),
        integers(1, 16, 256, dtype=np.int8),
        np.ones((16, 2), np.float16),
    )
    scale_a = np.exp2(integers(2, m, 1)).astype(np.float32)
    prepared = prepare_weight(jnp.asarray(weight), jnp.asarray(scales))
    found = jax.jit(lambda a, s: mixed_matmul(a, prepared, scale_a=s))(jnp.asarray(a), jnp.asarray(scale_a))
    assert found.dtype == jnp.bfloat16
    exact = (a.astype(np.float64) * scale_a) @ weight.T
    np.testing.assert_array_equal(found, exact.astype(ml_dtypes.bfloat16))


def test_a_weight_written_out() -> None:
    a, weight, scales = integers(0, 70, 128), integers(1, 16, 128, dtype=np.int8), np.ones((16, 1), np.float16)
    from tilewright import sim

    with sim.options(arch="sm_80"):
        prepared = prepare_weight(jnp.asarray(weight), jnp.asarray(scales))
        found = jax.jit(lambda a: mixed_matmul(a, prepared))(jnp.asarray(a))
    np.testing.assert_array_equal(found, a @ weight.T.astype(np.float16))


@pytest.mark.parametrize("kind", ["all", "lines", "blocks", "int8"])
def test_scaled_operands(kind: str) -> None:
    m, n, k = 24, 32, 256
    a, b = (integers(i, *shape, dtype=np.int8 if kind == "int8" else E4M3) for i, shape in enumerate(((m, k), (n, k))))
    shapes = {"all": ((), ()), "blocks": ((m, 2), (2, n))}.get(kind, ((m, 1), (1, n)))
    scale_a, scale_b = (np.exp2(integers(i, *shape)).astype(np.float32) for i, shape in enumerate(shapes))
    wide_a = np.repeat(scale_a, 128, 1) if kind == "blocks" else scale_a
    wide_b = np.repeat(scale_b, 128, 0) if kind == "blocks" else scale_b
    exact = (a.astype(np.float64) * wide_a) @ (b.T.astype(np.float64) * wide_b)

    def product(a: Any, b: Any, scale_a: Any, scale_b: Any) -> Any:
        return scaled_matmul(a, b.T, scale_a, scale_b, out_dtype=np.float32)

    operands = tuple(map(jnp.asarray, (a, b, scale_a, scale_b)))
    np.testing.assert_array_equal(jax.jit(product)(*operands), exact)
    if kind == "lines":
        many = jax.vmap(product, (0, None, 0, None))(operands[0][None], operands[1], operands[2][None], operands[3])
        np.testing.assert_array_equal(many[0], exact)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, E4M3, np.float32], ids=str)
def test_sparse(dtype: Any) -> None:
    a, b = integers(0, 72, 128, dtype=dtype), integers(1, 128, 24, dtype=dtype)
    a[:, ::2] = 0
    if dtype is np.float32:
        a[:, 1::2] = integers(2, 72, 64)
    c = integers(3, 72, 24, dtype=np.float32)
    exact = 2 * (a.astype(np.float64) @ b.astype(np.float64)) - c
    compressed = compress_2_4(jnp.asarray(a))
    assert isinstance(compressed.values, jax.Array)

    def product(a: CompressedMatrix, b: Any, c: Any) -> Any:
        return sparse_matmul(a, b, c=c, alpha=2.0, beta=-1.0, out_dtype=np.float32)

    for run in (product, jax.jit(product)):
        np.testing.assert_array_equal(run(compressed, jnp.asarray(b), jnp.asarray(c)), exact)


def test_permuted_operands() -> None:
    heads, weight = integers(0, 2, 4, 5, 8), integers(1, 32, 16)
    found = jax.jit(lambda x, w: matmul(PermutedOperand(x), w))(jnp.asarray(heads), jnp.asarray(weight))
    np.testing.assert_array_equal(found, heads.transpose(0, 2, 1, 3).reshape(10, 32) @ weight)


def test_refusals() -> None:
    """Where JAX traces the call: with the library's words, before XLA runs anything."""
    weight = prepare_weight(jnp.zeros((16, 256), jnp.int8), jnp.ones((16, 2), jnp.float16))
    a, eight = jnp.ones((3, 256), jnp.float16), jnp.ones((3, 256), E4M3)
    other = PreparedWeight(weight.words[:-1], weight.scales)
    sparse = compress_2_4(jnp.zeros((64, 64), jnp.float16))
    one = jnp.ones((), jnp.float32)
    for call, message in (
        (lambda a: mixed_matmul(a[:, :128], weight), "has not the 256 elements of K"),
        (lambda a: mixed_matmul(a.astype(jnp.float32), weight), "a is Float32; mixed_matmul multiplies"),
        (lambda a: mixed_matmul(a, other), "the weight is not prepared, or prepared for other settings"),
        (lambda a: mixed_matmul(a, weight, out=a), "JAX arrays are immutable"),
        (lambda a: mixed_matmul(a, weight, a[0]), "bias is a vector of 16 elements"),
        (lambda a: prepare_weight(a, a), "weight is traced by JAX"),
        (lambda a: scaled_matmul(eight, eight.T, a[0, :2], one), r"scale_a has the shape \(2,\)"),
        (lambda a: scaled_matmul(eight[None], eight.T, one + a[0, 0], one), "scaled_matmul multiplies two matrices"),
        (lambda a: sparse_matmul(sparse, a), "sparse_matmul multiplies two matrices"),
    ):
        with pytest.raises(ArgumentError, match=message):
            jax.jit(call)(a)
