"""``cutlass.jax.cutlass_call``: kernels as JAX operations, on the CPU."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

import tilewright as cutlass
from tilewright import cute
from tilewright.errors import ArgumentError, StagingError
from tilewright.jax import TensorSpec, cutlass_call, cutlass_to_jax_dtype, jax_to_cutlass_dtype
from tilewright.jax import get_export_disabled_safety_checks as disabled_checks
from tilewright.jax.testing import create_tensor


@cute.kernel
def scale_kernel(x: cute.Tensor, y: cute.Tensor, alpha: cutlass.Float32) -> None:
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    i = b * 32 + t
    if i < cute.size(x):
        m, n = i // x.shape[1], i % x.shape[1]
        y[m, n] = (x[m, n] * alpha).to(y.element_type)


@cute.jit
def scale(stream: Any, x: cute.Tensor, y: cute.Tensor, *, alpha: cutlass.Float32) -> None:
    grid = (cute.ceil_div(cute.size(x), 32), 1, 1)
    scale_kernel(x, y, alpha).launch(grid=grid, block=(32, 1, 1), stream=stream)


def scaled(x: Any, alpha: float, **options: Any) -> Any:
    call = cutlass_call(scale, output_shape_dtype=jax.ShapeDtypeStruct(x.shape, x.dtype), alpha=alpha, **options)
    return call(x)


X = np.arange(40, dtype=np.float32).reshape(5, 8)


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_eager_and_under_jit(static: bool, wrap: Any) -> None:
    f = wrap(partial(scaled, alpha=2.5, use_static_tensors=static))
    for _ in range(2):
        np.testing.assert_array_equal(f(jnp.asarray(X)), X * 2.5)
    np.testing.assert_array_equal(f(jnp.ones((3, 5))), np.full((3, 5), 2.5))


def test_between_other_operations() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        y = scaled(x + 1, alpha=2.0)
        return jnp.sum(scaled(y, alpha=0.5) - x), y

    total, y = f(jnp.asarray(X))
    assert total == 40
    np.testing.assert_array_equal(y, (X + 1) * 2)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.int32, jnp.float8_e4m3fn])
def test_types(dtype: Any) -> None:
    x = create_tensor((4, 8), dtype, jax.random.key(1))
    np.testing.assert_array_equal(scaled(x, 1.0).astype(jnp.float32), x.astype(jnp.float32))
    assert cutlass_to_jax_dtype(jax_to_cutlass_dtype(dtype)) == dtype


@cute.kernel
def split_kernel(a: cute.Tensor, b: cute.Tensor, total: cute.Tensor, difference: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    for j in range(cute.size(a, mode=[1])):
        total[t, j] = a[t, j] + b[t, j]
        difference[t, j] = a[t, j] - b[t, j]


@cute.jit
def split(stream, a: cute.Tensor, b: cute.Tensor, total: cute.Tensor, difference: cute.Tensor) -> None:
    split_kernel(a, b, total, difference).launch(grid=(1, 1, 1), block=(a.shape[0], 1, 1))


def test_several_outputs_and_modes() -> None:
    a, b = X, X[::-1].copy()
    shape = jax.ShapeDtypeStruct((5, 8), jnp.float32)
    seen: list[str] = []

    def see(stream: Any, *tensors: Any) -> None:
        seen.extend(str(t.layout) for t in tensors)
        split(stream, *tensors)

    call = cutlass_call(
        see,
        output_shape_dtype={"sum": shape, "less": jax.ShapeDtypeStruct((8, 5), jnp.float32)},
        input_spec=(None, TensorSpec(static=True)),
        output_spec=(TensorSpec(mode=(1, 0)), TensorSpec(divisibility=(None, 4))),
    )
    found = call(jnp.asarray(a), jnp.asarray(b))
    np.testing.assert_array_equal(found["sum"], a - b)  # a dict's leaves are in the order of its keys: less, sum
    np.testing.assert_array_equal(found["less"].T, a + b)
    assert seen == ["(?,?):(?,1)", "(5,8):(8,1)", "(?,?):(1,?)", "(?,?{div=4}):(?{div=4},1)"]


def test_column_major_arrays() -> None:
    spec = TensorSpec(layout=(1, 0), static=True)
    seen: list[str] = []

    def see(stream: Any, x: Any, y: Any) -> None:
        seen.extend((str(x.layout), str(y.layout)))
        scale(stream, x, y, alpha=3.0)

    call = jax.jit(
        cutlass_call(
            see, output_shape_dtype=jax.ShapeDtypeStruct((5, 8), jnp.float32), input_spec=spec, output_spec=spec
        )
    )
    np.testing.assert_array_equal(call(jnp.asarray(X)), X * 3)
    assert seen == ["(5,8):(1,5)", "(5,8):(1,5)"]


@cute.kernel
def add_into_kernel(x: cute.Tensor, y: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    y[t] = y[t] + x[t]


@cute.jit
def add_into(stream, x: cute.Tensor, y: cute.Tensor) -> None:
    add_into_kernel(x, y).launch(grid=(1, 1, 1), block=(8, 1, 1))


@cute.kernel
def add_twice_kernel(x: cute.Tensor, y: cute.Tensor, double: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    y[t] = y[t] + x[t]
    double[t] = 2 * y[t]


@cute.jit
def add_twice(stream, x: cute.Tensor, y: cute.Tensor, double: cute.Tensor) -> None:
    add_twice_kernel(x, y, double).launch(grid=(1, 1, 1), block=(8, 1, 1))


def test_an_output_may_share_the_buffer_of_an_input() -> None:
    call = cutlass_call(
        add_into, output_shape_dtype=jax.ShapeDtypeStruct((8,), jnp.float32), input_output_aliases={1: 0}
    )
    x, y = jnp.arange(8.0), jnp.full((8,), 10.0)
    np.testing.assert_array_equal(jax.jit(call)(x, y), np.arange(8) + 10)
    assert (y == 10).all()  # JAX copies what is still needed
    with pytest.raises(ArgumentError, match="share a buffer and differ"):
        call(x, jnp.zeros(4))


def test_an_aliased_output_is_not_passed_twice() -> None:
    """The function gets the inputs and the outputs with a buffer of their own."""
    like = jax.ShapeDtypeStruct((8,), jnp.float32)
    call = cutlass_call(add_twice, output_shape_dtype=(like, like), input_output_aliases={1: 1})
    x, y = jnp.arange(8.0), jnp.full((8,), 10.0)
    double, total = jax.jit(call)(x, y)
    np.testing.assert_array_equal(total, np.arange(8) + 10)
    np.testing.assert_array_equal(double, 2 * np.arange(8) + 20)


def test_inputs_are_not_written() -> None:
    @cute.jit
    def wrong(stream, x: cute.Tensor, y: cute.Tensor) -> None:
        add_into_kernel(y, x).launch(grid=(1, 1, 1), block=(8, 1, 1))

    x = jnp.arange(8.0)
    with pytest.raises(Exception, match="argument 'x': the array is read-only, and .* writes to it"):
        jax.block_until_ready(cutlass_call(wrong, output_shape_dtype=jax.ShapeDtypeStruct((8,), jnp.float32))(x))
    with pytest.raises(ArgumentError, match="read-only"):
        wrong(cutlass.cuda.default_stream(), x, np.zeros(8, np.float32))
    assert x.tolist() == list(range(8))


def test_staging_errors_are_raised_while_jax_traces() -> None:
    @cute.jit
    def wrong(stream, x: cute.Tensor, y: cute.Tensor) -> None:
        add_into_kernel(x).launch(grid=(1, 1, 1), block=(8, 1, 1))

    @jax.jit
    def f(x: Any) -> Any:
        return cutlass_call(wrong, output_shape_dtype=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    with pytest.raises(Exception, match=r"test_cutlass_call.py:\d+: add_into_kernel\(x\)") as caught:
        f(jnp.zeros(8))
    assert isinstance(caught.value, (StagingError, ArgumentError, TypeError))


def test_specs_are_checked() -> None:
    x = jnp.zeros((4, 6))
    for spec, words in (
        (TensorSpec(mode=(0, 0)), "mode .* does not name each of 2 dimensions once"),
        (TensorSpec(layout=(0,)), "layout .* does not name"),
        (TensorSpec(divisibility=(1, 4)), "divisibility 4 of dimension 1, whose extent is 6"),
        (TensorSpec(divisibility=(1,)), "divisibility .* of an array with 2 dimensions"),
        ((None, None), "2 specs for 1 arrays"),
    ):
        with pytest.raises(ArgumentError, match=words):
            scaled(x, 1.0, input_spec=spec)


def test_vmap_and_equal_calls() -> None:
    found = jax.vmap(partial(scaled, alpha=2.0))(jnp.asarray(X).reshape(5, 2, 4))
    np.testing.assert_array_equal(found, X.reshape(5, 2, 4) * 2)
    text = [jax.jit(partial(scaled, alpha=3.0)).lower(jnp.asarray(X)).as_text() for _ in range(2)]
    assert text[0] == text[1] and "tilewright_cutlass_call" in text[0]


def test_export_with_known_and_symbolic_shapes() -> None:
    from jax import export

    f = jax.jit(partial(scaled, alpha=2.0))
    for shape in ("(5, 8)", "(a, b)", "(a, 2*b)"):
        wanted = jax.ShapeDtypeStruct(export.symbolic_shape(shape), jnp.float32)
        made = export.export(f, disabled_checks=disabled_checks())(wanted)
        np.testing.assert_array_equal(made.call(jnp.asarray(X)), X * 2)
    np.testing.assert_array_equal(made.call(jnp.ones((3, 6))), np.full((3, 6), 2))


def test_created_tensors() -> None:
    key = jax.random.key(3)
    assert (create_tensor((2, 3), cutlass.Float16, key, fill_value=1.5) == 1.5).all()
    assert create_tensor((2, 3), jnp.int32, key, fill_arange=True).tolist() == [[0, 1, 2], [3, 4, 5]]
    numbers = create_tensor((100,), jnp.int8, key, minval=-3, maxval=4)
    assert numbers.dtype == jnp.int8 and set(numbers.tolist()) == set(range(-3, 4))
