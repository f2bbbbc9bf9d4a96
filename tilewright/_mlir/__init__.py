"""``cutlass._mlir``: the parts of the CuTe DSL's compiler that kernels import and that have a meaning here: inline PTX
(``dialects.llvm``), arithmetic and vectors (``dialects.arith``, ``vector``), instructions (``dialects.nvvm``), types
(``ir``). Any other name of these modules can be imported; calling it is an error."""

from __future__ import annotations

from tilewright._mlir import dialects, ir

__all__ = ["dialects", "ir"]
