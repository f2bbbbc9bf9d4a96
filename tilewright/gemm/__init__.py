"""The GEMM library, written in the language: ``gemm`` and ``GemmUniversal`` as CUTLASS has them, ``matmul`` and its
relatives for arrays of frameworks.

A kernel is a *schedule* (which block multiplies which k tiles of which output tiles), a *main loop*, a *math* (the
instruction that multiplies) and an *epilogue*; ``config.py`` has the sizes of a kernel. The packages, in the order of a
call: ``operators`` (``matmul``), ``host`` (problem, plan, handle), ``choice`` (which kernel, which size), ``family``
(what a kind of kernel takes and costs), ``kernel``, ``schedule``, ``mainloop``, ``epilogue``; ``tuning`` measures.
Start with ``kernel/multistage.py``, then ``host/plan.py``. See docs/gemm.md.
"""

from tilewright._names import attach

attach(__name__)
