"""From global memory to accumulators: how the k tiles of one output tile are loaded and multiplied.

A *main loop* loads (``multistage.py`` by cp.async, ``tma.py`` by TMA, ``tcgen05.py``); a *math* multiplies what is in
shared memory (``math.py``, ``wgmma.py``, ``sparse.py``). Start with ``multistage.py``.
"""
