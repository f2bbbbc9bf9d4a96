"""The kernels of the library by name, and which of them suits a problem.

``registry.py`` has the entries (``kernels()``); ``choose.py`` picks size and decomposition by the cost models of the
families; ``simulated.py`` picks what the simulator finishes first. Start with ``registry.py``.
"""
