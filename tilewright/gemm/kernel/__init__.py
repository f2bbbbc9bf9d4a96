"""Kernels: a schedule, a main loop, a math and an epilogue put together.

``MultistageGemm`` (cp.async, any math), ``WarpSpecializedGemm`` (TMA and wgmma) with its derived ``DenseGemm``,
``SparseGemm``, ``GroupedHopperGemm``, ``TensorMemoryGemm`` (tcgen05) and ``BlockScaledGemm``, ``SmallMGemm`` and
``MixedSmallMGemm`` for few rows; small kernels that copy, add up and combine. Start with ``multistage.py``.
"""
