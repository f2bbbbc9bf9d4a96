"""``cutlass._mlir.dialects``: ``llvm`` has inline PTX; the other dialects are names that programs carry along."""

from tilewright._mlir.dialects import arith as arith, cute as cute, llvm as llvm, math as math, nvvm as nvvm, vector as vector
