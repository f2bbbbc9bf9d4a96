"""``cutlass.jax``: kernels as JAX operations, on the CPU through the simulator and on NVIDIA GPUs."""

from __future__ import annotations

from importlib.util import find_spec

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.jax.primitive": "cutlass_call release_compile_cache",
        "tilewright.jax.specs": "TensorSpec TensorMode=TensorSpec cutlass_to_jax_dtype jax_to_cutlass_dtype",
        "tilewright.jax.ffi": "get_export_disabled_safety_checks",
        "tilewright.lang.arguments.dlpack": "from_dlpack",
    },
    ("testing",),
)


def is_available() -> bool:
    """Whether JAX is installed."""
    return find_spec("jax") is not None
