"""``cutlass.jax``: kernels as JAX operations, on the CPU through the simulator and on NVIDIA GPUs.

``primitive.py`` has ``cutlass_call`` and its rules for jit, vmap and export; ``specs.py`` how arrays become tensors
(``TensorSpec``); ``ffi.py`` the foreign function that XLA calls, through ``ctypes``. Start with ``primitive.py``.
"""

from tilewright.jax.ffi import get_export_disabled_safety_checks as get_export_disabled_safety_checks
from tilewright.jax.primitive import cutlass_call as cutlass_call, release_compile_cache as release_compile_cache
from tilewright.jax.specs import (
    TensorSpec as TensorSpec, cutlass_to_jax_dtype as cutlass_to_jax_dtype,
    jax_to_cutlass_dtype as jax_to_cutlass_dtype,
)
from tilewright.lang.arguments.dlpack import from_dlpack as from_dlpack
from tilewright.jax import testing as testing

def is_available() -> bool:
    """Whether JAX is installed."""

TensorMode = TensorSpec
