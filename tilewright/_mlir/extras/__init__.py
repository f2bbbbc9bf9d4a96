"""``cutlass._mlir.extras``: the module ``types``."""

from tilewright._mlir.extras import types

__all__ = ["types"]
