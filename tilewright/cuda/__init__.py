"""The GPU machine: kernels printed as CUDA C++, compiled by NVRTC, launched through the driver.

Compiling needs neither a CUDA toolkit nor a GPU.

>>> import tilewright.cuda
>>> artifact = tilewright.cuda.compile(kernel, arch="sm_90a")  # doctest: +SKIP
>>> artifact.registers, artifact.spills, artifact.sass  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.cuda.artifact import Artifact as Artifact
    from tilewright.cuda.compiler import compile as compile
    from tilewright.cuda.emitter import emit as emit

_CONTEXT = (
    "DeviceInfo allocate context_destroy deallocate get_compute_capability_major_minor get_current_device get_device "
    "get_device_attribute get_device_info get_driver_version initialize_cuda_context memcpy_d2h memcpy_h2d "
    "stream_create stream_destroy stream_sync"
)
_HOMES = {
    "Artifact": "tilewright.cuda.artifact",
    "compile": "tilewright.cuda.compiler",
    "emit": "tilewright.cuda.emitter",
    "default_stream": "tilewright.lang.arguments.streams",
    **dict.fromkeys(_CONTEXT.split(), "tilewright.cuda.context"),
}
__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tilewright.cuda' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
