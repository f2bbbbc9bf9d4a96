"""Products with scales, weights of few bits and sparse matrices as operations of JAX."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.blackwell.test_block_scaled_gemm import FORMS
from tests.blackwell.test_block_scaled_groups import drawn
from tilewright import Int4, sim
from tilewright.errors import ArgumentError
from tilewright.gemm import (
    CompressedMatrix,
    PermutedOperand,
    PreparedWeight,
    block_scaled_matmul,
    blocked_group_scales,
    combine_rows,
    compress_2_4,
    grouped_matmul,
    matmul,
    mixed_matmul,
    prepare_weight,
    scaled_grouped_matmul,
    scaled_matmul,
    sparse_matmul,
)
from tilewright.gemm.operators.mixed import MOST_NARROWED

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


@pytest.mark.parametrize(("m", "most"), [(3, 1024), (70, 1024), (70, 64)])
def test_rows_of_8_bits(m: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By few rows, by the loop that converts the weight, and with it written out."""
    monkeypatch.setitem(MOST_NARROWED, Int4, most)
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


@pytest.mark.parametrize("activation", [None, "silu"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_gradients_of_sparse(dtype: Any, activation: str | None) -> None:
    """Of the stored elements, B, C and the bias, beside JAX's of the dense product."""
    a, b, c, bias = integers(0, 64, 64, dtype=dtype), integers(1, 64, 8), integers(2, 64, 8), integers(3, 8)
    a[:, ::2] = 0
    if dtype is np.float32:
        a[:, 1::2] = integers(4, 64, 32)
    compressed = compress_2_4(jnp.asarray(a))
    np.testing.assert_array_equal(compressed.to_dense(), a)
    given = compressed.values, *(jnp.asarray(x.astype(dtype)) for x in (b, c, bias))
    weight = jnp.asarray(integers(5, 64, 8, dtype=np.float32))

    def ours(values: Any, b: Any, c: Any, bias: Any) -> Any:
        sparse = CompressedMatrix(values, compressed.metadata)
        options: dict[str, Any] = {"alpha": 0.5, "beta": 2.0, "activation": activation, "out_dtype": np.float32}
        return (sparse_matmul(sparse, b, c=c.astype(jnp.float32), bias=bias, **options) * weight).sum()

    def theirs(values: Any, b: Any, c: Any, bias: Any) -> Any:
        dense = CompressedMatrix(values.astype(jnp.float32).astype(dtype), compressed.metadata).to_dense()
        wide = [x.astype(jnp.float32) for x in (dense, b, c, bias)]
        sums = 0.5 * jnp.matmul(*wide[:2], precision="highest") + 2 * wide[2] + wide[3]
        return ((jax.nn.silu(sums) if activation else sums) * weight).sum()

    found, expected = (jax.jit(jax.grad(f, (0, 1, 2, 3)))(*given) for f in (ours, theirs))
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == y.dtype
        tolerance = 0.0 if activation is None else 2e-2 if dtype is np.float16 else 2e-5
        np.testing.assert_allclose(x.astype(np.float32), y.astype(np.float32), rtol=tolerance, atol=32 * tolerance)


ENDS = np.array([3, 3, 10], np.int32)


def in_groups(a: Any, b: Any, ends: Any, rows: Any = None) -> Any:
    """The products of groups of rows, or of slices of K, by JAX."""
    a, b = a.astype(jnp.float32), b.astype(jnp.float32)
    a = a if rows is None else a[rows]
    count = a.shape[0] if b.ndim == 3 else a.shape[1]
    inside = jnp.searchsorted(ends, jnp.arange(count), side="right") == jnp.arange(len(ends))[:, None]  # (group, row)
    if b.ndim == 3:
        return jnp.einsum("gm,mk,gkn->mn", inside * 1.0, a, b, precision="highest")
    return jnp.einsum("gk,mk,kn->gmn", inside * 1.0, a, b, precision="highest")


@pytest.mark.parametrize("decomposition", ["auto", "stream_k"])
@pytest.mark.parametrize("form", ["rows", "rows by index", "slices of K"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_groups(dtype: Any, form: str, decomposition: str) -> None:
    """Exact, with gradients, in a program and outside of one, and for a stack of them."""
    if form == "slices of K":
        shapes: Any = (16, 12), (12, 24)
    else:
        shapes = (12, 32), (3, 32, 24)
    a, b = (jnp.asarray(integers(i, *shape, dtype=dtype)) for i, shape in enumerate(shapes))
    rows = jnp.asarray(np.array([5, 0, 0, 11, 7, 1, 2, 3, 3, 9, 4], np.int32)) if form == "rows by index" else None
    expected = in_groups(a, b, ENDS, rows)
    weight = jnp.asarray(integers(7, *expected.shape, dtype=np.float32))

    def ours(a: Any, b: Any, ends: Any) -> Any:
        return grouped_matmul(a, b, ends, rows=rows, out_dtype=np.float32, decomposition=decomposition)

    ends = jnp.asarray(ENDS)
    np.testing.assert_array_equal(ours(a, b, ends), expected)
    np.testing.assert_array_equal(jax.vmap(ours, (0, None, None))(jnp.stack([a, 2 * a]), b, ends)[1], 2 * expected)
    if decomposition == "auto":
        found = jax.jit(jax.grad(lambda a, b: (ours(a, b, ends) * weight).sum(), (0, 1)))(a, b)
        of_theirs = jax.grad(lambda a, b: (in_groups(a, b, ENDS, rows) * weight).sum(), (0, 1))(a, b)
        for x, y in zip(found, of_theirs, strict=True):
            assert x.dtype == dtype
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("kind", ["lines", "blocks", "columns of blocks", "int8"])
def test_scaled_groups(kind: str) -> None:
    """As the same call of NumPy arrays gives."""
    m, n, k, ends = 12, 32, 256, np.array([5, 12], np.int32)
    dtype = np.int8 if kind == "int8" else E4M3
    by_columns = kind == "columns of blocks"
    a = integers(0, *((2, n, k) if by_columns else (m, k)), dtype=dtype)
    b = integers(1, *((m, k) if by_columns else (2, n, k)), dtype=dtype)
    shapes: Any = {"blocks": ((m, 2), (2, 1, 2)), "columns of blocks": ((2, 1, 2), (m, 2))}.get(kind, ((m,), (2, n)))
    scale_a, scale_b = (np.exp2(integers(i, *shape)).astype(np.float32) for i, shape in enumerate(shapes))

    def product(a: Any, b: Any, scale_a: Any, scale_b: Any, ends: Any) -> Any:
        if scale_b.ndim == b.ndim:
            scale_b = scale_b.swapaxes(-1, -2)
        return scaled_grouped_matmul(a, b.swapaxes(-1, -2), scale_a, scale_b, ends, out_dtype=np.float32)

    given = a, b, scale_a, scale_b, ends
    np.testing.assert_array_equal(jax.jit(product)(*map(jnp.asarray, given)), product(*given))


def test_combination_of_rows() -> None:
    source, weights = jnp.asarray(integers(0, 6, 8)), jnp.asarray(integers(1, 4, 2, dtype=np.float32))
    places = jnp.asarray(np.array([[0, 5], [2, 2], [-1, 3], [9, 1]], np.int32))
    inside, at = (places >= 0) & (places < 6), places.clip(0, 5)

    def theirs(source: Any, weights: Any) -> Any:
        return (source[at] * jnp.where(inside, weights, 0)[..., None]).sum(1).astype(source.dtype)

    other = jnp.asarray(integers(2, 4, 8))
    np.testing.assert_array_equal(jax.jit(combine_rows)(source, places, weights), theirs(source, weights))
    found, expected = (
        jax.grad(lambda s, w, f=f: (f(s, w) * other).sum().astype(jnp.float32), (0, 1))(source, weights)
        for f in (lambda s, w: combine_rows(s, places, w), theirs)
    )
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("stack", [(), (2,)])
def test_factors_of_blocks(stack: tuple[int, ...]) -> None:
    m, n, k = 40, 32, 64
    a, b = (integers(i, *stack, rows, k, dtype=E4M3) for i, rows in enumerate((m, n)))
    scale_a, scale_b = (np.exp2(integers(i, *stack, rows, 2)) for i, rows in enumerate((m, n)))
    exact = (a.astype(np.float64) * np.repeat(scale_a, 32, -1)) @ np.swapaxes(
        b.astype(np.float64) * np.repeat(scale_b, 32, -1), -1, -2
    )
    factors = [jnp.asarray(x.astype(ml_dtypes.float8_e8m0fnu)) for x in (scale_a, scale_b)]
    bias = integers(5, n, dtype=np.float32)

    def product(a: Any, b: Any, scale_a: Any, scale_b: Any) -> Any:
        given = scale_a, scale_b.swapaxes(-1, -2), jnp.asarray(bias)
        return block_scaled_matmul(a, b.swapaxes(-1, -2), *given, alpha=0.5, activation="relu", out_dtype=np.float32)

    with sim.options(arch="sm_100a"):
        found = np.asarray(jax.jit(product)(jnp.asarray(a), jnp.asarray(b), *factors))
    np.testing.assert_array_equal(found, np.maximum(exact / 2 + bias, 0))


@pytest.mark.parametrize(("form", "arch"), [(FORMS[0], "sm_100a"), (FORMS[3], "sm_120a")], ids=["mxfp8", "nvfp4"])
def test_groups_with_factors_of_blocks(form: Any, arch: str) -> None:
    """As the same call of NumPy arrays gives: factors as matrices, and in order; groups that are empty or end early."""
    operands, exact = drawn(150, 40, 160, [8, 8, 140], form)
    ends, stored = jnp.asarray(operands[4]), [x if x.ndim == 2 else x.swapaxes(1, 2) for x in operands[:4]]

    def product(a: Any, b: Any, scale_a: Any, scale_b: Any, ends: Any, out_dtype: Any = np.float32) -> Any:
        return scaled_grouped_matmul(a, b.swapaxes(1, 2), scale_a, scale_b.swapaxes(1, 2), ends, out_dtype=out_dtype)

    def of_ordered(a: Any, b: Any, scale_a: Any, scale_b: Any, ends: Any) -> Any:
        return product(a, b, blocked_group_scales(scale_a, ends), scale_b, ends)

    given = (*map(jnp.asarray, stored), ends)
    with sim.options(arch=arch):
        expected = product(*stored, operands[4])
        found, ordered = (np.asarray(jax.jit(f)(*given)) for f in (product, of_ordered))  # before the options end
        assert jax.eval_shape(lambda *x: product(*x, out_dtype=None), *given).dtype == jnp.bfloat16
    np.testing.assert_array_equal(expected, exact)
    np.testing.assert_array_equal(found, exact)
    np.testing.assert_array_equal(ordered, exact)
    in_order = np.asarray(jax.jit(blocked_group_scales)(given[2], ends)).view(np.uint8)
    np.testing.assert_array_equal(in_order, blocked_group_scales(operands[2], operands[4]).view(np.uint8))


def test_groups_without_sums() -> None:
    """No kernel runs, on any GPU: K is 0, there is no group, or no row. Gradients have nothing to add, either."""
    a, b, ends = jnp.ones((6, 64), jnp.float16), jnp.ones((2, 64, 16), jnp.float16), jnp.asarray(ENDS[1:])
    for operands in ((a[:, :0], b[:, :0], ends), (a, b[:0], ends[:0]), (a[:0], b, ends)):
        found = jax.jit(grouped_matmul)(*operands)
        np.testing.assert_array_equal(found, np.zeros((len(operands[0]), 16)))
    of_a, of_b = jax.grad(lambda *x: grouped_matmul(*x, ends).astype(jnp.float32).sum(), (0, 1))(a[:0], b)
    assert of_a.shape == (0, 64) and not of_b.any()
    (x, y, scale_a, scale_b, last), _ = drawn(8, 16, 64, [3, 8], FORMS[0])
    given = [jnp.asarray(part) for part in (x[:, :0], y[:, :0], scale_a[:, :0], scale_b[:, :0], last)]
    np.testing.assert_array_equal(jax.jit(scaled_grouped_matmul)(*given), np.zeros((8, 16)))


def test_refusals() -> None:
    """Where JAX traces the call: with the library's words, before XLA runs anything."""
    weight = prepare_weight(jnp.zeros((16, 256), jnp.int8), jnp.ones((16, 2), jnp.float16))
    a, eight = jnp.ones((3, 256), jnp.float16), jnp.ones((3, 256), E4M3)
    other = PreparedWeight(weight.words[:-1], weight.scales)
    sparse = compress_2_4(jnp.zeros((64, 64), jnp.float16))

    def groups(a: Any, b: Any, scale_a: Any, scale_b: Any, offsets: Any = None, **more: Any) -> Any:
        return scaled_grouped_matmul(a, b, scale_a, scale_b, ends if offsets is None else offsets, **more)

    one, ends, e8m0 = jnp.ones((), jnp.float32), jnp.ones(1, jnp.int32), jnp.ones((3, 8), ml_dtypes.float8_e8m0fnu)
    for call, message in (
        (lambda a: mixed_matmul(a[:, :128], weight), "has not the 256 elements of K"),
        (lambda a: mixed_matmul(a.astype(jnp.float32), weight), "a is Float32; mixed_matmul multiplies"),
        (lambda a: mixed_matmul(a, other), "the weight is not prepared, or prepared for other settings"),
        (lambda a: mixed_matmul(a, weight, out=a), "JAX arrays are immutable"),
        (lambda a: mixed_matmul(a, weight, a[0]), "bias is a vector of 16 elements"),
        (lambda a: prepare_weight(a, a), "weight is traced by JAX"),
        (lambda a: scaled_matmul(eight, eight.T, one + a[0, :2], one), r"scale_a has the shape \(2,\)"),
        (lambda a: scaled_matmul(eight[None], eight.T, one + a[0, 0], one), "scaled_matmul multiplies two matrices"),
        (lambda a: sparse_matmul(sparse, a), "sparse_matmul multiplies two matrices"),
        (lambda a: grouped_matmul(a, a[None, :, :8], ends, out=a), "call grouped_matmul without out and epilogue"),
        (lambda a: grouped_matmul(a, a[None, :, :8], ends), "inner dimensions differ"),
        (lambda a: grouped_matmul(a, a.T[None], ends.astype(np.int16)), "offsets must be int32"),
        (lambda a: grouped_matmul(a, np.ones((1, 256, 8), np.float16), ends), "b of numpy: give all of one framework"),
        (lambda a: combine_rows(a, ends[:, None], a[:1, :1]), r"weights is a \(T, k\) matrix of Float32, not Float16"),
        (lambda a: combine_rows(a, ends[:, None], one + a[:1, :1], out=a), "call combine_rows without out"),
        (lambda a: block_scaled_matmul(eight, eight[:, :128].T, e8m0, e8m0.T), "a has 256 bytes along K, b 128"),
        (lambda a: block_scaled_matmul(eight, eight.T, e8m0[:, :7], e8m0.T), r"scale_a has the shape \(3, 7\)"),
        (lambda a: block_scaled_matmul(eight, eight.T, e8m0, e8m0[:2].T), r"scale_b has the shape \(2, 8\)"),
        (lambda a: block_scaled_matmul(a, eight.T, e8m0, e8m0.T), "a is a matrix of Float8E4M3FN"),
        (lambda a: block_scaled_matmul(eight[:, :200], eight[:, :200].T, e8m0, e8m0.T), "a has multiples of 16 bytes"),
        (
            lambda a: block_scaled_matmul(eight, eight.T, e8m0, e8m0.T),
            r"write BFloat16, .* not BFloat16 of shape \(3, 3",
        ),
        (lambda a: groups(eight, eight.T[None], e8m0[:, :7], e8m0.T[None]), r"scale_a has the shape \(3, 7\); it is"),
        (lambda a: groups(eight, eight.T[None], e8m0, e8m0.T), r"scale_b has the shape \(8, 3\); 3 rows of 256"),
        (lambda a: groups(eight, eight.T[None], e8m0, e8m0.T[None, :7]), r"scale_b has the shape \(1, 3, 7\)"),
        (lambda a: groups(eight, eight.T[None], e8m0, one + e8m0.T[None].astype(np.float32)), "scale_b Float32; both"),
        (lambda a: groups(eight, eight.T[None], e8m0, e8m0.T[None]), "not BFloat16 of shape"),
        (lambda a: groups(eight, eight.T, e8m0, e8m0.T), "groups of rows, a matrix times a stack; not for shapes"),
        (lambda a: groups(a, a.T[None], e8m0, e8m0.T[None]), "a is a matrix of Float8E4M3FN"),
        (lambda a: groups(eight, eight.T[None], e8m0, e8m0.T[None], ends.astype(np.int16)), "offsets must be int32"),
        (lambda a: groups(eight, eight.T[None], e8m0, e8m0.T[None], kernel="x"), "leave out kernel"),
        (lambda a: groups(eight, eight.T[None], e8m0, e8m0.T[None], out=a), "call scaled_grouped_matmul without out"),
        (
            lambda a: groups(eight, eight.T[None], one + a[0, :3], one[None]),
            r"scale_b has the shape \(1,\); .* \(1, 3\)",
        ),
        (lambda a: groups(eight, eight.T[None], a[0, :3], one[None]), "scale_a must be float32, got Float16"),
        (lambda a: groups(eight, eight.T[None], one + a[:, :3], one + a[:1, :2, None]), "blocks of 128 elements of K"),
        (lambda a: groups(eight, eight.T[None], one, one, out_dtype=E4M3), "writes floats of 16 or 32 bits"),
        (lambda a: scaled_matmul(eight, eight.T, a[0, 0], one), "scale_a must be float32, got Float16"),
        (lambda a: matmul(a, eight.T), "a is Float16, b is Float8E4M3FN"),
        (lambda a: matmul(a, a.T, bias=a[0]), "bias must be a vector of 3 elements"),
        (lambda a: matmul(a, None), "b is builtins.NoneType"),
        (lambda a: grouped_matmul(a, a.T[None]), "without offsets"),
    ):
        with pytest.raises(ArgumentError, match=message):
            jax.jit(call)(a)


@pytest.mark.parametrize("traced", [False, True])
def test_scaled_products_of_any_width_and_without_k(traced: bool) -> None:
    """XLA puts operands along K, as kernels for scales of blocks read them; widths are filled up."""
    rng = np.random.default_rng(9)
    a, b = rng.integers(-2, 3, (5, 256)), rng.integers(-2, 3, (256, 33))
    scale_a, scale_b = (np.exp2(rng.integers(-2, 3, x)).astype(np.float32) for x in ((5, 2), (2, 33)))
    exact = (a * np.repeat(scale_a, 128, 1).astype(float)) @ (b * np.repeat(scale_b, 128, 0))
    left, right = jnp.asarray(a, jnp.float8_e4m3fn), jnp.asarray(b, jnp.float8_e5m2)
    product = jax.jit(scaled_matmul) if traced else scaled_matmul
    found = np.asarray(product(left, right, *map(jnp.asarray, (scale_a, scale_b))))
    np.testing.assert_array_equal(found, exact.astype(ml_dtypes.bfloat16))
    for scales in ((5, 0), (0, 33)), ((), ()):
        none = (jnp.ones(x, jnp.float32) for x in scales)
        assert not product(left[:, :0], right[:0], *none).astype(float).any()
