"""``cutlass.utils.gemm``: parts that GEMM kernels have in common. ``sm100``: the epilogue of an accumulator in tensor
memory.
"""

from tilewright._names import attach

attach(__name__)
