"""From arrays to a launch: problem, plan, handle.

``Problem`` (``problem.py``) reads and checks the operands, ``Plan`` (``plan.py``) chooses kernel, size and
decomposition, ``Handle`` (``handle.py``) is the compiled kernel with its arguments. ``gemm.py`` and ``universal.py``
are the entry points; ``packing.py`` and ``copies.py`` copy matrices that a kernel cannot access. Start with
``gemm.py``.
"""
