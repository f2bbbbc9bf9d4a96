# Made by `python tools/stubs.py` from tilewright/base_dsl/runtime/__init__.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``cutlass.base_dsl.runtime``."""

from tilewright.base_dsl.runtime import cuda as cuda
