# Made by `python tools/stubs.py` from tilewright/experimental/__init__.py; do not edit.
"""``cutlass.experimental``: modules whose names can be imported; using one is an error that says what to use."""

from tilewright.experimental import cuda as cuda
from tilewright.experimental import primitives as primitives
from tilewright.experimental import task_scheduling as task_scheduling
