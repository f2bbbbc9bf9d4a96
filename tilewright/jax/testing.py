"""``cutlass.jax.testing``: arrays to run programs with."""

from __future__ import annotations

from typing import Any

from tilewright.lang.numbers.numeric import NumericMeta

__all__ = ["create_tensor"]


def create_tensor(
    shape: tuple[int, ...],
    dtype: Any,
    key: Any = None,
    *,
    minval: float = -2.0,
    maxval: float = 2.0,
    fill_value: float | None = None,
    fill_arange: bool = False,
) -> Any:
    """A JAX array of ``shape``: random numbers from ``minval`` up to and without ``maxval``, whole ones for integers.

    With ``fill_value`` all elements are that, with ``fill_arange`` they count up. ``key`` is JAX's key of random
    numbers; without one they are those of seed 0.
    """
    import jax
    import jax.numpy as jnp

    from tilewright.jax.specs import cutlass_to_jax_dtype

    kind = cutlass_to_jax_dtype(dtype) if isinstance(dtype, NumericMeta) else jnp.dtype(dtype)
    if fill_value is not None:
        return jnp.full(shape, fill_value, kind)
    if fill_arange:
        import math

        return jnp.arange(math.prod(shape)).reshape(shape).astype(kind)
    key = jax.random.key(0) if key is None else key
    if jnp.issubdtype(kind, jnp.floating):
        return jax.random.uniform(key, shape, jnp.float32, minval, maxval).astype(kind)
    return jax.random.randint(key, shape, int(minval), int(maxval)).astype(kind)
