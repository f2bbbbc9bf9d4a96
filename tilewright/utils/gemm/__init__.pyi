# Made by `python tools/stubs.py` from tilewright/utils/gemm/__init__.py; do not edit.
"""``cutlass.utils.gemm``: parts of GEMM kernels."""

from tilewright.utils.gemm import sm100 as sm100
