"""Measuring configurations on a GPU, and remembering the fastest.

``tune`` (``tune.py``) measures each ``Candidate`` in a process of its own (``worker.py``, ``measure.py``) and keeps the
results (``store.py``). ``ahead.py`` and ``processes.py`` compile kernels before they are needed. Start with
``tune.py``.
"""
