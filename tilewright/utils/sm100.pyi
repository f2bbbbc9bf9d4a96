# Made by `python tools/stubs.py` from tilewright/utils/sm100.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``cutlass.utils.sm100``: another name of :mod:`tilewright.utils.blackwell_helpers`."""

from tilewright.utils.blackwell_helpers import *
