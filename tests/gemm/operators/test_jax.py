"""``matmul`` within jax.jit, jax.grad and jax.vmap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.errors import ArgumentError
from tilewright.gemm import matmul

jax = pytest.importorskip("jax")

pytestmark = pytest.mark.unchecked
jnp = jax.numpy


def integers(seed: int, *shape: int, dtype: Any = np.float16) -> Any:
    return jnp.asarray(np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype))


@pytest.mark.parametrize("shapes", [((5, 8), (8, 6)), ((8,), (8, 6)), ((2, 5, 8), (8, 6)), ((2, 5, 8), (2, 8, 6))])
def test_jit(shapes: Any) -> None:
    a, b = (integers(i, *shape) for i, shape in enumerate(shapes))
    found = jax.jit(lambda a, b: matmul(a, b, alpha=2.0) + 1)(a, b)
    np.testing.assert_array_equal(found, 2.0 * np.matmul(a, b) + 1)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.int8, jnp.float8_e4m3fn], ids=str)
def test_other_types(dtype: Any) -> None:
    a, b = integers(0, 5, 16).astype(dtype), integers(1, 16, 6).astype(dtype)
    found = jax.jit(matmul)(a, b)
    assert found.dtype == matmul(a, b).dtype
    np.testing.assert_array_equal(found.astype(np.float32), a.astype(np.float32) @ b.astype(np.float32))
    assert jax.jit(matmul)(a[:0], b).shape == (0, 6)


def test_jit_with_everything() -> None:
    a, b, c, bias = integers(0, 5, 8), integers(1, 8, 6), integers(2, 5, 6), integers(3, 6)
    call = jax.jit(lambda *x: matmul(x[0], x[1], c=x[2], beta=-1.0, bias=x[3], activation="relu"))
    np.testing.assert_array_equal(call(a, b, c, bias), np.maximum(a @ b - c + bias, 0))
    with pytest.raises(ArgumentError, match="JAX arrays are immutable"):
        jax.jit(lambda a, b, c: matmul(a, b, c))(a, b, c)


def test_products_of_one_jax_program_have_distinct_keys() -> None:
    """XLA runs them after all were traced, each by its number."""
    a, b, c, bias = integers(0, 5, 8), integers(1, 8, 6), integers(2, 5, 6), integers(3, 6)
    ways: list[dict[str, Any]] = [
        {"alpha": alpha, "activation": activation, **more}
        for more in ({}, {"c": c}, {"bias": bias}, {"c": c, "bias": bias}, {"c": c, "bias": bias, "beta": 1.0})
        for alpha, activation in ((1.0, None), (2.0, None), (1.0, "relu"))
    ]
    found = jax.jit(lambda a, b: [matmul(a, b, **way) for way in ways])(a, b)
    for way, one in zip(ways, found, strict=True):
        sums = way["alpha"] * (a @ b) + way.get("beta", 0) * c + way.get("bias", 0)
        np.testing.assert_array_equal(one, np.maximum(sums, 0) if way["activation"] else sums)


@pytest.mark.parametrize("activation", [None, "gelu"])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_gradients(wrap: Any, activation: str | None) -> None:
    rng = np.random.default_rng(0)
    a, b, c, bias = (jnp.asarray(rng.normal(size=s).astype(np.float32)) for s in ((5, 8), (8, 6), (5, 6), (6,)))

    def ours(a: Any, b: Any, c: Any, bias: Any) -> Any:
        return (matmul(a, b, c=c, alpha=0.5, beta=3.0, bias=bias, activation=activation) ** 2).sum()

    def theirs(a: Any, b: Any, c: Any, bias: Any) -> Any:
        sums = 0.5 * (a @ b) + 3.0 * c + bias
        return ((jax.nn.gelu(sums, approximate=False) if activation else sums) ** 2).sum()

    for found, expected in zip(
        wrap(jax.grad(ours, (0, 1, 2, 3)))(a, b, c, bias), jax.grad(theirs, (0, 1, 2, 3))(a, b, c, bias), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_vmap() -> None:
    a, b = integers(0, 3, 5, 8), integers(1, 8, 6)
    np.testing.assert_array_equal(jax.vmap(lambda x: matmul(x, b))(a), np.matmul(a, b))


def test_buffers_of_a_gpu_are_of_the_device_that_xla_calls_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.gemm.operators.jax_call import array_over
    from tilewright.jax import ffi
    from tilewright.lang.arguments.arrays import array_of

    for number in (0, 1):
        monkeypatch.setattr(ffi, "current_gpu", lambda number=number: number)
        found = array_of(array_over(ffi.Buffer(0x1000, (4, 8), "float16"), on_gpu=True))
        assert (found.address, found.device, found.shape) == (0x1000, f"cuda:{number}", (4, 8))
        buffer = array_over(ffi.Buffer(0x1000, (4, 8), "float16"), on_gpu=True)
        for view, shape, stride in (
            (buffer.T, (8, 4), (1, 8)),
            (buffer.reshape(2, -1).T, (16, 2), (1, 16)),
            (buffer.reshape((32,))[:24].reshape(3, 2, 4).transpose(2, 0, 1), (4, 3, 2), (1, 8, 4)),
        ):
            found = array_of(view)
            assert (found.address, found.shape, found.stride) == (0x1000, shape, stride)
        with pytest.raises(ArgumentError, match="has no view"):
            buffer.T.reshape(32)
