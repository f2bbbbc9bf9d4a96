# Made by `python tools/stubs.py` from tilewright/base_dsl/runtime/__init__.py; do not edit.
"""``cutlass.base_dsl.runtime``."""

from tilewright.base_dsl.runtime import cuda as cuda
