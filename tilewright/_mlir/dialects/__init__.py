"""``cutlass._mlir.dialects``: ``llvm`` has inline PTX; the other dialects are names that programs carry along."""

from tilewright._names import attach

attach(__name__)
