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

__all__ = ["Artifact", "compile", "emit"]
_HOMES = {"Artifact": "artifact", "compile": "compiler", "emit": "emitter"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tilewright.cuda' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"tilewright.cuda.{_HOMES[name]}"), name)
