"""``cutlass._mlir_helpers``: functions on values that libraries of kernels take from beneath the CuTe DSL."""

from tilewright._mlir_helpers import arith, math

__all__ = ["arith", "math"]
