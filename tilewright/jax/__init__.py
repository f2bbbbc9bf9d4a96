"""``cutlass.jax``: kernels as JAX operations, on the CPU through the simulator and on NVIDIA GPUs.

``primitive.py`` has ``cutlass_call`` and its rules for jit, vmap and export; ``specs.py`` how arrays become tensors
(``TensorSpec``); ``ffi.py`` the foreign function that XLA calls, through ``ctypes``. Start with ``primitive.py``.
"""

from __future__ import annotations

from importlib.util import find_spec

from tilewright._names import attach

attach(__name__)


def is_available() -> bool:
    """Whether JAX is installed."""
    return find_spec("jax") is not None
