"""Tilewright: CuTe in open Python.

One kernel source runs on a checking simulator on the CPU and on NVIDIA GPUs. The names are those of the CuTe DSL's
documentation: a program written to it runs with ``import tilewright as cutlass`` and ``from tilewright import cute``.

Examples in docstrings assume ``import numpy as np``, ``from tilewright import cute``, ``from tilewright.cute import
arch`` and ``from tilewright.testing import per_thread``.
"""

from importlib import import_module

from tilewright._names import attach

__version__ = "0.1.0"

attach(__name__)


def load_ipython_extension(shell: object) -> None:
    """``%load_ext tilewright``: see :mod:`tilewright.compat.notebook`."""
    import_module("tilewright.compat.notebook").load(shell)


def unload_ipython_extension(shell: object) -> None:
    """``%unload_ext tilewright``."""
    import_module("tilewright.compat.notebook").unload(shell)
