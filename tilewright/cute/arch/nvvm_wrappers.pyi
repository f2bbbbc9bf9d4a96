# Made by `python tools/stubs.py` from tilewright/cute/arch/nvvm_wrappers.py; do not edit.
"""``cute.arch.nvvm_wrappers``: the older module of names that ``cute.arch`` has."""

from tilewright.cute.arch import *
