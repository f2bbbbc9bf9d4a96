# Made by `python tools/stubs.py` from tilewright/utils/gemm/__init__.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``cutlass.utils.gemm``: parts of GEMM kernels."""

from tilewright.utils.gemm import sm100 as sm100
