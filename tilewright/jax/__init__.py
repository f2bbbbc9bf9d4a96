"""``cutlass.jax``: kernels as JAX operations, on the CPU through the simulator and on NVIDIA GPUs."""

from __future__ import annotations

from importlib.util import find_spec

from tilewright._names import attach

attach(__name__)


def is_available() -> bool:
    """Whether JAX is installed."""
    return find_spec("jax") is not None
