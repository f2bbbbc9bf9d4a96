"""``cutlass._mlir.dialects.nvgpu``: importable, without a meaning here."""

from tilewright._mlir.placeholder import placeholders

__getattr__ = placeholders(__name__)
