"""From accumulators to D: how results are stored, and the functions applied on the way.

An *epilogue function* (``functions.py``, ``activations.py``, ``scales.py``, ``scatter.py``) changes the sums of a
thread; it sees the output through an ``EpilogueTile`` (``tile.py``). An *epilogue* (``store.py``, ``tma_store.py``,
``tensor_memory.py``, ``fragment.py``) applies it and writes. Start with ``functions.py``.
"""
