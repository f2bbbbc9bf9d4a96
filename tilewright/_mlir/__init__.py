"""``cutlass._mlir``: what kernels import of the compiler's internals, as far as it has a meaning here: inline PTX
(``dialects.llvm``) and the names of types. Everything else can be imported and named, and says so when it is used."""

from __future__ import annotations

from tilewright._mlir import dialects, ir

__all__ = ["dialects", "ir"]
