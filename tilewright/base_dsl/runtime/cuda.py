"""``cutlass.base_dsl.runtime.cuda``: results of the CUDA driver's bindings as Python's."""

from __future__ import annotations

from typing import Any

from tilewright._lazy import lazily
from tilewright.errors import MachineError


def checkCudaErrors(result: tuple[Any, ...]) -> Any:
    """What a call of ``cuda.bindings`` gave besides its error code: nothing, one value or several.

    Raises MachineError (``DSLCudaRuntimeError``) where the code is not success.

    >>> checkCudaErrors((0, 5)), checkCudaErrors((0,)), checkCudaErrors((0, 1, 2))
    (5, None, (1, 2))
    """
    error, *rest = result
    if int(error):
        name = getattr(error, "name", None) or f"error {int(error)}"
        raise MachineError(f"the CUDA driver answers {name} (code {int(error)})")
    return None if not rest else rest[0] if len(rest) == 1 else tuple(rest)


__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.cuda.context": (
            "initialize_cuda_context stream_create stream_destroy stream_sync get_compute_capability_major_minor "
            "get_device_info allocate deallocate memcpy_d2h memcpy_h2d"
        ),
        "tilewright.cuda.modules": "load_cubin_module load_cubin_module_data unload_cubin_module get_kernel_function",
        "tilewright.lang.arguments.streams": "default_stream",
        "tilewright.errors": "DSLCudaRuntimeError=MachineError",
    },
)
__all__ = sorted([*__all__, "checkCudaErrors"])
