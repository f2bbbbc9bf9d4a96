"""``cutlass.utils.gemm``: parts that GEMM kernels have in common."""

from tilewright.utils.gemm import sm100 as sm100
