"""Processes that a program starts get the names that it got itself.

A child of ``multiprocessing`` or ``subprocess`` is a new interpreter, which knows no ``cutlass``. While a script runs,
this folder is the first of ``PYTHONPATH``, so that each child imports the ``sitecustomize`` here as it starts. A child
that ignores the environment (``python -E``), or whose Python has no NumPy, is left alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

FOLDER = os.path.dirname(os.path.abspath(__file__))
VARIABLE = "TILEWRIGHT_SERVED"
"""In the environment of children: which of ``cpu`` and ``replace`` are asked of ``compat.install``."""


@contextmanager
def served(cpu: bool, replace: bool) -> Iterator[None]:
    """Children that are started inside begin with ``compat.install(cpu, replace)``."""
    before = {name: os.environ.get(name) for name in ("PYTHONPATH", VARIABLE)}
    os.environ["PYTHONPATH"] = os.pathsep.join([FOLDER, *filter(None, [before["PYTHONPATH"]])])
    os.environ[VARIABLE] = ",".join(name for name, on in (("cpu", cpu), ("replace", replace)) if on)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
