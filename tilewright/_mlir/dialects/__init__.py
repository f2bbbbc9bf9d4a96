"""``cutlass._mlir.dialects``: ``llvm`` has inline PTX; the other dialects are names that programs carry along."""

from __future__ import annotations

import importlib
from typing import Any

NAMES = (
    "_cute_ir", "_cute_nvgpu_ir", "arith", "builtin", "cf", "cuda", "cute", "cute_nvgpu", "func", "gpu", "llvm", "math",
    "memref", "nvgpu", "nvvm", "scf", "vector",
)  # fmt: skip
__all__ = list(NAMES)


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
