"""``cutlass._mlir.dialects.nvvm``: importable, without a meaning here."""

from tilewright._mlir.placeholder import placeholders

__getattr__ = placeholders(__name__)
